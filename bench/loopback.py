"""A small HTTP server on loopback, as a stand-in for other systems."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serve(answer: Callable[[str], bytes | None]) -> Iterator[str]:
    """Run the server while the block lasts; yields its address. answer: path and query -> JSON, None for 404."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Send the result of `answer`."""
            body = answer(self.path)
            self.send_response(HTTPStatus.NOT_FOUND if body is None else HTTPStatus.OK)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body or b"")))
            with suppress(ConnectionError):  # the client may have gone
                self.end_headers()
                self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Log nothing: the results are the output."""

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
