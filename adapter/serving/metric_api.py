"""external.metrics.k8s.io and custom.metrics.k8s.io: routes and documents over providers of values."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from adapter.apiserver.answer import Answer, json
from adapter.apiserver.discovery import ApiGroup, Resource
from adapter.apiserver.negotiation import check_json
from adapter.apiserver.request import Request
from adapter.apiserver.selectors import EVERYTHING, Labels, Selector, SelectorError, label_selector, parse
from adapter.apiserver.status import bad_request

EXTERNAL, CUSTOM = "external.metrics.k8s.io", "custom.metrics.k8s.io"
EXTERNAL_LIST, CUSTOM_LIST = "ExternalMetricValueList", "MetricValueList"
EXTERNAL_VERSION = "v1beta1"
EXTERNAL_GROUP_VERSION = f"{EXTERNAL}/{EXTERNAL_VERSION}"
EVERY_NAME = "*"
EXTERNAL_ROUTE = "/namespaces/<namespace>/<metric>"
CUSTOM_ROUTE = "/namespaces/<namespace>/<resource>/<name>/<metric>"


class MetricQuery(msgspec.Struct, frozen=True):
    """A metric of what the selector picks in a namespace."""

    namespace: str
    metric: str
    selector: Selector = EVERYTHING
    subject: str = ""  # the object of the request, if it is not a workload
    hint: str = ""  # how to correct a selector that matches nothing


class MetricValue(msgspec.Struct, frozen=True):
    """A number to serve."""

    metric: str
    labels: Labels | None  # of the workload or its stage
    value: str  # a Quantity
    at_s: float | None = None  # Unix seconds
    window_s: int | None = None  # over which a rate was measured


class ObjectMetric(msgspec.Struct, frozen=True):
    """A metric of a resource."""

    resource: str  # plural, with its group unless that is the core group (deployments.apps)
    metric: str
    namespaced: bool = True


class ObjectQuery(msgspec.Struct, frozen=True):
    """A metric of objects of one resource."""

    namespace: str
    resource: str
    name: str  # EVERY_NAME for the objects that the selector picks
    metric: str
    selector: Selector = EVERYTHING
    metric_selector: Selector = EVERYTHING  # picks among several series of one object


class ObjectReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The object that a value describes."""

    kind: str
    namespace: str
    name: str
    api_version: str


class ObjectValue(msgspec.Struct, frozen=True):
    """A value of an object."""

    described: ObjectReference
    value: str  # a Quantity
    at_s: float | None = None  # Unix seconds
    window_s: int | None = None  # over which a rate was measured


class ExternalProvider(Protocol):
    """The source of external metrics."""

    def names(self) -> Sequence[str]:
        """The metrics that discovery lists."""

    def read(self, query: MetricQuery) -> Sequence[MetricValue]:
        """The values; an HPA adds them up. Raises StatusError."""


class CustomProvider(Protocol):
    """The source of metrics of objects."""

    def metrics(self) -> Sequence[ObjectMetric]:
        """The metrics that discovery lists."""

    def read(self, query: ObjectQuery) -> Sequence[ObjectValue]:
        """The values. Raises StatusError."""


class ExternalMetricValue(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value for an external metric."""

    metric_name: str
    metric_labels: dict[str, str] | None
    timestamp: str | None
    window: int | UnsetType = UNSET
    value: str


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


def api_groups(external: ExternalProvider, custom: CustomProvider) -> tuple[ApiGroup, ApiGroup]:
    """Both API groups."""
    metrics = [Resource(f"{each.resource}/{each.metric}", CUSTOM_LIST, each.namespaced) for each in custom.metrics()]
    custom_routes = {version: {CUSTOM_ROUTE: partial(_read_custom, custom, version)} for version in CUSTOM_ITEMS}
    external_routes = {EXTERNAL_VERSION: {EXTERNAL_ROUTE: partial(_read_external, external)}}
    return (
        ApiGroup(CUSTOM, metrics, custom_routes),
        ApiGroup(EXTERNAL, [Resource(name, EXTERNAL_LIST) for name in external.names()], external_routes),
    )


def _read_external(provider: ExternalProvider, request: Request, namespace: str, metric: str) -> Answer:
    check_json(request.header(b"accept"))
    values = provider.read(MetricQuery(namespace, metric, _selector(request.query, "labelSelector")))
    return _list(EXTERNAL_LIST, EXTERNAL_GROUP_VERSION, [_external_item(value) for value in values])


def _read_custom(provider: CustomProvider, version: str, request: Request, **fields: Any) -> Answer:
    """fields: of ObjectQuery, from the route."""
    check_json(request.header(b"accept"))
    picked, series = (_selector(request.query, name) for name in ("labelSelector", "metricLabelSelector"))
    query = ObjectQuery(**fields, selector=picked, metric_selector=series)
    try:
        metric = MetricIdentifier(name=query.metric, selector=label_selector(series))
    except SelectorError as error:
        raise bad_request(f"metricLabelSelector: {error}") from None
    items = [CUSTOM_ITEMS[version](metric, value) for value in provider.read(query)]
    return _list(CUSTOM_LIST, f"{CUSTOM}/{version}", items)


def _selector(query: Mapping[str, str], name: str) -> Selector:
    """The selector of a parameter. Raises StatusError (400), also for a fieldSelector, which would pick less."""
    if "fieldSelector" in query:
        raise bad_request("field selectors are not supported: select with labelSelector")
    try:
        return parse(query.get(name, ""))
    except SelectorError as error:
        raise bad_request(f"{name}: {error}") from None


def _list(kind: str, group_version: str, items: Sequence[msgspec.Struct]) -> Answer:
    return json({"kind": kind, "apiVersion": group_version, "metadata": {}, "items": items})


def _external_item(value: MetricValue) -> ExternalMetricValue:
    return ExternalMetricValue(
        metric_name=value.metric,
        metric_labels=None if value.labels is None else dict(value.labels),
        timestamp=_timestamp(value.at_s),
        window=UNSET if value.window_s is None else value.window_s,
        value=value.value,
    )


def _custom_item_1(metric: MetricIdentifier, value: ObjectValue) -> MetricValue1:
    return MetricValue1(
        described_object=value.described,
        metric_name=metric.name,
        timestamp=_timestamp(value.at_s),
        window=UNSET if value.window_s is None else value.window_s,
        value=value.value,
        selector=metric.selector,
    )


def _custom_item_2(metric: MetricIdentifier, value: ObjectValue) -> MetricValue2:
    return MetricValue2(
        described_object=value.described,
        metric=metric,
        timestamp=_timestamp(value.at_s),
        window_seconds=UNSET if value.window_s is None else value.window_s,
        value=value.value,
    )


@lru_cache(maxsize=64)  # all workloads of a snapshot have the same
def _timestamp(at_s: float | None) -> str | None:
    """Unix seconds as RFC 3339 in UTC."""
    return None if at_s is None else datetime.fromtimestamp(int(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# By version, the preferred one first: writes one item of a list. Without v1beta1, helm would install beside
# prometheus-adapter, which owns the APIService of that version.
CUSTOM_ITEMS: Mapping[str, Callable[[MetricIdentifier, ObjectValue], MetricValue1 | MetricValue2]] = {
    "v1beta2": _custom_item_2,
    "v1beta1": _custom_item_1,
}
