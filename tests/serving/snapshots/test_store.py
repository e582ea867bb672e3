import gzip
import tracemalloc
import weakref
from dataclasses import dataclass

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import AT_S, edited, entry, snapshot

from adapter.apiserver.selectors import parse
from adapter.serving.metric_reader import MetricQuery, MetricReader
from adapter.serving.snapshots.snapshot import VERSION, decode, encode
from adapter.serving.snapshots.store import SnapshotStore


def test_a_newer_tick_replaces_the_stored_one() -> None:
    store = SnapshotStore()
    assert store.put(snapshot(entry(required_workers=1.0)))
    assert store.put(snapshot(entry(required_workers=2.0), at_s=AT_S + 15))
    assert store.current is not None
    assert [entry.decision.required_workers for entry in store.current.snapshot.entries] == [2.0]


@pytest.mark.parametrize("later_s", [0.0, -15.0], ids=["equal", "older"])
def test_a_tick_that_is_not_newer_changes_nothing(later_s: float) -> None:
    store = SnapshotStore()
    store.put(snapshot(entry(required_workers=1.0)))
    before = store.current
    assert not store.put(snapshot(entry(required_workers=2.0), at_s=AT_S + later_s))
    assert store.current is before


@dataclass
class Clocks:
    """A wall clock that can be set, and a monotonic clock."""

    now_s: float = AT_S
    up_s: float = 1000.0

    def store(self) -> SnapshotStore:
        return SnapshotStore(clock=lambda: self.now_s, monotonic=lambda: self.up_s)

    def passes(self, seconds: float) -> None:
        self.now_s += seconds
        self.up_s += seconds


def test_a_tick_in_the_future_is_refused_and_blocks_no_later_one() -> None:
    store = Clocks().store()
    with structlog.testing.capture_logs() as logs:
        assert not store.put(snapshot(entry(), at_s=AT_S + 3600))
        assert not store.put(encode(snapshot(entry(), at_s=AT_S + 3601)))
        assert store.put(snapshot(entry()))
        assert store.put(snapshot(entry(), at_s=AT_S + 30)), "clocks differ a little"
    assert [(log["log_level"], log["off_s"]) for log in logs] == [("warning", 3600)]
    assert "compare the clocks" in logs[0]["event"]


def test_an_older_tick_is_logged_once_and_an_equal_one_never() -> None:
    store = Clocks().store()
    store.put(snapshot(entry()))
    with structlog.testing.capture_logs() as logs:
        assert not store.put(snapshot(entry()))
        assert not store.put(snapshot(entry(), at_s=AT_S - 45))
        assert not store.put(snapshot(entry(), at_s=AT_S - 30))
        assert store.put(snapshot(entry(), at_s=AT_S + 15))
    assert [(log["log_level"], log["off_s"]) for log in logs] == [("warning", 45)]
    assert "older than the current one is refused" in logs[0]["event"]


def test_a_snapshot_from_a_fast_clock_is_replaced_after_the_clock_is_corrected() -> None:
    clocks = Clocks(now_s=AT_S + 3600)
    store = clocks.store()
    assert store.put(snapshot(entry(), at_s=AT_S + 3600))
    clocks.now_s = AT_S
    assert store.put(snapshot(entry()))


def test_old_numbers_stay_old_if_the_clock_is_set_back() -> None:
    clocks = Clocks(now_s=AT_S + 5)
    store = clocks.store()
    store.put(snapshot(entry()))
    clocks.passes(100)
    assert store.now_s() == AT_S + 105
    clocks.now_s -= 3600
    assert store.now_s() == AT_S + 100, "the time it has been held for, at least"
    clocks.passes(80)
    assert store.now_s() == AT_S + 180
    clocks.now_s += 3600
    assert store.now_s() == AT_S + 185


def test_a_clock_that_is_set_forward_is_logged_once() -> None:
    clocks = Clocks()
    store = clocks.store()
    store.put(snapshot(entry()))
    clocks.now_s += 3600
    assert store.now_s() == AT_S + 3600
    with structlog.testing.capture_logs() as logs:
        clocks.passes(15)
        assert store.put(snapshot(entry(), at_s=AT_S + 15))
        assert store.put(snapshot(entry(), at_s=AT_S + 30))
    assert [(log["log_level"], log["off_s"]) for log in logs] == [("warning", 3600)]
    assert "too old to serve: compare the clocks" in logs[0]["event"]


