"""What callers cost each other: each one misbehaves in his way, and a neighbour is answered all the while."""

import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress

import pytest
from raw_callers import BOUNDED_S, LARGE, Caller, eventually, longest_wait_s, request, serving, trust
from serving_certificates import CLIENTS, pem, serving_files
from structlog.testing import capture_logs

from adapter.config import Limits
from adapter.serving.sockets.bridge import of_wsgi
from adapter.serving.sockets.limits import OTHER_FILES, affordable
from adapter.serving.sockets.server import Server
from adapter.serving.sockets.tls import LiveTls

AGGREGATOR = CLIENTS.issue_cert(common_name="front-proxy-client")
# Each limit that a test waits for, cut short; the others as they are.
IMPATIENT = Limits(handshake_s=0.4, header_s=0.4, write_s=0.4, idle_s=1.5, linger_s=0.05)
TEN_MB = 10 * 2**20


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> LiveTls:
    files = serving_files(tmp_path_factory.mktemp("certificates"))
    return LiveTls(str(files.cert), str(files.key), lambda: pem(CLIENTS))


@pytest.fixture(scope="module")
def patient(tls: LiveTls) -> Iterator[Server]:
    with serving(Limits(linger_s=0.4), tls) as server:
        yield server


@pytest.fixture(scope="module")
def impatient(tls: LiveTls) -> Iterator[Server]:
    with serving(IMPATIENT, tls) as server:
        yield server


def neighbour(server: Server, stack: ExitStack) -> Caller:
    return stack.enter_context(Caller(server, trust(AGGREGATOR)))


def goes_well_for_s(act: Callable[[], object]) -> float:
    """How long it can be done again and again until the connection is found closed; 5 s if it never is."""
    began_s = time.monotonic()
    with suppress(OSError):
        while time.monotonic() - began_s < 5:
            act()
            time.sleep(0.05)
    return time.monotonic() - began_s


def codes_until_the_end(caller: Caller) -> list[int]:
    """Of the answers that come before the connection is closed."""
    codes: list[int] = []
    with suppress(OSError):
        while True:
            codes.append(caller.answer().code)
    return codes


# Those who say too little.


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n"], ids=["nothing", "half a hello", "HTTP"])
def test_20_stalled_handshakes_cost_nobody_else(patient: Server, said: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(Caller(patient)).say(said)
        assert longest_wait_s(neighbour(patient, stack)) < BOUNDED_S


def test_a_stalled_handshake_is_ended_in_time(impatient: Server) -> None:
    ended = impatient.connections.ended_for_time
    with Caller(impatient) as stalled:
        stalled.say(b"\x16\x03\x01")
        assert not stalled.is_closed(within_s=0.2)
        assert stalled.is_closed(within_s=2)
    assert impatient.connections.ended_for_time == ended + 1


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        request("/body", "Content-Length: 10", method="POST"),
        request("/body", "Transfer-Encoding: chunked", method="POST"),
        request("/", "Content-Length: 10", method="POST"),
    ],
    ids=["a target", "a header", "a body that is read", "chunks that are read", "a body that is not read"],
)
def test_a_slow_writer_is_ended_in_time_however_often_he_writes(impatient: Server, said: bytes) -> None:
    with ExitStack() as stack:
        slow = stack.enter_context(Caller(impatient, trust()))
        slow.say(said)
        asking = neighbour(impatient, stack)

        def both_ask() -> None:
            assert asking.ask("/memory").code == 200
            slow.say(b"1")

        assert goes_well_for_s(both_ask) < 2.5


def test_a_body_that_does_not_come_keeps_nobody_from_his_answer(impatient: Server) -> None:
    with Caller(impatient, trust()) as slow:
        assert slow.ask("/", "Content-Length: 10", method="POST").code == 200
        assert slow.is_closed(within_s=2)


