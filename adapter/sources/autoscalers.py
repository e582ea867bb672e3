"""HorizontalPodAutoscalers and their scale targets, as the API server tells them in JSON -> rows. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapter.core.metric_names import METRIC_NAMES
from adapter.sources import FAULT, Row

Json = Mapping[str, Any]
PAUSE = "backlog-adapter/pause"
PAUSE_UNTIL = "backlog-adapter/pause-until"
_DIRECTIONS = {"up": (True, False), "down": (False, True), "both": (True, True)}


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
class Pause:
    """No ups, no downs, until a time (Unix seconds; infinite without an expiry)."""

    up: bool = False
    down: bool = False
    until_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An HPA that names our metrics. complaint: what is wrong with its annotations, else ""."""

    name: str
    workloads: tuple[str, ...]
    target: Target
    min_workers: int
    max_workers: int
    pause: Pause = Pause()
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Workers asked for, existing, and ready; None where the object does not say."""

    spec_workers: int | None = None
    workers: int | None = None
    ready_workers: int | None = None


def autoscalers(items: Iterable[Json]) -> list[Autoscaler]:
    """The HPAs (autoscaling/v2) among `items` whose External metrics name one of ours and a workload."""
    return [_autoscaler(item, names) for item in items if (names := _workloads(item))]


def _workloads(hpa: Json) -> tuple[str, ...]:
    namespace = hpa["metadata"]["namespace"]
    external = [
        metric["external"]["metric"] for metric in hpa["spec"].get("metrics", []) if metric["type"] == "External"
    ]
    # A selector by expressions may mean several workloads: it says nothing of one.
    labels = [
        metric.get("selector", {}).get("matchLabels", {}) for metric in external if metric["name"] in METRIC_NAMES
    ]
    return tuple(sorted({f"{namespace}/{label['workload']}" for label in labels if "workload" in label}))


def _autoscaler(hpa: Json, workloads: tuple[str, ...]) -> Autoscaler:
    meta, spec = hpa["metadata"], hpa["spec"]
    target = spec["scaleTargetRef"]
    pause, complaint = _pause(meta.get("annotations", {}))
    return Autoscaler(
        name=f"{meta['namespace']}/{meta['name']}",
        workloads=workloads,
        target=Target(target.get("apiVersion", "apps/v1"), target["kind"], meta["namespace"], target["name"]),
        min_workers=spec.get("minReplicas", 1),
        max_workers=spec["maxReplicas"],
        pause=pause,
        complaint=f"HPA {meta['namespace']}/{meta['name']}: {complaint}" if complaint else "",
    )


def _pause(annotations: Mapping[str, str]) -> tuple[Pause, str]:
    """The pause that annotations ask for, and what is wrong with it, else "".

    Whoever wrote one wanted no scaling now: a direction that cannot be read pauses both, an expiry that cannot be read
    leaves the pause without end.
    """
    direction, until = annotations.get(PAUSE), annotations.get(PAUSE_UNTIL)
    if direction is None:
        return Pause(), ""
    if direction.lower() not in _DIRECTIONS:
        wanted = "expected up, down or both: paused both ways until it is mended"
        return Pause(True, True), f"annotation {PAUSE} is {direction!r}, {wanted}"
    up, down = _DIRECTIONS[direction.lower()]
    if until is None:
        return Pause(up, down), ""
    try:
        ends = datetime.fromisoformat(until)
    except ValueError:
        ends = None
    if ends is None or ends.tzinfo is None:
        wanted = "a time with its zone such as 2026-01-31T18:00:00Z"
        return Pause(up, down), f"annotation {PAUSE_UNTIL}: expected {wanted}, got {until!r}; the pause has no end"
    return Pause(up, down, ends.timestamp()), ""


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

    A workload with two HPAs is a fault that names both: whose bounds hold, nobody can tell.
    """
    by_workload: dict[str, list[Autoscaler]] = defaultdict(list)
    for autoscaler in found:
        for workload in autoscaler.workloads:
            by_workload[workload].append(autoscaler)
    return [row for workload, claims in by_workload.items() for row in _rows(workload, claims, scales, at_s)]


def _rows(workload: str, claims: list[Autoscaler], scales: Mapping[Target, Scale | str], at_s: int) -> Iterator[Row]:
    if len(claims) > 1:
        names = " and ".join(sorted(autoscaler.name for autoscaler in claims))
        yield Row(at_s, workload, "", FAULT, 0.0, f"HPAs {names} both scale workload {workload}: keep one of them")
        return
    scale = scales.get(claims[0].target, f"{claims[0].target} was not read")
    if isinstance(scale, str):
        yield Row(at_s, workload, "", FAULT, 0.0, f"HPA {claims[0].name}: {scale}")
    if claims[0].complaint:
        yield Row(at_s, workload, "", FAULT, 0.0, claims[0].complaint)
    for signal, value in _values(claims[0], scale, at_s).items():
        if value is not None:
            yield Row(at_s, workload, "", signal, float(value))


def _values(autoscaler: Autoscaler, scale: Scale | str, at_s: int) -> dict[str, int | None]:
    known = Scale() if isinstance(scale, str) else scale
    in_force = at_s < autoscaler.pause.until_s
    return {
        "min_workers": autoscaler.min_workers,
        "max_workers": autoscaler.max_workers,
        "spec_workers": known.spec_workers,
        "workers": known.workers,
        "ready_workers": known.ready_workers,
        "pause_up": autoscaler.pause.up and in_force,
        "pause_down": autoscaler.pause.down and in_force,
    }
