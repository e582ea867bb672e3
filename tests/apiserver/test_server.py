"""Responses and refusals of a server, over real sockets."""

import gc
import http.client
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref
from wsgiref.validate import validator

import pytest
import trustme
from raw_clients import LARGE, Client, Running, eventually, request, serving, trust
from serving_certificates import CLIENTS, pem, serving_files
from structlog.testing import capture_logs

from adapter.apiserver.answer import Answer, text
from adapter.apiserver.app import RequestOutcome, create_app
from adapter.apiserver.limits import ServerLimits
from adapter.apiserver.protocol import LimitedProtocol
from adapter.apiserver.request import Request
from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from adapter.apiserver.wsgi_bridge import Wsgi
from adapter.errors import SetupError

LIMITS = ServerLimits()
IPV6 = Path("/proc/net/if_inet6")  # the addresses of this machine
QUICK = ServerLimits(handshake_s=0.3, receive_s=0.3, write_s=0.3, idle_s=0.3)  # so that a test need not wait long
AGGREGATOR = CLIENTS.issue_cert(common_name="front-proxy-client")
# 51 KB: under any limit of bytes that a selector needs.
MANY_FIELDS = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"ab:\r\n" * 10_000


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> LiveTls:
    files = serving_files(tmp_path_factory.mktemp("certificates"))
    return LiveTls(str(files.cert), str(files.key), lambda: pem(CLIENTS))


@pytest.fixture(scope="module")
def running(tls: LiveTls) -> Iterator[Running]:
    with serving(tls=tls) as running:
        yield running


@pytest.fixture(scope="module")
def quick(tls: LiveTls) -> Iterator[Running]:
    with serving(QUICK, tls) as running:
        yield running


def code(running: Running, leaf: trustme.LeafCert | None = None, path: str = "/") -> int:
    """The status code on a connection of its own."""
    with Client(running.server, trust(leaf)) as client:
        return client.get(path).code


def test_requests_follow_one_another_on_a_connection(running: Running) -> None:
    with Client(running.server, trust()) as client:
        first = client.get("/a%20b?x=%31&y", "X-Remote-Group: a", "X-Remote-Group: b,c")
        assert (first.code, first.document["path"], first.document["query"]) == (200, "/a b", "x=%31&y")
        assert first.document["headers"][1:] == [["x-remote-group", "a"], ["x-remote-group", "b,c"]]
        assert client.get("/").code == 200


def test_a_header_with_an_underscore_is_no_variable_of_another_header(running: Running) -> None:
    with Client(running.server, trust()) as client:
        assert client.get("/", "X_Remote_User: admin").document["variables"] == ["HTTP_HOST"]


def test_pipelined_requests_are_answered_in_order(running: Running) -> None:
    with Client(running.server, trust()) as client:
        client.send(b"".join(request(f"/{number}") for number in range(8)))
        assert [client.response().document["path"] for _ in range(8)] == [f"/{number}" for number in range(8)]


@pytest.mark.parametrize(
    ("more", "body"),
    [
        (["Content-Length: 5"], b"12345"),
        (["Transfer-Encoding: chunked"], b"3\r\n123\r\n2\r\n45\r\n0\r\n\r\n"),
        (["Transfer-Encoding: chunked"], b"5\r\n12345\r\n0\r\nX-Remote-User: admin\r\n\r\n"),
        (["Content-Length: 5", "Expect: 100-continue"], b"12345"),
    ],
    ids=["with a length", "in chunks", "with a trailer", "after 100 Continue"],
)
def test_a_body_is_read_whole_and_a_trailer_is_no_header(running: Running, more: list[str], body: bytes) -> None:
    with Client(running.server, trust()) as client:
        client.send(request("/", *more, method="POST"))
        if "Expect: 100-continue" in more:
            assert client.response().code == 100
        client.send(body)
        document = client.response().document
        assert document["body"] == 5
        assert "x-remote-user" not in [name for name, _ in document["headers"]]


def test_head_has_the_headers_alone(running: Running) -> None:
    connection = http.client.HTTPSConnection("localhost", running.server.port, context=trust(), timeout=20)
    with closing(connection):
        connection.request("HEAD", "/large")
        response = connection.getresponse()
        assert (response.status, response.headers["content-length"], response.read()) == (200, str(len(LARGE)), b"")


def test_an_exception_of_the_application_is_a_500_without_its_text(running: Running) -> None:
    with capture_logs() as logs, Client(running.server, trust()) as client:
        response = client.get("/fails")
    assert (response.code, response.document["reason"]) == (500, "InternalError")
    assert b"swordfish" not in response.body
    assert isinstance(logs[0]["exc_info"], RuntimeError)


