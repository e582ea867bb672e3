"""external.metrics.k8s.io: what a provider answers, as an ExternalMetricValueList."""

from collections.abc import Sequence
from typing import Protocol

from adapter.serving.api.selectors import EVERYTHING, Labels, Selector
from adapter.serving.api.status import Document
from adapter.serving.api.times import rfc3339
from adapter.serving.api.values import Value

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
GROUP_VERSION = f"{GROUP}/{VERSION}"


class ExternalQuestion(Value, frozen=True):
    """What is asked: one metric of what the selector picks in a namespace. patient: as of Request."""

    namespace: str
    metric: str
    selector: Selector = EVERYTHING
    patient: bool = True


class ExternalValue(Value, frozen=True):
    """One item. labels: None is written as null. value: a Quantity. window_s: left out when None; at_s: Unix seconds,
    None is written as null."""

    metric: str
    labels: Labels | None
    value: str
    at_s: float | None = None
    window_s: int | None = None


class ExternalProvider(Protocol):
    """Where the numbers come from."""

    def names(self) -> Sequence[str]:
        """The metrics that are listed, in their order."""

    def has(self, metric: str) -> bool:
        """Whether a metric is one of this provider's, and not another adapter's."""

    def read(self, question: ExternalQuestion) -> Sequence[ExternalValue]:
        """The values asked for; an HPA adds them up. Raises Refusal where there is none to give, MustWait where it may
        not wait."""


def listing(values: Sequence[ExternalValue]) -> Document:
    """An ExternalMetricValueList."""
    items = [_item(value) for value in values]
    return {"kind": "ExternalMetricValueList", "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}


def _item(value: ExternalValue) -> Document:
    item: Document = {
        "metricName": value.metric,
        "metricLabels": None if value.labels is None else dict(sorted(value.labels.items())),
        "timestamp": rfc3339(value.at_s),
    }
    if value.window_s is not None:
        item["window"] = value.window_s
    item["value"] = value.value
    return item
