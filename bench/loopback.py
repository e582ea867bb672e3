"""A small HTTP server on loopback, for the systems that a bench stands in for."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def served(answer: Callable[[str], bytes | None]) -> Iterator[str]:
    """Its address while the block lasts. answer: path and query -> the JSON to send, None for 404."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """What `answer` says."""
            body = answer(self.path)
            self.send_response(HTTPStatus.NOT_FOUND if body is None else HTTPStatus.OK)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body or b"")))
            with suppress(ConnectionError):  # who asked may have waited long enough
                self.end_headers()
                self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Nothing: the figures are the output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
