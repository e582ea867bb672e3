"""custom.metrics.k8s.io: routes and documents over a provider of values of objects."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from adapter.apiserver.answer import Answer, Handler, json
from adapter.apiserver.discovery import ApiGroup, Resource
from adapter.apiserver.negotiation import check_json
from adapter.apiserver.request import Request
from adapter.apiserver.selectors import EVERYTHING, Selector, SelectorError, label_selector
from adapter.apiserver.status import bad_request
from adapter.serving.external_api import selector, timestamp

GROUP = "custom.metrics.k8s.io"
VERSIONS = ("v1beta1", "v1beta2")
EVERY_NAME = "*"
ROUTES = {
    "namespaced": "/namespaces/<namespace>/<resource>/<name>/<metric>",
    "namespace": "/namespaces/<name>/metrics/<metric>",
    "cluster": "/<resource>/<name>/<metric>",
}


class ObjectMetric(msgspec.Struct, frozen=True):
    """A metric of a resource. resource: plural, with its group unless that is the core group (deployments.apps)."""

    resource: str
    metric: str
    namespaced: bool = True


class ObjectQuery(msgspec.Struct, frozen=True):
    """A metric of objects of one resource.

    namespace: None for a resource without namespace. name: EVERY_NAME for all objects that the selector picks.
    metric_selector: picks among several series of one object.
    """

    namespace: str | None
    resource: str
    name: str
    metric: str
    selector: Selector = EVERYTHING
    metric_selector: Selector = EVERYTHING


class ObjectValue(msgspec.Struct, frozen=True):
    """A value of an object. value: a Quantity. at_s: Unix seconds. window_s: over which a rate was measured."""

    kind: str
    api_version: str
    namespace: str | None
    name: str
    value: str
    at_s: float | None = None
    window_s: int | None = None


class CustomProvider(Protocol):
    """The source of the values."""

    def metrics(self) -> Sequence[ObjectMetric]:
        """The metrics that discovery lists."""

    def read(self, query: ObjectQuery) -> Sequence[ObjectValue]:
        """The values. Raises StatusError."""


class ObjectReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The object that a value describes."""

    kind: str
    namespace: str | UnsetType = UNSET
    name: str
    api_version: str


class MetricIdentifier(msgspec.Struct, frozen=True, kw_only=True):
    """The name of a metric, and the selector of its series."""

    name: str
    selector: dict[str, Any] | None = None


class MetricValue1(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value for an object, in v1beta1."""

    described_object: ObjectReference
    metric_name: str
    timestamp: str | None
    window: int | UnsetType = UNSET
    value: str
    selector: dict[str, Any] | None = None


class MetricValue2(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value for an object, in v1beta2."""

    described_object: ObjectReference
    metric: MetricIdentifier
    timestamp: str | None
    window_seconds: int | UnsetType = UNSET
    value: str


class MetricValueList1(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A list of values for objects, in v1beta1."""

    kind: Literal["MetricValueList"] = "MetricValueList"
    api_version: Literal["custom.metrics.k8s.io/v1beta1"] = "custom.metrics.k8s.io/v1beta1"
    metadata: dict[str, str] = {}
    items: list[MetricValue1]


class MetricValueList2(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A list of values for objects, in v1beta2."""

    kind: Literal["MetricValueList"] = "MetricValueList"
    api_version: Literal["custom.metrics.k8s.io/v1beta2"] = "custom.metrics.k8s.io/v1beta2"
    metadata: dict[str, str] = {}
    items: list[MetricValue2]


def api_group(provider: CustomProvider) -> ApiGroup:
    """The API group over a provider."""
    # Clients of Kubernetes 1.26 take an empty list for a failure.
    listed = provider.metrics() or (ObjectMetric("pods", "custommetrics"),)
    resources = [Resource(f"{each.resource}/{each.metric}", "MetricValueList", each.namespaced) for each in listed]
    return ApiGroup(GROUP, resources, {version: _routes(provider, version) for version in VERSIONS})


def _routes(provider: CustomProvider, version: str) -> dict[str, Handler]:
    read = partial(_read, provider, version)
    return {
        ROUTES["namespaced"]: read,
        ROUTES["namespace"]: partial(read, namespace=None, resource="namespaces"),
        ROUTES["cluster"]: partial(read, namespace=None),
    }


def _read(  # noqa: PLR0913  # the variables of the route
    provider: CustomProvider,
    version: str,
    request: Request,
    *,
    namespace: str | None,
    resource: str,
    name: str,
    metric: str,
) -> Answer:
    check_json(request.header(b"accept"))
    parameters = dict(request.query)
    series = selector(parameters, "metricLabelSelector")
    query = ObjectQuery(namespace, resource, name, metric, selector(parameters), series)
    try:
        shown = label_selector(series)
    except SelectorError as error:
        raise bad_request(f"metricLabelSelector: {error}") from None
    values = provider.read(query)
    if version == VERSIONS[0]:
        return json(MetricValueList1(items=[_item1(metric, shown, value) for value in values]))
    return json(MetricValueList2(items=[_item2(metric, shown, value) for value in values]))


def _item1(metric: str, shown: dict[str, Any] | None, value: ObjectValue) -> MetricValue1:
    return MetricValue1(
        described_object=_reference(value),
        metric_name=metric,
        timestamp=timestamp(value.at_s),
        window=UNSET if value.window_s is None else value.window_s,
        value=value.value,
        selector=shown,
    )


def _item2(metric: str, shown: dict[str, Any] | None, value: ObjectValue) -> MetricValue2:
    return MetricValue2(
        described_object=_reference(value),
        metric=MetricIdentifier(name=metric, selector=shown),
        timestamp=timestamp(value.at_s),
        window_seconds=UNSET if value.window_s is None else value.window_s,
        value=value.value,
    )


def _reference(value: ObjectValue) -> ObjectReference:
    namespace = UNSET if value.namespace is None else value.namespace
    return ObjectReference(kind=value.kind, namespace=namespace, name=value.name, api_version=value.api_version)
