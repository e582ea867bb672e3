"""The server over real sockets: answers, connections that are kept, and what is left of it when it stops."""

import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from raw_callers import LARGE, Caller, eventually, request, serving, trust
from serving_certificates import serving_files

from adapter.config import Limits
from adapter.errors import SetupError
from adapter.serving.api.rendering import Response
from adapter.serving.sockets.at_once import wire
from adapter.serving.sockets.bridge import of_wsgi
from adapter.serving.sockets.listening import listen
from adapter.serving.sockets.server import Server
from adapter.serving.sockets.tls import LiveTls


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(Limits(linger_s=0.05)) as running:
        yield running


@pytest.fixture
def caller(server: Server) -> Iterator[Caller]:
    with Caller(server) as connected:
        yield connected


@pytest.mark.parametrize("path", ["/memory", "/elsewhere"], ids=["at once", "by the application"])
def test_an_answer_says_when_it_was_made_and_how_long_it_is(caller: Caller, path: str) -> None:
    answer = caller.ask(path)
    assert answer.code == 200
    assert answer.headers["date"].endswith("GMT")
    assert int(answer.headers["content-length"]) == len(answer.body) > 0
    assert "server" not in answer.headers


@pytest.mark.parametrize("path", ["/memory", "/elsewhere"], ids=["at once", "by the application"])
def test_an_answer_to_head_has_no_body_and_leaves_the_connection_in_step(caller: Caller, path: str) -> None:
    head = caller.ask(path, method="HEAD")
    assert (head.code, head.body) == (200, b"")
    assert int(head.headers["content-length"]) > 0
    assert caller.ask("/memory").body == b"/memory"


@pytest.mark.parametrize(
    "headers",
    [
        ("Connection: keep-alive",),
        ("Content-Length: 0",),
        ("Accept: application/json", "X-Remote-User: alice", "X-Remote-Group: a", "X-Remote-Group: b"),
    ],
    ids=["keep-alive", "empty body", "front proxy"],
)
def test_a_plain_question_is_answered_at_once(caller: Caller, headers: tuple[str, ...]) -> None:
    for _ in range(3):
        assert caller.ask("/memory", *headers).body == b"/memory"


@pytest.mark.parametrize(
    "question",
    [
        b"POST /memory HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /memory HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"GET /memory HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
        b"GET /memory HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"GET /memory HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /memory HTTP/1.0\r\nHost: x\r\n\r\n",
    ],
    ids=["body", "chunked body", "Expect", "Upgrade", "Connection: close", "HTTP/1.0"],
)
def test_an_unusual_question_is_left_to_the_application(caller: Caller, question: bytes) -> None:
    caller.say(question)
    assert caller.answer().document["path"] == "/memory"


@pytest.mark.parametrize(
    "question",
    [request("/memory", "Connection: close"), request("/", "Connection: close"), b"GET / HTTP/1.0\r\n\r\n"],
    ids=["memory", "application", "HTTP/1.0"],
)
def test_who_wants_to_leave_is_let_go(caller: Caller, question: bytes) -> None:
    caller.say(question)
    assert caller.answer().headers["connection"] == "close"
    assert caller.is_closed(within_s=5)


def test_who_wants_another_protocol_is_answered_and_let_go(caller: Caller) -> None:
    answer = caller.ask("/", "Connection: Upgrade", "Upgrade: h2c")
    assert (answer.code, answer.headers["connection"]) == (200, "close")
    assert caller.is_closed(within_s=5)


@pytest.mark.parametrize("encrypted", [True, False], ids=["TLS", "plain"])
def test_who_leaves_before_his_answers_costs_no_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, encrypted: bool
) -> None:
    certificate = serving_files(tmp_path)
    tls = LiveTls(str(certificate.cert), str(certificate.key)) if encrypted else None
    with serving(tls=tls) as server, Caller(server, trust() if encrypted else None) as caller:
        caller.say(request("/slow/0.1/body") * 3)
        time.sleep(0.05)
        caller.socket.close()
        time.sleep(0.5)
    assert caplog.records == []


def test_nothing_is_answered_after_the_last_answer(caller: Caller) -> None:
    caller.say(b"GET /large HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" * 2)
    assert caller.answer().body == LARGE
    assert caller.is_closed(within_s=5)


def test_an_answer_from_memory_may_be_the_last(caller: Caller) -> None:
    assert caller.ask("/memory/last").body == b"bye"
    assert caller.is_closed(within_s=5)


