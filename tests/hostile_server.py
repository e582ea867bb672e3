"""An HTTP server on loopback whose every answer is written by a test."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

Form = dict[str, str]  # the parameters of a request, of its address or its body
Answer = Callable[[BaseHTTPRequestHandler, Form], None]


def send(
    request: BaseHTTPRequestHandler, body: bytes, content_type: str = "application/json", status: int = 200, **more: str
) -> None:
    """Send a whole answer, the last one of its connection. more: further headers, _ for -."""
    request.send_response_only(status)  # without a date, unless `more` has one
    headers = {"Content-Type": content_type, "Content-Length": str(len(body)), "Connection": "close", **more}
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)


def trickle(request: BaseHTTPRequestHandler, form: Form) -> None:
    """Send a byte every 50 ms for 20 s."""
    request.send_response_only(200)
    request.end_headers()
    for _ in range(400):
        request.wfile.write(b" ")
        time.sleep(0.05)


@contextmanager
def http_server(answer: Answer) -> Iterator[str]:
    """Gives the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(dict(parse_qsl(urlsplit(self.path).query)))

        def do_POST(self) -> None:
            self._answer(dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode())))

        def _answer(self, form: Form) -> None:
            self.close_connection = True
            with suppress(OSError):  # the client may leave at any time
                answer(self, form)

        def log_message(self, *_: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