def test_an_application_that_exits_ends_no_thread(running: Running) -> None:
    with capture_logs(), Client(running.server, trust()) as client:
        assert client.get("/exits").code == 500
    before = threading.active_count()
    assert [code(running) for _ in range(3)] == [200, 200, 200]
    assert threading.active_count() == before


@contextmanager
def client_of(app: Wsgi) -> Iterator[Client]:
    """A connection to a server of its own with this application."""
    server = Server(app, "127.0.0.1", 0)
    server.start()
    try:
        with Client(server) as client:
            yield client
    finally:
        server.stop()


def test_the_environment_of_a_request_is_that_of_pep_3333() -> None:
    with client_of(validator(create_app({"/": lambda request: text("ok")}))) as client:
        assert client.get("/?a=b", "X-Remote-User: a").code == 200


def test_an_observer_that_fails_makes_a_500_like_any_other() -> None:
    def fail(outcome: RequestOutcome) -> None:
        raise RuntimeError("the password is swordfish")

    with client_of(create_app({"/": lambda request: text("ok")}, observe=fail)) as client:
        response = client.get("/")
    assert (response.code, response.document["reason"]) == (500, "InternalError")
    assert b"swordfish" not in response.body


REFUSED = {
    "no HTTP": (b"nonsense\r\n\r\n", 400),
    "two lengths": (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    "two hosts": (request("/", "Host: y"), 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "a chunk": (request("/", "Transfer-Encoding: chunked", method="POST") + b"no size\r\n", 400),
    "a long header": (request("/", f"X-Long: {'x' * LIMITS.header_bytes}"), 431),
    "a long path": (request("/" + "x" * LIMITS.header_bytes), 431),
    "101 fields": (request("/", *(["A: b"] * LIMITS.header_fields)), 431),
    "10 000 fields": (MANY_FIELDS, 431),
    "no end": (b"GET / HTTP/1.1\r\nX-Unfinished: " + b"x" * 2 * LIMITS.header_bytes, 431),
    "a body": (
        request("/", f"Content-Length: {LIMITS.body_bytes + 1}", method="POST") + b"x" * (LIMITS.body_bytes + 1),
        413,
    ),
}


@pytest.mark.parametrize(("sent", "code"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("is_plain", [False, True], ids=["TLS", "plain"])
def test_a_malformed_or_too_large_request_is_refused(tls: LiveTls, sent: bytes, code: int, is_plain: bool) -> None:
    with serving(tls=None if is_plain else tls) as running:
        with Client(running.server, None if is_plain else trust()) as client:
            client.send(sent)
            response = client.response()
            assert (response.code, response.document["code"], response.headers["connection"]) == (code, code, "close")
        assert running.server.counters.refused == {code: 1}


@pytest.mark.parametrize("is_plain", [False, True], ids=["TLS", "plain"])
def test_a_refused_connection_is_closed_a_moment_after_the_response(tls: LiveTls, is_plain: bool) -> None:
    with serving(tls=None if is_plain else tls) as running, ExitStack() as stack:
        clients = [stack.enter_context(Client(running.server, None if is_plain else trust())) for _ in REFUSED]
        for client, (sent, code) in zip(clients, REFUSED.values(), strict=True):
            client.send(sent)
            assert client.response().code == code
        assert [client.is_closed() for client in clients] == [True] * len(clients)
        assert running.server.counters.closed_for_time == 0


def test_a_malformed_request_is_refused_after_the_responses_to_earlier_ones(tls: LiveTls) -> None:
    malformed = [REFUSED[name][0] for name in ("a chunk", "two hosts", "no HTTP")]
    with serving(tls=tls) as running, ExitStack() as stack:
        clients = [stack.enter_context(Client(running.server, trust())) for _ in malformed]
        for client, sent in zip(clients, malformed, strict=True):
            client.send(request("/wait") + request("/second") + sent)
        assert eventually(lambda: running.server.counters.refused == {400: len(malformed)})
        running.application.go_on.set()
        assert [[client.response().code for _ in range(3)] for client in clients] == [[200, 200, 400]] * len(malformed)
        assert [client.is_closed() for client in clients] == [True] * len(malformed)
        assert running.server.counters.closed_for_time == 0


def test_http_1_0_needs_no_host(running: Running) -> None:
    with Client(running.server, trust()) as client:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert client.response().code == 200


def test_as_many_fields_as_allowed_are_served(running: Running) -> None:
    with Client(running.server, trust()) as client:
        assert client.get("/", *(["A: b"] * (LIMITS.header_fields - 1))).code == 200


def test_too_many_requests_at_once_are_refused_by_class_of_client(tls: LiveTls) -> None:
    with serving(replace(LIMITS, requests=2), tls) as running, ExitStack() as stack:
        waiting = [stack.enter_context(Client(running.server, trust())) for _ in range(2)]
        for client in waiting:
            client.send(request("/wait"))
        assert eventually(lambda: code(running) == 429)
        assert code(running, AGGREGATOR) == 200
        running.application.go_on.set()
        assert [client.response().code for client in waiting] == [200, 200]


def test_probes_are_answered_while_every_thread_is_busy(tls: LiveTls) -> None:
    with serving(tls=tls) as running, ExitStack() as stack:
        for _ in range(LIMITS.requests):
            stack.enter_context(Client(running.server, trust())).send(request("/wait"))
        probe = stack.enter_context(Client(running.server, trust()))
        assert [probe.get(path).code for path in ("/readyz", "/livez", "/healthz")] == [200, 200, 200]
        running.application.go_on.set()


def test_probes_are_answered_while_bodies_do_not_arrive(tls: LiveTls) -> None:
    with serving(replace(LIMITS, requests=2), tls) as running, ExitStack() as stack:
        slow = [stack.enter_context(Client(running.server, trust())) for _ in range(4)]
        for client in slow:
            client.send(request("/healthz", "Content-Length: 2", method="POST") + b"o")
        assert code(running, path="/healthz") == 200
        for client in slow:
            client.send(b"k")
            assert client.response().document["body"] == 2


def test_endless_trailers_end_the_connection(tls: LiveTls) -> None:
    with serving(tls=tls) as running, Client(running.server, trust()) as client:
        client.send(request("/wait", "Transfer-Encoding: chunked", method="POST") + b"0\r\n")
        with suppress(OSError):  # the server may close before the last byte is sent
            client.send(b"a:\r\n" * 2 * LIMITS.body_bytes)
        assert eventually(lambda: running.server.counters.refused == {431: 1})


def test_a_client_that_leaves_in_its_body_is_no_request(running: Running) -> None:
    with capture_logs() as logs, Client(running.server, trust()) as client:
        client.send(request("/fails", "Content-Length: 10", method="POST"))
    assert code(running) == 200  # after the end of that connection, so the application would have failed by now
    assert not logs


def test_a_request_that_takes_too_long_is_a_504(tls: LiveTls) -> None:
    with serving(replace(LIMITS, response_s=0.2), tls) as running, Client(running.server, trust()) as client:
        assert client.get("/wait").code == 504


def test_a_response_after_a_504_is_not_observed() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    codes: list[int] = []

    def slow(request: Request) -> Answer:
        begun.set()
        go_on.wait(20)
        return text("late")

    app = create_app(
        {"/slow": slow, "/": lambda request: text("ok")}, observe=lambda handled: codes.append(handled.code)
    )

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        try:
            return app(environ, start_response)
        finally:
            if environ["PATH_INFO"] == "/slow":
                ended.set()

    server = Server(application, "127.0.0.1", 0, limits=replace(LIMITS, response_s=0.2))
    server.start()
    try:
        while not begun.is_set():  # on a busy machine the time can be over before a thread is free
            with Client(server) as client, capture_logs():
                assert client.get("/slow").code == 504
        go_on.set()
        assert ended.wait(20)
        with Client(server) as client:
            assert client.get("/").code == 200
        assert codes == [200]
    finally:
        server.stop()


# Deadlines.


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        request("/", "Content-Length: 10", method="POST"),
        request("/", "Transfer-Encoding: chunked", method="POST"),
        request("/") + b"GET / HT",
    ],
    ids=["nothing", "an empty line", "a path", "a header", "a body", "chunks", "a second request in the packet"],
)
def test_a_request_that_does_not_arrive_ends_the_connection(quick: Running, sent: bytes) -> None:
    closed = quick.server.counters.closed_for_time
    with Client(quick.server, trust()) as client:
        client.send(sent)
        assert client.is_closed()
    assert quick.server.counters.closed_for_time > closed


def test_a_slow_head_does_not_extend_its_deadline(quick: Running) -> None:
    with Client(quick.server, trust()) as client:
        client.send(b"GET / HTTP/1.1\r\nX-Slow: ")
        with suppress(OSError):
            for _ in range(200):
                client.send(b"x")
                time.sleep(0.02)
            pytest.fail("the connection is still open")


def test_an_idle_connection_ends(quick: Running) -> None:
    with Client(quick.server, trust()) as client:
        assert client.get("/").code == 200
        assert client.is_closed()


def test_the_aggregator_closes_idle_connections_first() -> None:
    assert LIMITS.idle_s > 90  # seconds after which Go's client drops an idle connection


def test_a_client_that_stops_reading_is_ended(quick: Running) -> None:
    with Client(quick.server, trust(), window=4096) as client:
        client.send(request("/large"))
        assert eventually(lambda: quick.server.connections == 0)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n"], ids=["nothing", "half", "plain HTTP"])
def test_a_stalled_handshake_ends(quick: Running, sent: bytes) -> None:
    with Client(quick.server) as client:
        client.send(sent)
        assert client.is_closed()
    assert eventually(lambda: quick.server.counters.handshakes == 0)


# Other clients.


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01", request("/wait"), MANY_FIELDS], ids=["handshakes", "requests", "heads"]
)
def test_slow_clients_do_not_delay_others(tls: LiveTls, sent: bytes) -> None:
    with serving(tls=tls) as running, ExitStack() as stack:
        aggregator = stack.enter_context(Client(running.server, trust(AGGREGATOR)))
        for _ in range(20):
            is_stalled = sent.startswith(b"\x16")
            client = stack.enter_context(Client(running.server, None if is_stalled else trust()))
            client.send(sent)
        for _ in range(5):
            assert aggregator.get("/").code == 200
            assert stack.enter_context(Client(running.server, trust(AGGREGATOR))).get("/").code == 200


def test_one_connection_too_many_closes_the_least_recently_used_without_a_certificate(tls: LiveTls) -> None:
    with serving(replace(LIMITS, connections=3), tls) as running, ExitStack() as stack:
        aggregator, unused, used = (
            stack.enter_context(Client(running.server, trust(leaf))) for leaf in (AGGREGATOR, None, None)
        )
        assert [client.get("/").code for client in (aggregator, unused, used)] == [200, 200, 200]
        new = stack.enter_context(Client(running.server, trust()))
        assert new.get("/").code == 200
        assert unused.is_closed()
        assert [client.get("/").code for client in (aggregator, used, new)] == [200, 200, 200]
        assert running.server.counters.closed_for_room == 1
        assert running.server.connections == 3


def test_one_handshake_too_many_ends_the_oldest(tls: LiveTls) -> None:
    with serving(replace(LIMITS, handshakes=2), tls) as running, ExitStack() as stack:
        first, second = (stack.enter_context(Client(running.server)) for _ in range(2))
        assert eventually(lambda: running.server.counters.handshakes == 2)
        assert code(running) == 200
        assert first.is_closed()
        assert not second.is_closed(within_s=0.1)


def protocols() -> list[LimitedProtocol]:
    """The connections that are in memory."""
    return [found for found in gc.get_objects() if isinstance(found, LimitedProtocol)]


def test_the_memory_of_a_closed_connection_needs_no_garbage_collection(tls: LiveTls) -> None:
    gc.disable()
    try:
        with serving(tls=tls) as running:
            before = {id(protocol) for protocol in protocols()}
            with Client(running.server, trust()) as client:
                client.get("/")
                opened = [ref(protocol) for protocol in protocols() if id(protocol) not in before]
            assert opened
            assert eventually(lambda: all(protocol() is None for protocol in opened))
    finally:
        gc.enable()


def test_many_pipelined_requests_end_the_connection(running: Running) -> None:
    with Client(running.server, trust()) as client:
        client.send(request("/") * 1000)
        assert client.is_closed()


# Start and end.


def test_requests_in_progress_are_answered_when_the_server_stops(tls: LiveTls) -> None:
    with serving(tls=tls) as running, Client(running.server, trust()) as busy, Client(running.server, trust()) as idle:
        assert idle.get("/").code == 200
        busy.send(request("/wait"))
        assert eventually(lambda: running.server.connections == 2)
        stopping = threading.Thread(target=running.server.stop)
        stopping.start()
        assert idle.is_closed()
        running.application.go_on.set()
        assert busy.response().code == 200
        stopping.join(20)
        with pytest.raises(OSError, match="refused"):
            Client(running.server)


def test_a_port_in_use_names_the_option(running: Running) -> None:
    with pytest.raises(SetupError, match=r"the port is taken.*--port"):
        Server(running.application, "127.0.0.1", running.server.port).start()


def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(SetupError, match="must be one of this machine"):
        Server(lambda environ, start: [], "192.0.2.1", 0).start()


def is_reached(by: str, host: str) -> bool:
    """Whether a client reaches a server of this host by an address."""
    with ExitStack() as stack:
        server = Server(lambda environ, start: [], host, 0)
        server.start()
        stack.callback(server.stop)
        stack.enter_context(socket.create_connection((by, server.port), 5))
        return True


@pytest.mark.skipif(not (IPV6.is_file() and IPV6.read_text("ascii")), reason="this machine has no IPv6")
def test_an_address_of_ipv6_is_listened_on() -> None:
    assert is_reached("::1", "::1")
    assert is_reached("::1", "::")


def test_all_addresses_are_also_those_of_ipv4() -> None:
    """The pods of an IPv6-only cluster have no address of IPv4, those of most clusters none of IPv6."""
    assert is_reached("127.0.0.1", "::")


def test_a_kernel_without_ipv6_listens_on_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    assert is_reached("127.0.0.1", "::")
