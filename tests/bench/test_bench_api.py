"""The client of the benchmarks of `serve`: a failed connection ends the benchmark, and every header is sent."""

import ssl
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pytest
from hostile_server import Form, http_server, send

from bench import api
from bench.processes import free_port
from bench.replica import HPA_HEADERS, status


def test_a_load_whose_connections_fail_is_an_error() -> None:
    with pytest.raises(ConnectionRefusedError):
        api.measure_load(free_port(), ssl.create_default_context())


def test_every_group_of_the_hpa_controller_is_sent() -> None:
    sent: list[tuple[str, str]] = []

    def answer(request: BaseHTTPRequestHandler, _: Form) -> None:
        sent.extend(request.headers.items())
        send(request, b"")

    with http_server(answer) as url, closing(HTTPConnection(urlsplit(url).netloc)) as connection:
        assert status(connection, "/") == 200

    assert [pair for pair in sent if pair in HPA_HEADERS] == list(HPA_HEADERS)
