"""Snapshots for `serve` in place of a pipeline: decisions with numbers that a test sets."""

import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from adapter.core.decisions import Decision, Reason
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot, encode
from adapter.serving.snapshots.transport import MESSAGE_TYPE
from parts.process import HOST, Part

TICK_S = 5.0
ERROR_AFTER_S = 60.0

Numbers = Mapping[str, Mapping[str, float]]  # workload -> field of Decision -> number


class Published(Part):
    """An HTTP server whose snapshot has the current numbers, dated to the request."""

    def __init__(self, numbers: Callable[[], Numbers]) -> None:
        self._numbers = numbers
        self._server = ThreadingHTTPServer((HOST, 0), _answering(self._snapshot))
        self._thread = threading.Thread(target=self._server.serve_forever, name="published")
        self.url = f"http://{HOST}:{self._server.server_port}"

    def start(self) -> None:
        """Starts to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Closes the port."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _snapshot(self) -> bytes:
        at_s = time.time()
        entries = [_entry(workload, at_s, numbers) for workload, numbers in sorted(self._numbers().items())]
        return encode(
            Snapshot(at_s=at_s, tick_s=TICK_S, error_after_s=ERROR_AFTER_S, entries=entries_of(at_s, entries))
        )


def _entry(workload: str, at_s: float, numbers: Mapping[str, float]) -> Entry:
    ages = {"sample_age_s": 0.0, "partitions_age_s": 0.0}
    decision = Decision(workload=workload, at_s=at_s, policy="drain", reason=Reason.HOLD, **ages, **numbers)
    return Entry(decision=decision, error_after_s=ERROR_AFTER_S, window_s=60.0)


def _answering(body: Callable[[], bytes]) -> type[BaseHTTPRequestHandler]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = body()
            self.send_response(200)
            self.send_header("Content-Type", MESSAGE_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Answer
