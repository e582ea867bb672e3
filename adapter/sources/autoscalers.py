"""HorizontalPodAutoscalers and their scale targets as JSON -> the replicas, limits and pauses of workloads. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from adapter.core.metrics import METRICS, OBJECT_KINDS
from adapter.core.samples import OVERRIDE
from adapter.sources.annotations import WORKLOAD, HpaAnnotations, parse
from adapter.sources.metric_targets import target_faults
from adapter.sources.sample_table import SampleTable

Json = Mapping[str, Any]

_SOURCES = {"External": "external", "Object": "object"}  # type of a metric -> its field
# An HPA looks up the resource of a described object by kind and group, whatever the version.
_OBJECTS = {(kind, api_version.split("/")[0]) for kind, api_version in OBJECT_KINDS.values()}
# API group -> its kinds with a scale subresource, case-sensitive. Any kind of another group may have one.
_SCALABLE = {
    "apps": ("Deployment", "StatefulSet", "ReplicaSet"),
    "": ("ReplicationController",),
    "batch": (),
    "extensions": (),  # until Kubernetes 1.15
    "sparkoperator.k8s.io": (),
    "spark.apache.org": (),  # the operator writes an HPA for the StatefulSet of a SparkCluster
}


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """The scale target of an HPA: an object with a scale subresource in the HPA's namespace."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def versioned_kind(self) -> tuple[str, str]:
        """The API version and the kind."""
        return self.api_version, self.kind

    @property
    def identity(self) -> tuple[str, ...]:
        """What each version of its API calls the same object."""
        return self.api_version.rpartition("/")[0], self.kind, self.namespace, self.name

    @property
    def fault(self) -> str:
        """Why no HPA can scale it; "" if its kind may have a scale subresource."""
        group, kind = self.identity[:2]
        if kind in _SCALABLE.get(group, (kind,)):
            return ""
        version = "v1, the default apiVersion," if self.api_version == "v1" else self.api_version
        fix = "correct apiVersion or kind, or scale what runs its workers, such as a Deployment"
        return f"no HPA can scale {self}: {version} has no scalable kind {kind}; {fix}"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An HPA that scales by a metric of the adapter."""

    name: str  # "namespace/name"
    workloads: tuple[str, ...]
    target: ScaleTarget
    min_workers: int
    max_workers: int
    annotations: HpaAnnotations
    wrong_metric_targets: tuple[str, ...] = ()  # of metrics of the adapter

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults of its targets and its annotations."""
        return (*self.wrong_metric_targets, *self.annotations.faults)

    @property
    def fault(self) -> str:
        """All faults as one sentence, "" without one."""
        return f"HPA {self.name}: {'; '.join(self.faults)}" if self.faults else ""


@dataclass(frozen=True, slots=True)
class Scale:
    """The replicas of a scale target; None if the object does not state them."""

    spec_workers: int | None = None  # requested
    workers: int | None = None  # existing
    ready_workers: int | None = None


class _Replicas(msgspec.Struct, frozen=True):
    replicas: Annotated[int, msgspec.Meta(ge=0)] = 0


class SubresourceScale(msgspec.Struct, frozen=True):
    """The scale subresource of a kind that is not in apps/v1. An aggregated API server may answer it."""

    spec: _Replicas = _Replicas()
    status: _Replicas = _Replicas()

    @property
    def scale(self) -> Scale:
        """It has no ready replicas: every replica counts as ready."""
        return Scale(self.spec.replicas, self.status.replicas, self.status.replicas)


def autoscalers(items: Iterable[Json]) -> list[Autoscaler]:
    """The HPAs (autoscaling/v2) that scale by a metric of the adapter.

    An HPA whose metrics do not name a workload, such as an HPA of KEDA, names it in the annotation WORKLOAD.
    """
    return [_autoscaler(item, workloads) for item in items if (workloads := _workloads(item))]


def autoscaler(hpa: Json) -> Autoscaler:
    """An HPA, without workloads if it scales by no metric of the adapter."""
    return _autoscaler(hpa, _workloads(hpa))


def _autoscaler(hpa: Json, workloads: tuple[str, ...]) -> Autoscaler:
    meta, spec = hpa["metadata"], hpa["spec"]
    target = spec["scaleTargetRef"]
    return Autoscaler(
        name=f"{meta['namespace']}/{meta['name']}",
        workloads=workloads,
        target=ScaleTarget(_api_version(target), target["kind"], meta["namespace"], target["name"]),
        min_workers=spec.get("minReplicas", 1),
        max_workers=spec["maxReplicas"],
        annotations=parse(meta.get("annotations", {})),
        wrong_metric_targets=tuple(target_faults(own_metrics(hpa), spec.get("behavior", {}))),
    )


def own_metrics(hpa: Json) -> list[Json]:
    """The external and object metrics of the adapter."""
    sources = (metric.get(_SOURCES.get(metric["type"], ""), {}) for metric in hpa["spec"].get("metrics", []))
    return [source for source in sources if source.get("metric", {}).get("name") in METRICS and _is_served(source)]


def _workloads(hpa: Json) -> tuple[str, ...]:
    namespace = hpa["metadata"]["namespace"]
    found = {hpa["metadata"].get("annotations", {}).get(WORKLOAD)}
    if not any(found):
        found = {selected_workload(source) for source in own_metrics(hpa)}
    return tuple(sorted(f"{namespace}/{name}" for name in found if name))


