"""external.metrics.k8s.io: routes and documents over a provider of values."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Literal, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from adapter.apiserver.answer import Answer, json
from adapter.apiserver.discovery import ApiGroup, Resource
from adapter.apiserver.negotiation import check_json
from adapter.apiserver.request import Request
from adapter.apiserver.selectors import EVERYTHING, Labels, Selector, SelectorError, parse
from adapter.apiserver.status import StatusError, bad_request

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
ROUTE = "/namespaces/<namespace>/<metric>"


class ExternalQuery(msgspec.Struct, frozen=True):
    """One metric of what the selector picks in a namespace."""

    namespace: str
    metric: str
    selector: Selector = EVERYTHING


class ExternalValue(msgspec.Struct, frozen=True):
    """One value. value: a Quantity. at_s: Unix seconds. window_s: over which a rate was measured."""

    metric: str
    labels: Labels | None
    value: str
    at_s: float | None = None
    window_s: int | None = None


class ExternalProvider(Protocol):
    """The source of the values."""

    def names(self) -> Sequence[str]:
        """The metrics that discovery lists."""

    def read(self, query: ExternalQuery) -> Sequence[ExternalValue]:
        """The values; an HPA adds them up. Raises StatusError."""


class ExternalMetricValue(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value for an external metric."""

    metric_name: str
    metric_labels: dict[str, str] | None
    timestamp: str | None
    window: int | UnsetType = UNSET
    value: str


class ExternalMetricValueList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A list of values for an external metric."""

    kind: Literal["ExternalMetricValueList"] = "ExternalMetricValueList"
    api_version: Literal["external.metrics.k8s.io/v1beta1"] = "external.metrics.k8s.io/v1beta1"
    metadata: dict[str, str] = {}
    items: list[ExternalMetricValue]


def api_group(provider: ExternalProvider) -> ApiGroup:
    """The API group over a provider."""
    # Clients of Kubernetes 1.26 take an empty list for a failure.
    resources = [Resource(name, "ExternalMetricValueList") for name in provider.names() or ("externalmetrics",)]
    return ApiGroup(GROUP, resources, {VERSION: {ROUTE: partial(_read, provider)}})


def selector(query: dict[str, str], name: str = "labelSelector") -> Selector:
    """The selector of a parameter. Raises StatusError (400), also for a fieldSelector, which would pick less."""
    if "fieldSelector" in query:
        raise bad_request("field selectors are not supported: select with labelSelector")
    try:
        return parse(query.get(name, ""))
    except SelectorError as error:
        raise bad_request(f"{name}: {error}") from None


def timestamp(at_s: float | None) -> str | None:
    """Unix seconds as RFC 3339 in UTC."""
    return None if at_s is None else _timestamp(int(at_s))


@lru_cache(maxsize=64)  # all workloads of a snapshot have the same
def _timestamp(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read(provider: ExternalProvider, request: Request, namespace: str, metric: str) -> Answer:
    check_json(request.header(b"accept"))
    query = dict(request.query)
    picked = selector(query)
    if query.get("watch", "false").lower() not in ("false", "0"):
        message = f'watch is not supported on resources of kind "*.{GROUP}"'
        raise StatusError(405, "MethodNotAllowed", message, details={"group": GROUP, "kind": "*"})
    values = provider.read(ExternalQuery(namespace, metric, picked))
    return json(ExternalMetricValueList(items=[_item(value) for value in values]))


def _item(value: ExternalValue) -> ExternalMetricValue:
    return ExternalMetricValue(
        metric_name=value.metric,
        metric_labels=None if value.labels is None else dict(value.labels),
        timestamp=timestamp(value.at_s),
        window=UNSET if value.window_s is None else value.window_s,
        value=value.value,
    )
