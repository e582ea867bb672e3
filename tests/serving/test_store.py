import gzip

import pytest
import structlog
from serving_builders import AT_S, entry, snapshot

from adapter.serving.snapshot import decode, encode
from adapter.serving.store import SnapshotStore


def test_a_newer_tick_replaces_the_held_one() -> None:
    store = SnapshotStore()
    assert store.put(snapshot(entry(required_workers=1.0)))
    assert store.put(snapshot(entry(required_workers=2.0), at_s=AT_S + 15))
    assert store.current is not None
    assert store.current.snapshot.entries[0].decision.required_workers == 2.0


@pytest.mark.parametrize("later_s", [0.0, -15.0], ids=["equal", "older"])
def test_a_tick_that_is_not_newer_changes_nothing(later_s: float) -> None:
    store = SnapshotStore()
    store.put(snapshot(entry(required_workers=1.0)))
    before = store.current
    assert not store.put(snapshot(entry(required_workers=2.0), at_s=AT_S + later_s))
    assert store.current is before


def test_a_tick_of_the_future_is_refused_and_keeps_out_no_right_one() -> None:
    store = SnapshotStore(clock=lambda: AT_S)
    with structlog.testing.capture_logs() as logs:
        assert not store.put(snapshot(entry(), at_s=AT_S + 3600))
        assert not store.put(encode(snapshot(entry(), at_s=AT_S + 3601)))
        assert store.put(snapshot(entry()))
    assert [(log["log_level"], log["ahead_s"]) for log in logs] == [("warning", 3600)]
    assert store.put(snapshot(entry(), at_s=AT_S + 30)), "clocks differ a little"


def test_what_was_held_by_a_clock_that_was_fast_gives_way_when_it_is_set_right() -> None:
    now_s = [AT_S + 3600]
    store = SnapshotStore(clock=lambda: now_s[0])
    assert store.put(snapshot(entry(), at_s=AT_S + 3600))
    now_s[0] = AT_S
    assert store.put(snapshot(entry()))


def test_bytes_are_held_like_the_snapshot_they_are() -> None:
    given, sent = SnapshotStore(), SnapshotStore()
    given.put(snapshot(entry()))
    sent.put(encode(snapshot(entry())))
    assert given.current == sent.current


def test_what_is_published_is_the_snapshot() -> None:
    store = SnapshotStore()
    store.put(snapshot(entry()))
    assert store.current is not None
    assert decode(store.current.body) == snapshot(entry())
    assert gzip.decompress(store.current.compressed) == store.current.body


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "not a snapshot"),
        (b"{}", "not a snapshot"),
        (encode(snapshot(entry()))[:-20], "not a snapshot"),
        (encode(snapshot(entry())).replace(b'"version":2', b'"version":3'), "expected 2"),
    ],
    ids=["empty", "no fields", "truncated", "another version"],
)
def test_what_is_no_snapshot_is_refused_and_the_held_one_stays(body: bytes, fault: str) -> None:
    store = SnapshotStore()
    store.put(snapshot(entry()))
    before = store.current
    with pytest.raises(ValueError, match=fault):
        store.put(body)
    assert store.current is before


def test_the_etag_tells_snapshots_apart() -> None:
    one, other = SnapshotStore(), SnapshotStore()
    one.put(snapshot(entry()))
    other.put(snapshot(entry(required_workers=9.0)))
    assert one.current is not None
    assert other.current is not None
    assert one.current.etag != other.current.etag
