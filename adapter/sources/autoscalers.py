"""HorizontalPodAutoscalers and their scale targets, as the API server tells them in JSON -> rows. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adapter.core.metrics import METRICS
from adapter.core.samples import OVERRIDE
from adapter.sources import FAULT, Row
from adapter.sources.annotations import WORKLOAD, Asked, asked

Json = Mapping[str, Any]

_SOURCES = {"External": "external", "Object": "object"}  # type of a metric -> where it stands


@dataclass(frozen=True, slots=True)
class Target:
    """What an HPA scales: an object with a scale subresource in the HPA's namespace."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An HPA that names our metrics. asked: what its annotations ask for."""

    name: str
    workloads: tuple[str, ...]
    target: Target
    min_workers: int
    max_workers: int
    asked: Asked

    @property
    def complaint(self) -> str:
        """What is wrong with its annotations, else ""."""
        return f"HPA {self.name}: {'; '.join(self.asked.complaints)}" if self.asked.complaints else ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Workers asked for, existing, and ready; None where the object does not say."""

    spec_workers: int | None = None
    workers: int | None = None
    ready_workers: int | None = None


def autoscalers(items: Iterable[Json]) -> list[Autoscaler]:
    """The HPAs (autoscaling/v2) among `items` that scale one workload by a metric of ours.

    An HPA whose metrics do not name a workload, such as one that KEDA makes, names it by the annotation WORKLOAD.
    """
    return [_autoscaler(item, names) for item in items if (names := _workloads(item))]


def _workloads(hpa: Json) -> tuple[str, ...]:
    namespace = hpa["metadata"]["namespace"]
    found = {hpa["metadata"].get("annotations", {}).get(WORKLOAD)}
    if found == {None}:
        found = {_workload(metric) for metric in hpa["spec"].get("metrics", [])}
    return tuple(sorted(f"{namespace}/{name}" for name in found if name is not None))


def _workload(metric: Json) -> str | None:
    """Whose number a metric is, read as it is served; None where it is not ours, or not clearly of one workload."""
    source = metric.get(_SOURCES.get(metric["type"], ""), {})
    asked = source.get("metric", {})
    if asked.get("name") not in METRICS:
        return None
    selector = asked.get("selector", {})
    if (named := selector.get("matchLabels", {}).get("workload")) is not None:
        return str(named)
    if any(term["key"] == "workload" for term in selector.get("matchExpressions", [])):
        return None  # several may be meant
    described = source.get("describedObject", {}).get("name")
    return None if described is None else str(described)


def _autoscaler(hpa: Json, workloads: tuple[str, ...]) -> Autoscaler:
    meta, spec = hpa["metadata"], hpa["spec"]
    target = spec["scaleTargetRef"]
    return Autoscaler(
        name=f"{meta['namespace']}/{meta['name']}",
        workloads=workloads,
        target=Target(target.get("apiVersion", "apps/v1"), target["kind"], meta["namespace"], target["name"]),
        min_workers=spec.get("minReplicas", 1),
        max_workers=spec["maxReplicas"],
        asked=asked(meta.get("annotations", {})),
    )


def scale_of(item: Json) -> Scale:
    """The scale of a Deployment, StatefulSet or ReplicaSet.

    Counts of 0 are left out of the JSON; so is everything while the controller has not seen the object yet.
    """
    spec_workers = item.get("spec", {}).get("replicas", 1)
    status = item.get("status", {})
    if "observedGeneration" not in status:
        return Scale(spec_workers)
    return Scale(spec_workers, status.get("replicas", 0), status.get("readyReplicas", 0))


def scale_of_subresource(scale: Json) -> Scale:
    """The scale of any other kind. It does not tell who is ready: what exists counts as ready."""
    workers = scale.get("status", {}).get("replicas", 0)
    return Scale(scale.get("spec", {}).get("replicas", 0), workers, workers)


def rows(found: Iterable[Autoscaler], scales: Mapping[Target, Scale | str], at_s: int) -> list[Row]:
    """The rows of all workloads. scales: a sentence in place of a scale says why there is none.

    A workload with two HPAs is a fault that names both: whose bounds hold, nobody can tell. So are two HPAs that scale
    one target for different workloads: whose work the workers do, nobody can tell.
    """
    by_workload: dict[str, list[Autoscaler]] = defaultdict(list)
    by_target: dict[Target, list[Autoscaler]] = defaultdict(list)
    for autoscaler in found:
        by_target[autoscaler.target].append(autoscaler)
        for workload in autoscaler.workloads:
            by_workload[workload].append(autoscaler)
    told: list[Row] = []
    for workload, claims in by_workload.items():
        if fault := _claimed_twice(workload, claims) or _shared(by_target[claims[0].target]):
            told.append(Row(at_s, workload, "", FAULT, 0.0, fault))
        else:
            told += _rows(workload, claims[0], scales, at_s)
    return told


def _claimed_twice(workload: str, claims: list[Autoscaler]) -> str:
    return f"HPAs {_names(claims)} both scale workload {workload}: keep one of them" if len(claims) > 1 else ""


def _shared(claims: list[Autoscaler]) -> str:
    if len(claims) == 1:
        return ""
    workloads = " and ".join(sorted({workload for claim in claims for workload in claim.workloads}))
    return (
        f"workloads {workloads} share the workers of {claims[0].target}, which HPAs {_names(claims)} scale: "
        "give each workload workers of its own"
    )


def _names(claims: list[Autoscaler]) -> str:
    return " and ".join(sorted(autoscaler.name for autoscaler in claims))


def _rows(workload: str, claim: Autoscaler, scales: Mapping[Target, Scale | str], at_s: int) -> Iterator[Row]:
    scale = scales.get(claim.target, f"{claim.target} was not read")
    if isinstance(scale, str):
        yield Row(at_s, workload, "", FAULT, 0.0, f"HPA {claim.name}: {scale}")
    if claim.complaint:
        yield Row(at_s, workload, "", FAULT, 0.0, claim.complaint)
    for signal, value in _values(claim, scale, at_s).items():
        if value is not None:
            yield Row(at_s, workload, "", signal, float(value))


def _values(autoscaler: Autoscaler, scale: Scale | str, at_s: int) -> dict[str, float | None]:
    known = Scale() if isinstance(scale, str) else scale
    wish = autoscaler.asked
    paused, ruled = at_s < wish.pause_until_s, at_s < wish.rules_until_s
    return {
        "min_workers": autoscaler.min_workers,
        "max_workers": autoscaler.max_workers,
        "spec_workers": known.spec_workers,
        "workers": known.workers,
        "ready_workers": known.ready_workers,
        "pause_up": wish.pause_up and paused,
        "pause_down": wish.pause_down and paused,
        "bad_annotations": len(wish.complaints),
        "failover": wish.failover,
        **({f"{OVERRIDE}{name}": value for name, value in wish.rules.items()} if ruled else {}),
    }
