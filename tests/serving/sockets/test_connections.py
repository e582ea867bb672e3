"""How many connections there are, which of them goes when there are too many, and that a flood keeps nobody out."""

import asyncio
import gc
import math
import socket
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_callers import BOUNDED_S, Caller, eventually, longest_wait_s, serving, trust
from serving_certificates import CLIENTS, pem, serving_files

from adapter.config import Limits
from adapter.serving.sockets.connections import Connection, Connections, nothing
from adapter.serving.sockets.listening import Acceptor, listen
from adapter.serving.sockets.server import Server
from adapter.serving.sockets.tls import LiveTls

AGGREGATOR = CLIENTS.issue_cert(common_name="front-proxy-client")
MOST = 100


class Opened:
    """Connections by number, and who was ended for others, in order."""

    def __init__(self, most: int, handshakes: int = 100) -> None:
        self.ended: list[int] = []
        self.connections = Connections(most, handshakes, handshake_s=10)
        self._known: dict[int, Connection] = {}

    def accept(self, *numbers: int) -> None:
        for number in numbers:
            self._known[number] = connection = self.connections.add()
            connection.end = partial(self.ended.append, number)

    def ready(self, *numbers: int) -> None:
        for number in numbers:
            self.connections.ready(self._known[number], partial(self.ended.append, number))
            self._known[number].until_s = math.inf

    def use(self, number: int) -> None:
        self.connections.used(self._known[number])

    def admit(self, *numbers: int) -> None:
        for number in numbers:
            self.connections.admit(self._known[number])

    def close(self, number: int) -> None:
        self.connections.remove(self._known[number])


def test_the_longest_unused_stranger_goes_first() -> None:
    opened = Opened(most=3)
    opened.accept(1, 2, 3)
    opened.ready(1, 2, 3)
    opened.use(1)
    opened.accept(4, 5)
    assert opened.ended == [2, 3]


def test_strangers_go_before_handshakes_and_those_before_one_that_was_admitted() -> None:
    opened = Opened(most=3)
    opened.accept(1, 2)
    opened.ready(1, 2)
    opened.admit(1)
    opened.accept(3, 4, 5)
    assert opened.ended == [2, 3]
    assert opened.connections.admitted == 1


def test_without_others_the_longest_unused_of_the_admitted_goes() -> None:
    opened = Opened(most=2)
    opened.accept(1, 2)
    opened.ready(1, 2)
    opened.admit(1, 2)
    opened.use(1)
    opened.accept(3)
    assert opened.ended == [2]


def test_of_too_many_handshakes_the_one_that_began_first_goes() -> None:
    opened = Opened(most=100, handshakes=2)
    opened.accept(1, 2)
    opened.ready(1)
    opened.accept(3, 4, 5)
    assert opened.ended == [2, 3]


def test_one_that_was_ended_for_others_may_not_stay_when_it_gets_ready() -> None:
    connections = Connections(most=100, handshakes=1, handshake_s=10)
    ended, kept = connections.add(), connections.add()
    assert not connections.ready(ended, nothing)
    assert connections.ready(kept, nothing)


def test_one_that_ends_leaves_room() -> None:
    opened = Opened(most=2)
    opened.accept(1, 2)
    opened.close(1)
    opened.accept(3)
    assert (opened.ended, opened.connections.open) == ([], 2)


def test_those_whose_time_is_over_end() -> None:
    opened = Opened(most=3)
    opened.accept(1, 2)
    opened.ready(2)
    opened.connections.end_late(time.monotonic() + 5)
    assert opened.ended == []
    opened.connections.end_late(time.monotonic() + 11)
    assert opened.ended == [1]
    assert opened.connections.ended_for_time == 1


@given(st.lists(st.tuples(st.sampled_from(["accept", "ready", "use", "admit", "close"]), st.integers(0, 9))))
def test_there_are_never_more_than_allowed_and_no_admitted_one_goes_while_there_are_others(
    moves: list[tuple[str, int]],
) -> None:
    opened = Opened(most=5, handshakes=3)
    others, admitted = set[int](), set[int]()
    for move, number in moves:
        gone_before = len(opened.ended)
        if move == "accept" and number not in others | admitted:
            opened.accept(number)
            for gone in opened.ended[gone_before:]:
                assert gone in (others or admitted)
                opened.close(gone)
                others.discard(gone)
                admitted.discard(gone)
            others.add(number)
        elif move in ("ready", "use") and number in others | admitted:
            opened.ready(number)
            opened.use(number)
        elif move == "admit" and number in others:
            opened.ready(number)
            opened.admit(number)
            others.discard(number)
            admitted.add(number)
        elif move == "close" and number in others | admitted:
            opened.close(number)
            others.discard(number)
            admitted.discard(number)
        assert opened.connections.open == len(others) + len(admitted) <= 5
        assert opened.connections.admitted == len(admitted)


