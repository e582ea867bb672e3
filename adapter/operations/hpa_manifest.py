"""The fields of an HPA (autoscaling/v2) that the adapter reads, and its behavior, as Kubernetes types them."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args

from kubernetes.utils.quantity import parse_quantity
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic.alias_generators import to_camel

from adapter.config.faults import Fault, refusal, value_text
from adapter.config.model import Model, has
from adapter.config.number_hints import number_hint
from adapter.errors import ConfigError
from adapter.sources.autoscalers import selected_workload

_QUANTITY = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")


def canonical(quantity: object) -> object:
    """A quantity as text, in which the API server writes 1000m and 1.0 as 1; anything else as it is."""
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        return quantity
    text = str(quantity)
    return "1" if number_of(text) == 1 else text


def number_of(quantity: str) -> Decimal:
    """The number of a quantity. Raises ValueError for another text."""
    if not _QUANTITY.fullmatch(quantity):
        fix = number_hint(quantity, "_ratio", bool)
        raise refusal(f"expected a quantity such as 1, 500m or 0.1, got {value_text(quantity)}{fix}")
    number: Decimal = parse_quantity(quantity)  # type: ignore[no-untyped-call]  # theirs
    return number


def _not_negative(quantity: str) -> str:
    if number_of(quantity) < 0:
        raise refusal(f"expected at least 0, got {value_text(quantity)}")
    return quantity


def _positive(quantity: str) -> str:
    if number_of(quantity) <= 0:
        raise refusal(f"expected more than 0, got {value_text(quantity)}")
    return quantity


_Tolerance = Annotated[str, BeforeValidator(canonical), AfterValidator(_not_negative)]
_TargetValue = Annotated[str, BeforeValidator(canonical), AfterValidator(_positive)]
_MetricType = Literal["External", "Object", "Pods", "Resource", "ContainerResource"]
_METRIC_FIELDS = {name: f"{name[0].lower()}{name[1:]}" for name in get_args(_MetricType)}


class _Fields(Model, extra="ignore", alias_generator=to_camel):
    """An object. A field that is null is absent, as in Kubernetes."""


class Metadata(_Fields):
    """Name, namespace and annotations."""

    name: str
    namespace: str | None = None
    annotations: dict[str, str] | None = None


class _ScaleTarget(_Fields):
    kind: str
    name: str
    api_version: str = "v1"  # without one, Kubernetes looks for the kind in its core group


class _Term(_Fields):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] | None = None

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """Values that do not fit the operator: with such a term, an HPA cannot read its metric."""
        operator, has_values = given.get("operator"), given.get("values") not in (None, [])
        if operator in ("In", "NotIn") and not has_values:
            return [Fault(("values",), f"expected at least one entry with operator {operator}")]
        if operator in ("Exists", "DoesNotExist") and has_values:
            return [Fault(("values",), f"expected none with operator {operator}")]
        return []


class _Selector(_Fields):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Term] | None = None


class _MetricName(_Fields):
    name: str
    selector: _Selector | None = None

    @property
    def workload(self) -> str | None:
        """The workload that its selector names; None for several."""
        return selected_workload({"metric": self.model_dump(by_alias=True, exclude_none=True)})


class _MetricTarget(_Fields):
    type: Literal["AverageValue", "Value", "Utilization"]
    average_value: _TargetValue | None = None
    value: _TargetValue | None = None
    average_utilization: int | None = Field(default=None, ge=1)


class _MetricSource(_Fields):
    metric: _MetricName
    target: _MetricTarget
    described_object: _ScaleTarget | None = None


class _Resource(_Fields):
    name: str


class _Metric(_Fields):
    type: _MetricType
    external: _MetricSource | None = None
    object: _MetricSource | None = None
    pods: _MetricSource | None = None
    resource: _Resource | None = None
    container_resource: _Resource | None = None

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """A type without its field, such as External with `object`."""
        name = _METRIC_FIELDS.get(str(given.get("type")))
        return [] if name is None or has(given, name) else [Fault((name,), f"is required with type {given['type']}")]


class _ScalingPolicy(_Fields):
    type: Literal["Pods", "Percent"]
    value: int = Field(ge=1)
    period_seconds: int = Field(ge=1, le=1800)


class _Rules(_Fields):
    tolerance: _Tolerance | None = None
    select_policy: Literal["Max", "Min", "Disabled"] | None = None
    stabilization_window_seconds: int | None = Field(default=None, ge=0, le=3600)
    policies: list[_ScalingPolicy] | None = Field(default=None, min_length=1)


class _Behavior(_Fields):
    scale_up: _Rules | None = None
    scale_down: _Rules | None = None


class _Spec(_Fields):
    scale_target_ref: _ScaleTarget
    max_replicas: int = Field(ge=1)
    min_replicas: int | None = Field(default=None, ge=0)
    metrics: list[_Metric] | None = None
    behavior: _Behavior | None = None


class Hpa(_Fields):
    """A HorizontalPodAutoscaler."""

    metadata: Metadata
    spec: _Spec

    @property
    def sources(self) -> list[_MetricSource]:
        """The external and object metrics."""
        each = (metric.external or metric.object for metric in self.spec.metrics or ())
        return [source for source in each if source is not None]

    @property
    def pods_metrics(self) -> list[str]:
        """The names of the metrics of type Pods."""
        return [metric.pods.metric.name for metric in self.spec.metrics or () if metric.pods]

    @property
    def resources(self) -> list[str]:
        """The resources of its pods or containers by which it scales, such as cpu."""
        each = (metric.resource or metric.container_resource for metric in self.spec.metrics or ())
        return [resource.name for resource in each if resource]

    @property
    def default_tolerances(self) -> list[str]:
        """The directions in which it has the default tolerance: up, down or both."""
        behavior = self.spec.behavior or _Behavior()
        rules = {"up": behavior.scale_up, "down": behavior.scale_down}
        return [direction for direction, own in rules.items() if own is None or own.tolerance is None]

    def as_json(self, namespace: str) -> dict[str, Any]:
        """The object as the API server returns it. namespace: of one that has none."""
        found = self.model_dump(by_alias=True, exclude_none=True)
        found["metadata"].setdefault("namespace", namespace)
        return found


def hpa_of(item: Mapping[str, Any]) -> Hpa:
    """Read a manifest. Raises ConfigError with every fault."""
    try:
        return Hpa.model_validate(item)
    except ValidationError as error:
        raise ConfigError([Fault(each["loc"], each["msg"]).sentence() for each in error.errors()]) from None
