"""custom.metrics.k8s.io: what a provider answers about objects, as a MetricValueList of either version."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adapter.serving.api.selectors import EVERYTHING, Selector, label_selector
from adapter.serving.api.status import Document
from adapter.serving.api.times import rfc3339
from adapter.serving.api.values import Value

GROUP = "custom.metrics.k8s.io"
VERSIONS = ("v1beta1", "v1beta2")
EVERY_NAME = "*"


@dataclass(frozen=True, slots=True)
class ObjectMetric:
    """What is listed: a metric of a resource. resource: plural, with its group but for core ones (deployments.apps)."""

    resource: str
    metric: str
    namespaced: bool = True


class ObjectQuestion(Value, frozen=True):
    """What is asked of objects of one resource.

    namespace: None for resources that have none. name: EVERY_NAME asks for all that the selector picks.
    metric_selector: picks among several series of one object. patient: as of Request.
    """

    namespace: str | None
    resource: str
    name: str
    metric: str
    selector: Selector = EVERYTHING
    metric_selector: Selector = EVERYTHING
    patient: bool = True


class ObjectValue(Value, frozen=True):
    """One item: a number of the object described. value: a Quantity. window_s: left out when None."""

    kind: str
    api_version: str
    namespace: str | None
    name: str
    value: str
    at_s: float | None = None
    window_s: int | None = None


class CustomProvider(Protocol):
    """Where the numbers of objects come from."""

    def metrics(self) -> Sequence[ObjectMetric]:
        """What is listed, in its order."""

    def has(self, resource: str, metric: str) -> bool:
        """Whether a metric of a resource is one of this provider's, and not another adapter's."""

    def read(self, question: ObjectQuestion) -> Sequence[ObjectValue]:
        """The values asked for. Raises Refusal where there is none to give, MustWait where it may not wait."""


def listing(version: str, question: ObjectQuestion, values: Sequence[ObjectValue]) -> Document:
    """A MetricValueList of that version."""
    selector = label_selector(question.metric_selector)
    write = _item_of_v1beta1 if version == "v1beta1" else _item_of_v1beta2
    items = [write(question.metric, selector, value) for value in values]
    return {"kind": "MetricValueList", "apiVersion": f"{GROUP}/{version}", "metadata": {}, "items": items}


def _item_of_v1beta1(metric: str, selector: Document | None, value: ObjectValue) -> Document:
    item: Document = {"describedObject": _described(value), "metricName": metric, "timestamp": rfc3339(value.at_s)}
    if value.window_s is not None:
        item["window"] = value.window_s
    return item | {"value": value.value, "selector": selector}


def _item_of_v1beta2(metric: str, selector: Document | None, value: ObjectValue) -> Document:
    named = {"name": metric, "selector": selector}
    item: Document = {"describedObject": _described(value), "metric": named, "timestamp": rfc3339(value.at_s)}
    if value.window_s is not None:
        item["windowSeconds"] = value.window_s
    return item | {"value": value.value}


def _described(value: ObjectValue) -> Document:
    where = {} if value.namespace is None else {"namespace": value.namespace}
    return {"kind": value.kind} | where | {"name": value.name, "apiVersion": value.api_version}