# Over sockets.


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> LiveTls:
    files = serving_files(tmp_path_factory.mktemp("certificates"))
    return LiveTls(str(files.cert), str(files.key), lambda: pem(CLIENTS))


@pytest.fixture
def small(tls: LiveTls) -> Iterator[Server]:
    with serving(Limits(connections=MOST, handshake_s=30), tls) as server:
        yield server


def test_a_flood_of_silent_connections_keeps_nobody_out(small: Server) -> None:
    with ExitStack() as stack:
        asking = stack.enter_context(Caller(small, trust(AGGREGATOR)))
        assert asking.ask("/").code == 200
        for number in range(4 * MOST):
            stack.enter_context(Caller(small))
            if number % MOST == 0:
                assert longest_wait_s(asking, 10) < BOUNDED_S
        assert eventually(lambda: small.connections.open <= MOST)
        began_s = time.monotonic()
        with Caller(small, trust(AGGREGATOR)) as late:
            assert late.ask("/").code == 200
        assert time.monotonic() - began_s < BOUNDED_S
        assert asking.ask("/").code == 200
        assert small.connections.ended_for_room >= 3 * MOST


def test_strangers_who_were_served_do_not_drive_out_the_aggregator(small: Server) -> None:
    with ExitStack() as stack:
        asking = stack.enter_context(Caller(small, trust(AGGREGATOR)))
        assert asking.ask("/memory").code == 200
        context = trust()
        strangers = [stack.enter_context(Caller(small, context)) for _ in range(2 * MOST)]
        for stranger in strangers[-MOST // 2 :]:
            assert stranger.ask("/memory").code == 200
        assert asking.ask("/memory").code == 200
        assert small.connections.admitted == 1
        assert eventually(lambda: small.connections.open <= MOST)


@pytest.mark.parametrize(("path", "admitted"), [("/", 1), ("/memory", 1), ("/forbidden", 0)])
def test_who_is_refused_stays_a_stranger(small: Server, path: str, admitted: int) -> None:
    with Caller(small, trust(AGGREGATOR)) as caller:
        caller.ask(path)
        assert small.connections.admitted == admitted


def test_who_has_no_certificate_stays_a_stranger(small: Server) -> None:
    with Caller(small, trust()) as caller:
        assert caller.ask("/").code == 200
        assert small.connections.admitted == 0


def test_connections_that_are_closed_are_counted_no_more(small: Server) -> None:
    with ExitStack() as stack:
        for context in (None, trust(), trust(AGGREGATOR)):
            stack.enter_context(Caller(small, context))
        assert eventually(lambda: small.connections.open == 3)
    assert eventually(lambda: small.connections.open == 0)
    assert small.connections.admitted == 0


def test_a_handshake_that_fails_is_counted_no_more(small: Server) -> None:
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"):
        with Caller(small) as caller:
            caller.say(said)
    assert eventually(lambda: small.connections.open == 0)


def test_a_handshake_that_is_ended_before_it_began_leaves_nothing(tls: LiveTls) -> None:
    with serving(Limits(handshakes=1), tls) as server, ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(Caller(server))
        assert eventually(lambda: server.connections.ended_for_room == 49)
        assert eventually(lambda: server.connections.open == 1)


@pytest.mark.parametrize("said", [None, b"", b"GET / HTTP/1.1\r\n\r\n"], ids=["a request", "nothing", "no hello"])
def test_a_connection_that_is_closed_leaves_its_memory_at_once(small: Server, said: bytes | None) -> None:
    """The garbage collector does not see how much memory OpenSSL holds, and comes late."""
    gc.freeze()  # what there was before is not looked through
    gc.disable()
    try:
        for _ in range(5):
            with Caller(small, trust() if said is None else None) as caller:
                if said is None:
                    assert (caller.ask("/").code, caller.ask("/memory").code) == (200, 200)
                else:
                    caller.say(said)
        assert eventually(lambda: small.connections.open == 0)
        assert eventually(lambda: not [each for each in gc.get_objects() if isinstance(each, SSLProtocol)])
    finally:
        gc.enable()
        gc.unfreeze()


class Silent(asyncio.Protocol):
    def __init__(self, connections: Connections, connection: Connection) -> None:
        self._connections = connections
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connections.ready(self._connection, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self._connection)


def test_new_connections_are_taken_a_few_at_a_time() -> None:
    """Between them those that are open are served."""
    connections = Connections(most=1_000, handshakes=1_000, handshake_s=10)

    async def most_in_a_round(listener: socket.socket) -> int:
        acceptor = Acceptor(listener, connections, partial(Silent, connections), tls=None)
        acceptor.start()
        counts = [0]
        while counts[-1] < 100:
            await asyncio.sleep(0)
            counts.append(connections.open)
        acceptor.close()
        connections.end_all()
        while connections.open:
            await asyncio.sleep(0)
        return max(later - earlier for earlier, later in pairwise(counts))

    with listen("127.0.0.1", 0) as listener, ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        assert asyncio.run(most_in_a_round(listener)) < 50