def test_an_old_first_snapshot_is_no_fault_and_a_second_one_is() -> None:
    """A pipeline that starts replays its history, and its first tick replaces that."""
    store = Clocks(now_s=AT_S + 3600).store()
    with structlog.testing.capture_logs() as logs:
        assert store.put(snapshot(entry()))
        assert logs == []
        assert store.put(snapshot(entry(), at_s=AT_S + 15))
    assert "compare the clocks, or the pipeline is late" in logs[0]["event"]


def test_without_a_snapshot_the_time_is_that_of_the_clock() -> None:
    clocks = Clocks()
    assert clocks.store().now_s() == AT_S


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(-1e5, 1e5)), max_size=8))
def test_the_age_of_a_snapshot_is_at_least_the_time_since_it_was_stored(
    steps: list[tuple[float, float]],
) -> None:
    clocks = Clocks()
    store = clocks.store()
    store.put(snapshot(entry()))
    for passes_s, jumps_s in steps:
        clocks.passes(passes_s)
        clocks.now_s += jumps_s
        assert store.now_s() - AT_S >= clocks.up_s - 1000.0 - 1e-6


def test_bytes_are_stored_like_their_snapshot() -> None:
    given, sent = SnapshotStore(), SnapshotStore()
    given.put(snapshot(entry()))
    sent.put(encode(snapshot(entry())))
    assert given.current == sent.current


def test_the_body_is_the_encoded_snapshot() -> None:
    store = SnapshotStore()
    store.put(snapshot(entry()))
    assert store.current is not None
    assert decode(store.current.body) == snapshot(entry())
    assert gzip.decompress(store.current.compressed) == store.current.body


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "not a snapshot"),
        (b"\x80", "not a snapshot"),
        (encode(snapshot(entry()))[:-20], "not a snapshot"),
        (edited(encode(snapshot(entry())), lambda message: message.update(version=VERSION - 1)), f"expected {VERSION}"),
    ],
    ids=["empty", "no fields", "truncated", "another version"],
)
def test_invalid_bytes_are_refused_and_the_stored_snapshot_stays(body: bytes, fault: str) -> None:
    store = SnapshotStore()
    store.put(snapshot(entry()))
    before = store.current
    with pytest.raises(ValueError, match=fault):
        store.put(body)
    assert store.current is before


def test_a_workload_that_is_not_requested_takes_little_more_memory_than_its_text() -> None:
    workloads = 2_000
    body = encode(snapshot(*(entry(f"shop/job-{number:05}", {"team": "red"}) for number in range(workloads))))
    store = SnapshotStore(clock=lambda: AT_S)
    tracemalloc.start()
    try:
        store.put(body)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes / workloads < 250


def test_a_replaced_snapshot_is_freed_after_requests() -> None:
    """A large one twice is more memory than a server may have."""
    store = SnapshotStore(clock=lambda: AT_S)
    store.put(encode(snapshot(entry(labels={"team": "red"}))))
    before = weakref.ref(store.current)
    found = MetricReader(store)
    assert found.read_single_value(MetricQuery("shop", "required_workers", parse("team=red"))).value == "3"
    store.put(encode(snapshot(entry(), at_s=AT_S + 15)))
    assert before() is None


def test_a_difference_of_less_than_a_second_is_logged_exactly() -> None:
    store = Clocks().store()
    store.put(snapshot(entry()))
    with structlog.testing.capture_logs() as logs:
        store.put(snapshot(entry(), at_s=AT_S - 0.015625))
    assert [log["off_s"] for log in logs] == [0.0156]


def test_different_snapshots_have_different_etags() -> None:
    one, other = SnapshotStore(), SnapshotStore()
    one.put(snapshot(entry()))
    other.put(snapshot(entry(required_workers=9.0)))
    assert one.current is not None
    assert other.current is not None
    assert one.current.etag != other.current.etag