@pytest.mark.parametrize("path", ["/fails", "/memory/fails"], ids=["application", "memory"])
def test_a_failure_is_a_500_that_tells_nothing_and_keeps_the_connection(caller: Caller, path: str) -> None:
    """Case 76; Go closes without an answer, err-102."""
    answer = caller.ask(path)
    assert (answer.code, answer.document["kind"], answer.document["reason"]) == (500, "Status", "InternalError")
    assert b"secret" not in answer.body
    assert caller.ask("/memory").code == 200
    assert caller.ask("/").code == 200


def test_an_answer_that_breaks_off_ends_the_connection(caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
    answer = caller.ask("/breaks")
    assert (answer.code, answer.body) == (200, b"12345")
    assert caller.is_closed(within_s=5)
    assert "secret of the inside" in caplog.text


def test_answers_come_in_the_order_of_the_questions(caller: Caller) -> None:
    caller.say(request("/slow/0.05") + request("/memory/1") + request("/2") + request("/memory/3"))
    answered = [caller.answer().document["path"] for _ in range(4)]  # none from memory: the first one is waited for
    assert answered == ["/slow/0.05", "/memory/1", "/2", "/memory/3"]


def test_a_small_body_reaches_the_application(caller: Caller) -> None:
    caller.say(request("/body", "Content-Length: 5", method="POST") + b"hello")
    assert caller.answer().document["body"] == 5
    assert caller.ask("/memory").code == 200


def test_a_trailer_is_no_header(caller: Caller) -> None:
    """A proxy strips headers that say who asks; what follows the body passes it unseen."""
    head = request("/", "Transfer-Encoding: chunked", "Trailer: X-Remote-User", method="POST")
    caller.say(head + b"0\r\nX-Remote-User: root\r\n\r\n")
    assert "x-remote-user" not in [name for name, _ in caller.answer().document["headers"]]
    assert caller.ask("/memory").code == 200


@pytest.mark.parametrize(
    "nonsense", [b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"], ids=repr
)
def test_what_is_no_request_is_a_400_and_the_end(caller: Caller, nonsense: bytes) -> None:
    caller.say(nonsense)
    assert caller.answer().code == 400
    assert caller.is_closed(within_s=5)


@pytest.mark.parametrize("path", ["/memory", "/elsewhere"], ids=["at once", "by the application"])
@pytest.mark.parametrize(
    ("head", "code", "text"),
    [
        pytest.param(
            "GET {path}/%zz HTTP/1.1\r\nHost: x", 400, "400 Bad Request", id="no digits behind a percent sign"
        ),
        pytest.param("GET {path}/%2 HTTP/1.1\r\nHost: x", 400, "400 Bad Request", id="one digit"),
        pytest.param("GET {path}/% HTTP/1.1\r\nHost: x", 400, "400 Bad Request", id="none at the end"),
        pytest.param("GET {path}#% HTTP/1.1\r\nHost: x", 400, "400 Bad Request", id="none behind a number sign"),
        pytest.param("GET http://x{path}/%zz?a HTTP/1.1\r\nHost: x", 400, "400 Bad Request", id="in a whole address"),
        pytest.param("GET {path} HTTP/1.1", 400, "400 Bad Request: missing required Host header", id="no Host"),
        pytest.param("GET {path} HTTP/1.1\r\nHost: x\r\nhost: x", 400, "400 Bad Request", id="two Hosts"),
        pytest.param("GET {path} HTTP/1.0\r\nHost: x\r\nHost: y", 400, "400 Bad Request", id="two Hosts, HTTP/1.0"),
        pytest.param(
            "GET {path} HTTP/1.1\r\nHost: a b", 400, "400 Bad Request: malformed Host header", id="a blank in Host"
        ),
        pytest.param(
            "GET {path} HTTP/1.1\r\nHost: a/b", 400, "400 Bad Request: malformed Host header", id="a slash in Host"
        ),
        *(
            pytest.param(
                f"POST {{path}} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {coding}",
                501,
                "Unsupported transfer encoding",
                id=coding,
            )
            for coding in ("gzip, chunked", "gzip", "identity", "xchunked", "gzip\r\nTransfer-Encoding: chunked")
        ),
    ],
)
def test_a_head_that_go_refuses_is_refused_as_go_does(
    caller: Caller, path: str, head: str, code: int, text: str
) -> None:
    caller.say(f"{head.format(path=path)}\r\n\r\n".encode() + request("/memory"))
    answer = caller.answer()
    assert (answer.code, answer.body.decode()) == (code, text)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["connection"] == "close"
    assert caller.is_closed(within_s=5)


@pytest.mark.parametrize(
    "said",
    [
        b"GET /elsewhere HTTP/1.1\r\nHost: \r\n\r\n",
        b"GET /elsewhere HTTP/1.1\r\nhOST:[fe80::1%25eth0]:6443 \r\n\r\n",
        b"GET /elsewhere?a=%zz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%65lsewhere HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://y/elsewhere HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /elsewhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked \r\n\r\n0\r\n\r\n",
    ],
    ids=["an empty Host", "an address", "a query that is not well-formed", "an escape", "a whole address", "chunked"],
)
def test_a_head_that_go_takes_is_taken(caller: Caller, said: bytes) -> None:
    for _ in range(2):
        caller.say(said)
        assert caller.answer().document["path"] == "/elsewhere"


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a#b", "/a#b", ""),
        ("/a#b?c=d", "/a#b", "c=d"),
        ("/a?c=d#e", "/a", "c=d%23e"),
        ("/a?c=d#e?f#g", "/a", "c=d%23e?f%23g"),
        ("http://x/a#b", "/a#b", ""),
    ],
)
def test_nothing_of_a_target_is_dropped_behind_a_number_sign(
    caller: Caller, target: str, path: str, query: str
) -> None:
    asked = caller.ask(target).document
    assert (asked["path"], asked["query"]) == (path, query)
    assert caller.ask(target.replace("/a", "/memory")).body.decode() == path.replace("/a", "/memory")


