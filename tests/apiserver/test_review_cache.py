"""Reviews are cached for a while, requested once, and awaited no longer than the deadline."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import structlog
from access_builders import Clock
from hypothesis import given
from hypothesis import strategies as st

from adapter.apiserver.review_cache import CacheSettings, ReviewCache
from adapter.errors import SourceError

FAULT = SourceError("kubernetes", "connection refused")


class Server:
    """Records the requested reviews; waits while the gate is closed, and fails while it has a fault."""

    def __init__(self) -> None:
        self.requested: list[object] = []
        self.fault: SourceError | None = None
        self.gate = threading.Event()
        self.gate.set()

    def about(self, key: object) -> Callable[[float], int]:
        def ask(ends_s: float) -> int:
            self.requested.append(key)
            self.gate.wait(10)
            if self.fault is not None:
                raise self.fault
            return len(self.requested)

        return ask


@dataclass
class Interrupted(Clock):
    """A clock that calls a function during its next reading."""

    meanwhile: Callable[[], object] | None = None

    def __call__(self) -> float:
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()
        return self.now_s


@contextmanager
def answers(clock: Clock | None = None, weight: int = 1, **terms: float) -> Iterator[ReviewCache[object, int]]:
    """weight: of each answer; 0 is not stored."""
    made = CacheSettings("reviews", **({"deadline_s": 5.0} | terms))
    opened: ReviewCache[object, int] = ReviewCache(made, lambda key, answer: weight, clock or Clock())
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.gate.set()


def test_an_answer_is_used_for_as_long_as_it_lasts(server: Server) -> None:
    clock = Clock()
    with answers(clock, lasts_s=10.0) as cache:
        results = []
        for later_s in (0.0, 5.0, 4.9, 0.2, 9.0):
            clock.now_s += later_s
            results.append(cache.get("a", server.about("a")))
    assert results == [1, 1, 1, 2, 2]


def test_100_equal_requests_at_once_cost_one_review(server: Server) -> None:
    server.gate.clear()
    with answers() as cache, ThreadPoolExecutor(100) as threads:
        waiting = [threads.submit(cache.get, "a", server.about("a")) for _ in range(100)]
        server.gate.set()
        assert {each.result(10) for each in waiting} == {1}
    assert server.requested == ["a"]


def test_an_answer_that_arrives_during_a_lookup_is_not_requested_again(server: Server) -> None:
    clock = Interrupted()
    with answers(clock, lasts_s=10.0) as cache:
        assert cache.get("a", server.about("a")) == 1
        clock.now_s += 10.0
        clock.meanwhile = lambda: cache.get("a", server.about("a"))
        assert cache.get("a", server.about("a")) == 2


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 8)), max_size=40))
def test_an_answer_is_requested_again_only_after_it_expires(asks: list[tuple[str, float]]) -> None:
    clock, requested_at_s = Clock(), {}
    with answers(clock, lasts_s=10.0) as cache:
        for key, later_s in asks:
            clock.now_s += later_s
            fresh = key in requested_at_s and clock.now_s < requested_at_s[key] + 10.0
            server = Server()
            cache.get(key, server.about(key))
            assert bool(server.requested) is not fresh
            if not fresh:
                requested_at_s[key] = clock.now_s


def test_a_fault_reaches_all_who_wait_and_is_not_cached(server: Server) -> None:
    server.fault = FAULT
    server.gate.clear()
    with answers() as cache, ThreadPoolExecutor(10) as threads:
        waiting = [threads.submit(cache.get, "a", server.about("a")) for _ in range(10)]
        while not server.requested:
            time.sleep(0.001)
        server.gate.set()
        faults = [each.exception(10) for each in waiting]
        assert [str(fault) for fault in faults] == [str(FAULT)] * 10
        assert len(set(map(id, faults))) == 10
        server.fault = None
        assert cache.get("a", server.about("a")) > 0


def test_a_waiting_caller_returns_at_the_deadline(server: Server) -> None:
    server.gate.clear()
    with answers(deadline_s=0.2) as cache, ThreadPoolExecutor(20) as threads:
        waiting = [threads.submit(cache.get, n % 4, server.about(n % 4)) for n in range(20)]
        faults = [str(each.exception(10)) for each in waiting]
        server.gate.set()
    assert set(faults) == {"kubernetes: no answer within 0.2 s"}


def test_concurrent_reviews_are_limited(server: Server) -> None:
    server.gate.clear()
    with answers(deadline_s=0.2, concurrency=2) as cache, ThreadPoolExecutor(6) as threads:
        waiting = [threads.submit(cache.get, n, server.about(n)) for n in range(6)]
        assert all(isinstance(each.exception(10), SourceError) for each in waiting)
        assert len(server.requested) == 2
        server.gate.set()
        assert cache.get("later", server.about("later")) == 3


def test_an_overload_is_not_logged_as_an_unreachable_cluster(server: Server) -> None:
    server.gate.clear()
    with (
        answers(deadline_s=0.1, concurrency=1) as cache,
        ThreadPoolExecutor(3) as threads,
        structlog.testing.capture_logs() as logs,
    ):
        waiting = [threads.submit(cache.get, n, server.about(n)) for n in range(3)]
        assert all(isinstance(each.exception(10), SourceError) for each in waiting)
        server.gate.set()
        while len(logs) < 2:
            time.sleep(0.001)
    assert [log["log_level"] for log in logs] == ["warning", "info"]
    assert logs[0]["cause"] == "more than 1 reviews at the same time"
    assert all("fix" not in log for log in logs)


def test_a_stuck_review_delays_no_other(server: Server) -> None:
    server.gate.clear()
    other = Server()
    with answers(deadline_s=5.0) as cache, ThreadPoolExecutor(1) as threads:
        stuck = threads.submit(cache.get, "a", server.about("a"))
        assert cache.get("b", other.about("b")) == 1
        server.gate.set()
        assert stuck.result(10) == 1


def test_a_failure_and_its_end_are_logged_once(server: Server) -> None:
    with answers(weight=0) as cache, structlog.testing.capture_logs() as logs:
        for fault in (None, FAULT, FAULT, None, None):
            server.fault = fault
            try:
                cache.get("a", server.about("a"))
            except SourceError:
                assert fault is not None
    assert [log["log_level"] for log in logs] == ["error", "info"]
    assert logs[0]["cause"] == "connection refused"
    assert "system:auth-delegator" in logs[0]["fix"]
    # A refusal of the cluster is a failure too: no message says that the cluster is silent.
    assert [log["event"] for log in logs] == [
        "reviews fail, and so do the requests that need them",
        "reviews succeed again",
    ]


def test_close_fails_the_waiting_reviews(server: Server) -> None:
    server.gate.clear()
    with answers(concurrency=1) as cache, ThreadPoolExecutor(2) as threads:
        first = threads.submit(cache.get, "a", server.about("a"))
        while not server.requested:
            time.sleep(0.001)
        second = threads.submit(cache.get, "b", server.about("b"))
        time.sleep(0.05)
        cache.close()
        assert isinstance(second.exception(10), SourceError)
        server.gate.set()
        assert first.result(10) == 1


def test_an_answer_without_weight_is_not_cached(server: Server) -> None:
    with answers(weight=0) as cache:
        assert [cache.get("a", server.about("a")) for _ in range(2)] == [1, 2]


def test_the_oldest_answer_is_dropped(server: Server) -> None:
    with answers(largest_bytes=2) as cache:
        for key in ("a", "b", "c", "b", "c"):
            cache.get(key, server.about(key))
        assert server.requested == ["a", "b", "c"]
        cache.get("a", server.about("a"))
    assert server.requested == ["a", "b", "c", "a"]