def test_a_connection_is_kept_for_longer_than_the_aggregator_keeps_it() -> None:
    """It drops its idle connections after 90 s, and must not meet one that the server dropped first."""
    assert Limits().idle_s > 90


@pytest.mark.parametrize("asks", [True, False], ids=["after a request", "before the first one"])
def test_an_idle_connection_is_kept_as_long_as_said_and_no_longer(asks: bool) -> None:
    with serving(Limits(idle_s=0.6)) as server, Caller(server) as idle:
        if asks:
            assert idle.ask("/memory").code == 200
            time.sleep(0.4)
            assert idle.ask("/").code == 200
        assert not idle.is_closed(within_s=0.4)
        assert idle.is_closed(within_s=2)


def test_who_is_answered_slowly_is_not_idle() -> None:
    with serving(Limits(idle_s=0.2)) as server, Caller(server) as waiting:
        assert waiting.ask("/slow/0.6").code == 200


# Those who do not listen.


def test_slow_readers_cost_nobody_else_and_are_ended_in_time(impatient: Server) -> None:
    with ExitStack() as stack:
        asking = neighbour(impatient, stack)
        for _ in range(5):
            stack.enter_context(Caller(impatient, trust(), window=4096)).say(request("/large"))
        assert longest_wait_s(asking, 200) < BOUNDED_S
        assert eventually(lambda: asking.ask("/memory").code == 200 and impatient.connections.open == 1)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/large", ()),
        ("/large", ("Connection: close",)),
        ("/large", ("Content-Length: 1000000",)),
        ("/memory/large", ()),
    ],
    ids=["kept", "last", "last, with a body", "from memory"],
)
def test_a_slow_reader_who_goes_on_reading_gets_everything(tls: LiveTls, path: str, headers: tuple[str, ...]) -> None:
    """In all he takes longer than any limit allows for, but never stops for that long."""
    limits = Limits(header_s=0.6, write_s=0.6, idle_s=0.6, linger_s=0.2)
    with serving(limits, tls) as server, Caller(server, trust(), window=4096) as slow:
        slow.say(request(path, *headers))
        heard, body_from = bytearray(), 0
        while not body_from or len(heard) < body_from + len(LARGE):
            more = slow.socket.recv(65536)
            assert more, "it ended before its end"
            if len(heard) // 2**20 < (len(heard) + len(more)) // 2**20:
                time.sleep(0.1)
            heard += more
            body_from = heard.find(b"\r\n\r\n") + 4
        assert heard.startswith(b"HTTP/1.1 200")


def test_who_asks_on_and_never_reads_is_ended_in_time(impatient: Server) -> None:
    with Caller(impatient, trust(), window=4096) as deaf:
        assert goes_well_for_s(lambda: deaf.say(request("/large") * 4)) < 2.5


def test_who_does_not_read_is_answered_from_memory_no_further(patient: Server) -> None:
    with Caller(patient, trust(), window=4096) as deaf:
        deaf.say(request("/memory/large"))
        time.sleep(0.1)
        deaf.say(request("/memory"))
        time.sleep(0.1)
        assert deaf.answer().body == LARGE
        assert deaf.answer().document["path"] == "/memory", "by the application, which waits for the reader"


# Those who say too much.


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"GET /?labelSelector=" + b"a" * TEN_MB, 414),
        (b"GET / HTTP/1.1\r\nX-Large: " + b"a" * TEN_MB, 431),
        (b"GET / HTTP/1.1\r\n" + b"X-Many: a\r\n" * (TEN_MB // 11), 431),
    ],
    ids=["selector", "header", "headers"],
)
def test_10_mb_of_a_head_are_refused_and_cost_nobody_else(patient: Server, said: bytes, code: int) -> None:
    with ExitStack() as stack:
        large = [stack.enter_context(Caller(patient, trust())) for _ in range(3)]
        asking = neighbour(patient, stack)
        for caller in large:
            say_while_heard(caller, said)
            assert longest_wait_s(asking, 4) < BOUNDED_S
        answers = [caller.answer() for caller in large]
        assert [answer.code for answer in answers] == [code] * 3
        assert all(answer.document["kind"] == "Status" for answer in answers)
        assert all(answer.headers["connection"] == "close" for answer in answers)
        assert patient.connections.held_bytes == 0  # though they are still connected


