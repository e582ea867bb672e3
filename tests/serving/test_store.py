import gzip

import pytest
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
        (encode(snapshot(entry())).replace(b'"version":1', b'"version":2'), "expected 1"),
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
