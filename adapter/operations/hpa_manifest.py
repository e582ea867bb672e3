"""The fields of an HPA (autoscaling/v2) in a manifest that the adapter reads, as Kubernetes types them."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

import msgspec

Quantity = str | int | float
_Count = Annotated[int, msgspec.Meta(ge=1)]


class _Fields(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An object. A field that is null is absent, as in Kubernetes."""


class Metadata(_Fields, frozen=True):
    """Name, namespace and annotations."""

    name: str
    namespace: str | None = None
    annotations: dict[str, str] | None = None


class _ScaleTarget(_Fields, frozen=True):
    kind: str
    name: str
    api_version: str | None = None


class _Term(_Fields, frozen=True):
    key: str
    operator: str
    values: list[str] | None = None


class _Selector(_Fields, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Term] | None = None


class _MetricName(_Fields, frozen=True):
    name: str
    selector: _Selector | None = None


class _MetricTarget(_Fields, frozen=True):
    type: Literal["AverageValue", "Value", "Utilization"]
    average_value: Quantity | None = None
    value: Quantity | None = None
    average_utilization: int | None = None


class _MetricSource(_Fields, frozen=True):
    metric: _MetricName
    target: _MetricTarget
    described_object: _ScaleTarget | None = None


class _Metric(_Fields, frozen=True):
    type: str
    external: _MetricSource | None = None
    object: _MetricSource | None = None


class _Rules(_Fields, frozen=True):
    tolerance: Quantity | None = None


class _Behavior(_Fields, frozen=True):
    scale_up: _Rules | None = None
    scale_down: _Rules | None = None


class _Spec(_Fields, frozen=True):
    scale_target_ref: _ScaleTarget
    max_replicas: _Count
    min_replicas: int | None = None
    metrics: list[_Metric] | None = None
    behavior: _Behavior | None = None


class Hpa(_Fields, frozen=True):
    """A HorizontalPodAutoscaler."""

    metadata: Metadata
    spec: _Spec

    @property
    def sources(self) -> list[_MetricSource]:
        """The external and object metrics."""
        each = (metric.external or metric.object for metric in self.spec.metrics or ())
        return [source for source in each if source is not None]

    def as_json(self, namespace: str) -> dict[str, Any]:
        """The object as the API server returns it. namespace: of one that has none."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        found["metadata"].setdefault("namespace", namespace)
        for metric in found["spec"].get("metrics", ()):
            target = metric.get("external", metric.get("object", {})).get("target", {})
            target |= {name: canonical(target[name]) for name in ("averageValue", "value") if name in target}
        return found


def canonical(quantity: Quantity) -> str:
    """A quantity as text, in which the API server writes 1000m and 1.0 as 1."""
    text = str(quantity)
    try:
        number = Decimal(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)
    except InvalidOperation:  # such as 1k
        return text
    return "1" if number == 1 else text