def say_while_heard(caller: Caller, said: bytes) -> None:
    with suppress(OSError):
        caller.say(said)


@pytest.mark.parametrize("path", ["/", "/body"], ids=["unread", "read"])
@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "with its length"])
def test_10_mb_of_a_body_are_answered_unread_and_end_the_connection(patient: Server, path: str, chunked: bool) -> None:
    with ExitStack() as stack:
        large = stack.enter_context(Caller(patient, trust()))
        if chunked:
            said = request(path, "Transfer-Encoding: chunked", method="POST") + b"%x\r\n" % TEN_MB + b"a" * TEN_MB
        else:
            said = request(path, f"Content-Length: {TEN_MB}", method="POST") + b"a" * TEN_MB
        say_while_heard(large, said)
        answer = large.answer()
        assert (answer.code, answer.headers.get("connection", "close")) == (200, "close")
        assert answer.document["body"] <= Limits().body_bytes
        assert longest_wait_s(neighbour(patient, stack)) < BOUNDED_S
        assert large.is_closed(within_s=5)


def test_a_head_that_comes_in_one_piece_is_measured_too() -> None:
    with serving(Limits(header_bytes=1_000, linger_s=0.05)) as server, Caller(server) as caller:
        assert caller.ask("/memory", f"X-Small: {'a' * 800}").code == 200
        assert caller.ask("/memory", f"X-Large: {'a' * 1_000}").code == 431
        assert caller.is_closed(within_s=5)


def test_a_head_is_measured_without_the_requests_that_came_before_it_in_the_same_piece() -> None:
    with serving(Limits(header_bytes=1_000, linger_s=0.2)) as server, Caller(server) as caller:
        caller.say(request("/memory", f"X-Padding: {'a' * 800}") + request("/memory", f"X-Small: {'a' * 300}")[:-4])
        assert caller.answer().code == 200
        caller.say(b"\r\n\r\n")
        assert caller.answer().code == 200


@pytest.mark.parametrize("path", ["/", "/body"], ids=["unread", "read"])
def test_a_body_that_is_announced_as_too_large_is_not_waited_for(patient: Server, path: str) -> None:
    with Caller(patient, trust()) as caller:
        answer = caller.ask(path, f"Content-Length: {TEN_MB}", method="POST")
        assert (answer.code, answer.headers["connection"]) == (200, "close")


def test_who_is_still_sending_after_his_last_answer_may_read_it_in_peace(patient: Server) -> None:
    """Closed at once, his system would drop the answer with the connection."""
    with Caller(patient, trust()) as large:
        large.ask("/", f"Content-Length: {TEN_MB}", method="POST")
        large.say(b"a" * 100_000)
        assert not large.is_closed(within_s=0.1)
        large.say(b"a" * 100_000)
        assert large.is_closed(within_s=5)


def test_a_long_selector_within_the_limit_is_answered(patient: Server) -> None:
    with Caller(patient, trust()) as caller:
        selector = "a" * (Limits().uri_bytes - 100)
        assert caller.ask(f"/?labelSelector={selector}", f"X-Large: {'a' * 30_000}").code == 200
        assert caller.ask("/memory").code == 200


def test_heads_that_arrive_in_part_hold_a_bounded_memory_together(tls: LiveTls) -> None:
    with serving(Limits(held_bytes=200_000, linger_s=0.2), tls) as server, ExitStack() as stack:
        callers = [stack.enter_context(Caller(server, trust())) for _ in range(10)]
        for caller in callers:
            caller.say(b"GET / HTTP/1.1\r\nX-Large: " + b"a" * 50_000)
        assert eventually(lambda: server.connections.open < 5)
        assert 0 < server.connections.held_bytes <= 200_000
        assert neighbour(server, stack).ask("/memory").code == 200
    assert server.connections.held_bytes == 0