def selected_workload(source: Json) -> str | None:
    """The workload of a metric of the adapter, as `serve` selects it; None for several workloads."""
    of_workload = [term for term in selector_terms(source) if term["key"] == "workload"]
    if of_workload:
        choices = (set(term.get("values", ())) for term in of_workload if term["operator"] == "In")
        return next(
            (str(next(iter(values))) for values in choices if len(values) == 1), None
        )  # any other may select several
    return str(source["describedObject"]["name"]) if "describedObject" in source else None


def selector_terms(source: Json) -> list[Json]:
    """The terms of a metric's selector as match expressions: a label is an `In` of one value."""
    selector = source["metric"].get("selector", {})
    labels = selector.get("matchLabels", {}).items()
    return [*({"key": k, "operator": "In", "values": [v]} for k, v in labels), *selector.get("matchExpressions", [])]


def _is_served(source: Json) -> bool:
    described = source.get("describedObject")
    return described is None or (described["kind"], described.get("apiVersion", "").split("/")[0]) in _OBJECTS


def _api_version(target: Json) -> str:
    """The version to read a target with. The HPA controller ignores the version in an HPA, which may be an old one."""
    given: str = target.get("apiVersion", "apps/v1")
    return "apps/v1" if given.startswith("apps/") else given


def scale_of(item: Json) -> Scale:
    """The scale of a Deployment, StatefulSet or ReplicaSet.

    The JSON omits counts of 0, and the whole status until the controller has observed the object.
    """
    spec_workers = item.get("spec", {}).get("replicas", 1)
    status = item.get("status", {})
    if "observedGeneration" not in status:
        return Scale(spec_workers)
    return Scale(spec_workers, status.get("replicas", 0), status.get("readyReplicas", 0))


def add_workers(
    table: SampleTable, at_s: int, found: Iterable[Autoscaler], scales: Mapping[ScaleTarget, Scale | str]
) -> None:
    """Add the samples of all workloads. scales: a text in place of a scale is the reason why it is unknown."""
    every = list(found)
    faults = conflicts(every)
    owners = {workload: autoscaler for autoscaler in every for workload in autoscaler.workloads}
    for workload, owner in owners.items():
        if workload in faults:
            table.add_fault(at_s, workload, faults[workload])
        else:
            _add_workload(table, at_s, workload, owner, scales)


def conflicts(found: Iterable[Autoscaler]) -> dict[str, str]:
    """Workload -> its fault, for those with two HPAs or with workers that they share.

    A workload with two HPAs is a fault that names both, because either one's limits may apply. So is a target that HPAs
    scale for several workloads, because each worker may belong to any of them.
    """
    by_workload: dict[str, list[Autoscaler]] = defaultdict(list)
    by_target: dict[tuple[str, ...], list[Autoscaler]] = defaultdict(list)
    for autoscaler in found:
        by_target[autoscaler.target.identity].append(autoscaler)
        for workload in autoscaler.workloads:
            by_workload[workload].append(autoscaler)
    faults = {
        workload: _two_autoscalers(workload, owners) or _shared_target(by_target[owners[0].target.identity])
        for workload, owners in by_workload.items()
    }
    return {workload: fault for workload, fault in faults.items() if fault}


def _two_autoscalers(workload: str, owners: list[Autoscaler]) -> str:
    text = f"HPAs {_names(owners)} scale workload {workload}: write all their metrics into one HPA"
    return text if len(owners) > 1 else ""


def _shared_target(owners: list[Autoscaler]) -> str:
    workloads = sorted({workload for owner in owners for workload in owner.workloads})
    if len(workloads) == 1:
        return ""
    scaled = f"HPA {owners[0].name} scales" if len(owners) == 1 else f"HPAs {_names(owners)} scale"
    return (
        f"workloads {' and '.join(workloads)} share the workers of {owners[0].target}, which {scaled}: "
        "give each workload a scale target of its own"
    )


def _names(owners: list[Autoscaler]) -> str:
    return " and ".join(sorted(autoscaler.name for autoscaler in owners))


def _add_workload(
    table: SampleTable, at_s: int, workload: str, owner: Autoscaler, scales: Mapping[ScaleTarget, Scale | str]
) -> None:
    scale = scales.get(owner.target, f"{owner.target} was not read")
    if isinstance(scale, str):
        table.add_fault(at_s, workload, f"HPA {owner.name}: {scale}")
    if owner.fault:
        table.add_fault(at_s, workload, owner.fault)
    values = _values(owner, scale, at_s)
    table.add(at_s, workload, {signal: float(value) for signal, value in values.items() if value is not None})


def _values(autoscaler: Autoscaler, scale: Scale | str, at_s: int) -> dict[str, float | None]:
    known = Scale() if isinstance(scale, str) else scale
    annotations = autoscaler.annotations
    is_paused, has_rules = at_s < annotations.pause_until_s, at_s < annotations.rules_until_s
    return {
        "min_workers": autoscaler.min_workers,
        "max_workers": autoscaler.max_workers,
        "spec_workers": known.spec_workers,
        "workers": known.workers,
        "ready_workers": known.ready_workers,
        "pause_up": annotations.pause_up and is_paused,
        "pause_down": annotations.pause_down and is_paused,
        "bad_annotations": len(annotations.faults),
        "failover": annotations.failover,
        **({f"{OVERRIDE}{name}": value for name, value in annotations.rules.items()} if has_rules else {}),
    }
