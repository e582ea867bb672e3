"""A fleet, and what external and custom metrics answer about it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from serving_builders import AT_S, entry, snapshot

from adapter.serving.api.custom import ObjectQuestion, ObjectValue
from adapter.serving.api.external import ExternalQuestion, ExternalValue
from adapter.serving.api.selectors import parse
from adapter.serving.api.status import Answer, Refusal
from adapter.serving.signals.external_values import ExternalSignals
from adapter.serving.signals.object_values import ObjectSignals
from adapter.serving.signals.pod_values import PodSignals
from adapter.serving.signals.pods import Pods, ReadCluster
from adapter.serving.signals.reading import Readings
from adapter.serving.snapshots.snapshot import Entry
from adapter.serving.snapshots.store import SnapshotStore

FLEET = (
    entry("shop/orders", {"team": "red", "stage": "mine"}, required_workers=4.0, utilization_ratio=0.9),
    entry("shop/payments", {"team": "red"}, ("parse", "join"), utilization_ratio=0.25),
    entry("web/clicks", {"team": "blue"}),
)


def readings(*entries: Entry, age_s: float = 5.0) -> Readings:
    """Of these workloads, else of FLEET, so long after they were decided."""
    store = SnapshotStore(clock=lambda: AT_S)
    store.put(snapshot(*(entries or FLEET)))
    return Readings(store, lambda: AT_S + age_s)


def external(
    found: Readings,
    selector: str = "",
    metric: str = "required_workers",
    namespace: str = "shop",
    *,
    patient: bool = True,
) -> ExternalValue | Answer:
    """The item, or the answer in its place."""
    try:
        (value,) = ExternalSignals(found).read(ExternalQuestion(namespace, metric, parse(selector), patient))
    except Refusal as refusal:
        return refusal.answer
    return value


def objects(signals: ObjectSignals, question: ObjectQuestion) -> Sequence[ObjectValue] | Answer:
    """The items, or the answer in their place."""
    try:
        return signals.read(question)
    except Refusal as refusal:
        return refusal.answer


def message(given: object) -> str:
    """What an HPA shows."""
    assert isinstance(given, Answer), given
    text = given.document["message"]
    assert isinstance(text, str)
    return text


def code(given: object) -> int:
    return given.code if isinstance(given, Answer) else 200


def pod(name: str, owner: str = "ReplicaSet/orders-5d8f", template: str = "5d8f", **meta: Any) -> dict[str, Any]:
    """A pod as an API server tells it. owner: kind/name of what runs it, "" for nothing."""
    kind, _, of = owner.partition("/")
    owners = [{"kind": kind, "name": of, "controller": True}] if owner else []
    labels = {"pod-template-hash": template} if template else {}
    return {"metadata": {"name": name, "labels": labels, "ownerReferences": owners, **meta}}


class Cluster:
    """Tells its pods to everybody, and notes what it was asked. fault: raised instead; status: of every answer."""

    def __init__(self, *pods: Mapping[str, Any]) -> None:
        self.pods = list(pods)
        self.fault: Exception | None = None
        self.status = 200
        self.asked: list[str] = []
        self.accepted: list[str] = []

    def read(self, path: str, accept: str, deadline_s: float) -> tuple[int, bytes]:
        assert 0 < deadline_s <= 5
        self.asked.append(path)
        self.accepted.append(accept)
        if self.fault is not None:
            raise self.fault
        return self.status, json.dumps({"kind": "PodList", "items": list(self.pods)}).encode()


def with_pods(found: Readings, read: ReadCluster, now_s: Sequence[float] = (AT_S,)) -> ObjectSignals:
    """now_s: one time, which the test may change."""
    return ObjectSignals(found, PodSignals(found, Pods(read, lambda: now_s[0])))
