"""The client of the benchmarks of `serve`: a failed connection ends the benchmark, and every header is sent."""

import ssl
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from bench import api
from bench.processes import free_port
from bench.replica import HPA_HEADERS, status


class Server(HTTPServer):
    """Answers each request with 200, and holds the headers of the last one."""

    headers: list[tuple[str, str]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.headers = self.headers.items()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_load_whose_connections_fail_is_an_error() -> None:
    with pytest.raises(ConnectionRefusedError):
        api.measure_load(free_port(), ssl.create_default_context())


def test_every_group_of_the_hpa_controller_is_sent(server: Server) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_port)
    assert status(connection, "/") == 200
    connection.close()

    assert [pair for pair in server.headers if pair in HPA_HEADERS] == list(HPA_HEADERS)
