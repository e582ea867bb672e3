"""The metrics, numbers and failures of the recorded server, as providers for ours."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter.apiserver import probes as apiserver_probes
from adapter.apiserver.answer import Routes
from adapter.apiserver.probes import Checks
from adapter.apiserver.status import StatusError, not_found
from adapter.serving.metric_api import (
    EVERY_NAME,
    MetricQuery,
    MetricValue,
    ObjectMetric,
    ObjectQuery,
    ObjectReference,
    ObjectValue,
)
from conformance.recording import Row

AT_S = 1_767_323_045.0  # 2026-01-02T03:04:05Z
MY_METRIC = "my-external-metric"
_SERIES: tuple[tuple[str, str, int | None], ...] = (("bar", "42", None), ("baz", "43", 60))
# Quantities that the recorded server read in one form and wrote in another.
_QUANTITIES = {
    "parse 0.5": "500m", "parse 1.0001": "1000100u", "parse 1e3": "1e3", "parse 12e6": "12e6", "parse 1Ki": "1Ki",
    "parse 1500Mi": "1500Mi", "parse 100k": "100k", "parse 0.0000000001": "1n",
    "parse 12345678901234567890": "12345678901234567890", "parse 1.5Gi": "1536Mi", "parse 5n": "5n",
    "parse 2500u": "2500u", "parse 3E": "3E", "parse 1E": "1E",
}  # fmt: skip
_MILLI = (
    "0", "1m", "999m", "1", "1500m", "20", "21", "-1m", "-1500m", "1k", "1234567m", "999999999m", "1M", "1G",
    "9223372036854775807m", "-9223372036854775807m",
)  # fmt: skip
_BEGUN = ("ping", "log", "poststarthook/generic-apiserver-start-informers")
_HOOKED = ("poststarthook/max-in-flight-filter", "poststarthook/storage-object-count-tracker-hook")


def probes() -> Routes:
    """Health checks that all pass."""
    ready = _passing(*_BEGUN, "informer-sync", *_HOOKED, "shutdown")
    return apiserver_probes.routes(alive=_passing(*_BEGUN, *_HOOKED), ready=ready)


def _passing(*names: str) -> Checks:
    return dict.fromkeys(names, lambda: True)


def failures(rows: Sequence[Row]) -> Mapping[str, StatusError]:
    """The errors of the metrics `e-...` of a recording, by metric: our fixture raises the same."""
    found: dict[str, StatusError] = {}
    for row in rows:
        metric = row.request.target.partition("?")[0].rpartition("/")[2]
        if metric.startswith("e-") and row.request.identity == "admin" and row.outcome is not None:
            found.setdefault(metric, _failure(row.outcome.status, row.outcome.document))
    return found


def _failure(code: int, document: Mapping[str, Any]) -> StatusError:
    return StatusError(code, document.get("reason", ""), document.get("message", ""))


class ExternalFixture:
    """Two series of one metric, and a metric for every kind of response and failure."""

    def __init__(self, failing: Mapping[str, StatusError]) -> None:
        self._failures = failing

    def names(self) -> Sequence[str]:
        """The listed metrics; one is listed twice, as in the recording."""
        return (MY_METRIC, "other-external-metric", MY_METRIC)

    def read(self, query: MetricQuery) -> Sequence[MetricValue]:
        """The values of a metric; unknown metrics have none."""
        metric = query.metric
        if metric in self._failures:
            raise self._failures[metric]
        if metric == "panic":
            raise RuntimeError("the source failed")
        if metric == "nil-labels":
            return (MetricValue(metric, None, "1500m"),)
        if metric == "quant":
            milli = [MetricValue("milli", None, text, AT_S) for text in _MILLI]
            return milli + [MetricValue(name, None, text, AT_S) for name, text in _QUANTITIES.items()]
        return _series(query) if metric == MY_METRIC else ()


def _series(query: MetricQuery) -> Sequence[MetricValue]:
    values = [
        MetricValue(MY_METRIC, {"foo": foo, "ns": query.namespace}, value, AT_S, window_s)
        for foo, value, window_s in _SERIES
    ]
    return [value for value in values if query.selector.matches(value.labels or {})]


class CustomFixture:
    """300m of every object and metric but the metric `missing`; every object is a pod."""

    def metrics(self) -> Sequence[ObjectMetric]:
        """A metric of a core resource, of a cluster-scoped one, and of one with a group."""
        return (
            ObjectMetric("pods", "some-metric"),
            ObjectMetric("namespaces", "some-metric", namespaced=False),
            ObjectMetric("ingresses.networking.k8s.io", "hits"),
        )

    def read(self, query: ObjectQuery) -> Sequence[ObjectValue]:
        """The named object, or two objects for `*`."""
        if query.metric == "missing":
            raise not_found("the server could not find the metric missing")
        names = ("pod-a", "pod-b") if query.name == EVERY_NAME else (query.name,)
        pods = [ObjectReference(kind="Pod", namespace=query.namespace, name=name, api_version="/v1") for name in names]
        return [ObjectValue(pod, "300m", AT_S) for pod in pods]