def test_requests_sent_ahead_are_answered_up_to_a_number(patient: Server) -> None:
    with ExitStack() as stack:
        hasty = stack.enter_context(Caller(patient, trust()))
        asking = neighbour(patient, stack)
        hasty.say(request("/memory") * 1_000)
        answers = [hasty.answer() for _ in range(Limits().pipelined + 1)]
        assert [answer.code for answer in answers] == [200] * Limits().pipelined + [429]
        assert longest_wait_s(asking) < BOUNDED_S
        assert hasty.is_closed(within_s=5)


def test_requests_sent_ahead_of_a_slow_answer_do_not_pile_up(patient: Server) -> None:
    with ExitStack() as stack:
        hasty = stack.enter_context(Caller(patient, trust()))
        hasty.say(request("/slow/0.15") * 2 + request("/memory") * 1_000)
        assert longest_wait_s(neighbour(patient, stack)) < BOUNDED_S
        codes = codes_until_the_end(hasty)
        assert codes == [200] * len(codes)
        assert 2 <= len(codes) <= Limits().pipelined + 1


def test_requests_sent_ahead_in_several_pieces_do_not_pile_up_either(patient: Server) -> None:
    with Caller(patient, trust()) as hasty:
        with suppress(OSError):
            for _ in range(10):
                hasty.say(request("/slow/0.02", f"X-Padding: {'a' * 300}") * 10)
        codes = codes_until_the_end(hasty)
        assert codes == [200] * len(codes)
        assert len(codes) < 100


def test_strangers_who_take_all_the_work_leave_room_for_those_with_a_certificate(tls: LiveTls) -> None:
    with serving(Limits(requests=5), tls) as server, ExitStack() as stack:
        strangers = [stack.enter_context(Caller(server, trust())) for _ in range(6)]
        for stranger in strangers:
            stranger.say(request("/slow/0.5"))
        asking = neighbour(server, stack)
        assert asking.ask("/").code == 200
        answers = [stranger.answer() for stranger in strangers]
        assert sorted(answer.code for answer in answers) == [200] * 5 + [429]
        assert "retry-after" not in {name for answer in answers for name in answer.headers}
        assert strangers[0].ask("/").code == 200


def test_strangers_who_hold_all_threads_do_not_hold_up_those_with_a_certificate(tls: LiveTls) -> None:
    may_end = threading.Event()

    def application(environ: dict[str, object], start_response: Callable[..., object]) -> Iterable[bytes]:
        assert environ["PATH_INFO"] != "/held" or may_end.wait(10)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    server = Server(of_wsgi(application, threads=2), "127.0.0.1", 0, tls)
    server.start()
    with ExitStack() as stack:
        stack.callback(server.stop)
        stack.callback(may_end.set)
        strangers = [stack.enter_context(Caller(server, trust())) for _ in range(6)]
        for stranger in strangers:
            stranger.say(request("/held"))
        assert neighbour(server, stack).ask("/").body == b"ok"
        may_end.set()
        assert [stranger.answer().body for stranger in strangers] == [b"ok"] * 6


# Files.


def test_a_process_with_few_files_takes_fewer_connections_and_says_so() -> None:
    program = (
        "import resource; from adapter.serving.sockets.limits import affordable;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 400)); print(affordable(512));"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *told, connections, soft = done.stdout.split("\n")[:-1]
    assert (connections, soft) == ("200", "400")
    assert "ulimit -Hn" in told[0]


def test_a_process_with_enough_files_takes_all_connections_in_silence() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = 1000 if hard == resource.RLIM_INFINITY else min(1000, hard - OTHER_FILES)
    with capture_logs() as logs:
        assert affordable(wanted) == wanted
    assert logs == []
