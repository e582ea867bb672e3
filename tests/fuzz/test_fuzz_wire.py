"""Any bytes on a connection, plain or under TLS: an answer or an end in time, a neighbour who notices nothing, and
nothing left behind."""

import os
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection

import pytest
from fuzz_bytes import Talk, talks
from fuzz_connections import CONTINUE, HANG_S, Heard, heard
from fuzz_lengths import examples
from fuzz_servers import eventually, guarded, serving
from hypothesis import given
from hypothesis import strategies as st

from adapter.config import Limits
from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.sockets.server import Server
from adapter.serving.sockets.tls import LiveTls
from conformance.cluster import Cluster
from conformance.identities import NAMES, UNVERIFIED, Identities

# Each limit cut short, that a caller may have to be ended by.
IMPATIENT = Limits(connections=64, handshake_s=1.0, header_s=0.3, write_s=0.5, idle_s=3.0, linger_s=0.05)
# What a neighbour may wait on a busy machine.
BOUNDED_S = 2.0


@dataclass(frozen=True)
class Running:
    """A server, and how a neighbour connects to it."""

    server: Server
    neighbour: ssl.SSLContext | None = None

    def hears(self, talks: Sequence[Talk], context: ssl.SSLContext | None = None) -> None:
        """What is said is answered soundly or not at all, and a neighbour is answered soon meanwhile and afterwards."""
        before = self.server.connections.ended_for_time
        with ThreadPoolExecutor(1) as thread:
            talking = thread.submit(heard, self.server.port, talks, context)
            self.is_well()
            unfinished = sum(_ends_within_an_answer(each) for each in talking.result())
        assert unfinished <= self.server.connections.ended_for_time - before
        self.is_well()

    def is_well(self) -> None:
        """A neighbour is answered soon, from memory and by a thread."""
        for path in ("/readyz", "/metrics/slis"):
            began_s = time.monotonic()
            assert self._asked(path) == 200
            assert time.monotonic() - began_s < BOUNDED_S

    def _asked(self, path: str) -> int:
        host, port = "localhost", self.server.port
        plain = HTTPConnection(host, port, timeout=HANG_S)
        caller = (
            plain if self.neighbour is None else HTTPSConnection(host, port, timeout=HANG_S, context=self.neighbour)
        )
        with closing(caller):
            caller.request("GET", path)
            response = caller.getresponse()
            response.read()
            return response.status


def _ends_within_an_answer(found: Heard) -> bool:
    """Whether what was sent ends within an answer, though the caller was there. All answers are to something."""
    answers, is_partly = found.answers()
    told = [answer for answer in answers if answer.code != CONTINUE]
    assert len(told) <= found.said.count(b"HTTP/") + 1  # each request says so, and one may be none
    return is_partly and not found.is_left


@contextmanager
def nothing_left() -> Iterator[None]:
    """Afterwards there are no more threads and files than before."""
    threads, files = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
    yield
    assert eventually(lambda: set(threading.enumerate()) <= threads)
    assert eventually(lambda: len(os.listdir("/proc/self/fd")) <= files)


@pytest.fixture(scope="module")
def plain(everybody_s: MetricsApi, cluster: Cluster) -> Iterator[Running]:
    with serving(
        everybody_s, IMPATIENT
    ):  # what a first server leaves for good, such as imported modules, is not counted
        pass
    with nothing_left(), serving(everybody_s, IMPATIENT) as server:
        yield Running(server)


@pytest.fixture(scope="module")
def secured(cluster: Cluster, identities: Identities) -> Iterator[Running]:
    tls = LiveTls(*identities.serving, lambda: identities.client_cas + identities.proxy_cas)
    with nothing_left(), guarded(cluster) as api, serving(api, IMPATIENT, tls) as server:
        yield Running(server, identities.context("admin"))


@examples(15, share=0.05)
@given(talks)
def test_any_bytes_are_answered_or_end_the_connection(plain: Running, talking: Sequence[Talk]) -> None:
    plain.hears(talking)


@examples(8, share=0.03)
@given(talks, st.sampled_from([name for name in NAMES if name not in UNVERIFIED]))
def test_any_bytes_under_tls_are_answered_or_end_the_connection(
    secured: Running, identities: Identities, talking: Sequence[Talk], who: str
) -> None:
    secured.hears(talking, identities.context(who))


@examples(8, share=0.03)
@given(talks)
def test_bytes_that_are_no_tls_end_the_connection(secured: Running, talking: Sequence[Talk]) -> None:
    secured.hears(talking)
