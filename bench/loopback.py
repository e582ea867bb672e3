"""A small HTTP server, as a stand-in for other systems."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serve(
    answer: Callable[[str], bytes], host: str = "127.0.0.1", content_type: str = "application/json"
) -> Iterator[str]:
    """Run the server while the block lasts; yields its address. answer: path and query -> body."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Send the result of `answer`."""
            body = answer(self.path)
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            with suppress(ConnectionError):  # the client may have gone
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: the results are the output."""

    server = ThreadingHTTPServer((host, 0), Answer)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
