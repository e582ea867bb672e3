"""What the pipeline says of one workload and this release cannot read: told to who asks for that workload, no other."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import AT_S, entry, snapshot
from signal_builders import Cluster, code, external, message, objects, pod, with_pods

from adapter.serving.api.custom import EVERY_NAME, ObjectQuestion
from adapter.serving.signals.object_values import ObjectSignals
from adapter.serving.signals.reading import Readings
from adapter.serving.snapshots.snapshot import encode
from adapter.serving.snapshots.store import SnapshotStore

BODY = encode(
    snapshot(
        entry("shop/orders", {"team": "red"}, ("join",), required_workers=4.0, utilization_ratio=0.5),
        entry("shop/payments", {"team": "red"}, required_workers=5.0, utilization_ratio=0.5),
        entry("shop/sound", {"team": "blue"}, required_workers=6.0, utilization_ratio=0.5),
    )
)


def readings(body: bytes) -> Readings:
    store = SnapshotStore(clock=lambda: AT_S)
    assert store.put(body)
    return Readings(store, lambda: AT_S + 5)


def changed(old: bytes, new: bytes) -> Readings:
    assert BODY.count(old) == 1
    return readings(BODY.replace(old, new))


UNREADABLE = {
    "a number that is a word": (b'"required_workers":4.0', b'"required_workers":"4"'),
    "a number of a stage that is a word": (b'"backlog_records":10.0', b'"backlog_records":"10"'),
    "an unknown reason": (b'"Hold","required_workers":4.0', b'"Foreseen","required_workers":4.0'),
}


@pytest.mark.parametrize(("old", "new"), UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("selector", ["workload=orders", "workload=orders,stage=join", "workload=orders,team=red"])
def test_what_cannot_be_read_of_a_workload_is_a_503_that_says_what_and_how_to_mend_it(
    selector: str, old: bytes, new: bytes
) -> None:
    given = external(changed(old, new), selector, "backlog")
    assert code(given) == 503
    told = message(given)
    assert told.startswith("no backlog for workload orders: what the pipeline says of it cannot be read: ")
    assert told.endswith("; run one release of pipeline and serve")
    assert "Expected" in told or "Invalid" in told


@pytest.mark.parametrize(("old", "new"), UNREADABLE.values(), ids=UNREADABLE)
def test_everybody_else_is_answered(old: bytes, new: bytes) -> None:
    found = changed(old, new)
    for selector in ("workload=sound", "team=blue", "workload!=orders,team=red"):
        assert code(external(found, selector)) == 200
    assert "a question without selector picks 3 in namespace shop" in message(external(found))
    assert "nearest is orders" in message(external(found, "workload=order"))


def test_a_list_of_objects_leaves_out_the_one_that_cannot_be_read() -> None:
    found = ObjectSignals(changed(*UNREADABLE["an unknown reason"]), None)
    listed = found.read(ObjectQuestion("shop", "deployments.apps", EVERY_NAME, "required_workers"))
    assert [(value.name, value.value) for value in listed] == [("payments", "5"), ("sound", "6")]
    alone = objects(found, ObjectQuestion("shop", "deployments.apps", "orders", "required_workers"))
    assert code(alone) == 503


def test_pods_of_a_workload_that_cannot_be_read_have_no_number() -> None:
    signals = with_pods(changed(*UNREADABLE["an unknown reason"]), Cluster(pod("a")).read)
    assert code(objects(signals, ObjectQuestion("shop", "pods", EVERY_NAME, "utilization"))) == 503


@given(st.integers(0, len(BODY)), st.integers(0, 12), st.binary(max_size=12))
def test_whatever_becomes_of_a_snapshot_there_is_an_item_or_a_refusal(at: int, gone: int, new: bytes) -> None:
    """The store takes it or raises ValueError; what it took answers every question."""
    store = SnapshotStore(clock=lambda: AT_S)
    with suppress(ValueError):
        store.put(BODY[:at] + new + BODY[at + gone :])
    found = Readings(store, lambda: AT_S + 5)
    for selector in ("workload=orders", "workload=orders,stage=join", "team=red", "!team", "workload=order", ""):
        for metric in ("required_workers", "backlog"):
            assert code(external(found, selector, metric)) in (200, 400, 404, 503)