def test_nonsense_after_a_question_does_not_spoil_its_answer(caller: Caller) -> None:
    caller.say(request("/slow/0.05") + b"nonsense\r\n\r\n")
    assert caller.answer().document["path"] == "/slow/0.05"
    assert caller.is_closed(within_s=5)


def test_many_ask_at_once(server: Server) -> None:
    def ask(number: int) -> int:
        with Caller(server) as each:
            return each.ask("/memory" if number % 2 else "/slow/0.01").code

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(ask, range(100))) == [200] * 100


def test_a_reply_without_content_has_no_length() -> None:
    assert wire(Response(304, ((b"ETag", b'"1"'),), b"")) == b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'


# What waits on threads.


def wsgi(environ: dict[str, object], start_response: object) -> Iterable[bytes]:
    assert callable(start_response)
    if environ["PATH_INFO"] == "/slow":
        time.sleep(0.3)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def test_a_wsgi_application_is_served_on_threads_that_end_with_the_server() -> None:
    before = set(threading.enumerate())
    server = Server(of_wsgi(wsgi, threads=2), "127.0.0.1", 0)
    server.start()
    with Caller(server) as one, Caller(server) as two:
        one.say(request("/slow"))
        assert two.ask("/").body == b"ok"
        assert one.answer().body == b"ok"
    server.stop()
    assert eventually(lambda: set(threading.enumerate()) <= before)


# Start and stop.


def test_nothing_is_left_after_the_end(tmp_path: Path) -> None:
    with serving():  # what a first server leaves for good, such as imported modules, is not counted
        pass
    certificate = serving_files(tmp_path)
    tls = LiveTls(str(certificate.cert), str(certificate.key))
    threads, files = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    with ExitStack() as callers:
        with serving(tls=tls) as server:
            stalled = callers.enter_context(Caller(server))
            for _ in range(5):
                callers.enter_context(Caller(server, trust())).ask("/")
            callers.enter_context(Caller(server, trust())).say(request("/slow/0.2"))
            assert server.connections.open == 7
        assert server.connections.open == 0
        assert stalled.is_closed(within_s=1)
    assert set(threading.enumerate()) <= threads
    assert len(os.listdir("/proc/self/fd")) == files


def test_an_answer_in_progress_is_finished_at_the_end() -> None:
    server = Server(of_wsgi(wsgi), "127.0.0.1", 0)
    server.start()
    with Caller(server) as caller:
        caller.say(request("/slow"))
        time.sleep(0.1)
        server.stop()
        assert caller.answer().body == b"ok"


def test_an_idle_client_does_not_hold_up_the_end() -> None:
    with ExitStack() as callers:
        with serving(Limits(handshake_s=60)) as server:
            callers.enter_context(Caller(server)).ask("/")
            callers.enter_context(Caller(server))
            began_s = time.monotonic()
        assert time.monotonic() - began_s < 2
    with pytest.raises(ConnectionRefusedError):
        Caller(server)


def test_a_taken_port_is_told_with_the_fix() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"cannot listen on 127.0.0.1:{port}: the port is taken; choose another"):
            Server(of_wsgi(wsgi), "127.0.0.1", port).start()


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(SetupError, match="the address must be one of this machine"):
        Server(of_wsgi(wsgi), "192.0.2.1", 0).start()


def test_a_server_that_never_started_stops() -> None:
    Server(of_wsgi(wsgi), "127.0.0.1", 0).stop()


def test_answers_are_sent_at_once() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        listener.setblocking(True)
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
