"""The metrics of workloads as external metrics, and as metrics of the objects that run them."""

from collections.abc import Sequence

from adapter.apiserver.selectors import Selector
from adapter.apiserver.status import not_found
from adapter.core.metrics import METRICS, OBJECT_KINDS
from adapter.serving.metric_api import (
    EVERY_NAME,
    MetricQuery,
    MetricValue,
    ObjectMetric,
    ObjectQuery,
    ObjectReference,
    ObjectValue,
)
from adapter.serving.metric_reader import MetricReader, absent, find_metric, with_workload


class ExternalMetrics:
    """An ExternalProvider over the snapshot. A selector picks one workload, or one stage of it."""

    def __init__(self, reader: MetricReader) -> None:
        self._reader = reader

    def names(self) -> Sequence[str]:
        """Every metric, whatever the snapshot contains: discovery must not change with the fleet."""
        return tuple(METRICS)

    def read(self, query: MetricQuery) -> Sequence[MetricValue]:
        """Exactly one value. Raises StatusError."""
        return (self._reader.read_single_value(query),)


class ObjectMetrics:
    """A CustomProvider over the snapshot.

    An object represents the workload of its name, unless the metric's selector names another (`workload=NAME`). The
    other terms of that selector apply too (`stage=join`).
    """

    def __init__(self, reader: MetricReader) -> None:
        self._reader = reader

    def metrics(self) -> Sequence[ObjectMetric]:
        """Every metric of every resource."""
        return [ObjectMetric(resource, name) for resource in OBJECT_KINDS for name in METRICS]

    def read(self, query: ObjectQuery) -> Sequence[ObjectValue]:
        """Exactly one value. Raises StatusError."""
        find_metric(query.metric, _subject(query))
        if query.resource not in OBJECT_KINDS:
            where = f"it is served as /namespaces/NAMESPACE/RESOURCE/NAME/METRIC of {', '.join(OBJECT_KINDS)}"
            raise not_found(f"{absent(query.metric, _subject(query))}: {where}")
        read = self._read_selected if query.name == EVERY_NAME else self._read_named
        return (read(query),)

    def _read_named(self, query: ObjectQuery) -> ObjectValue:
        subject = _subject(query)
        hint = f"{subject} is read as the workload of its name: name another in the metric's selector, workload=NAME"
        selector = with_workload(query.metric_selector, query.name)
        found = self._reader.read_single_value(MetricQuery(query.namespace, query.metric, selector, subject, hint))
        return _value(query, query.name, found)

    def _read_selected(self, query: ObjectQuery) -> ObjectValue:
        """The value of the workload that both selectors pick, as an object of its name."""
        both = Selector((*query.selector.requirements, *query.metric_selector.requirements))
        found = self._reader.read_single_value(MetricQuery(query.namespace, query.metric, both))
        return _value(query, (found.labels or {})["workload"], found)


def _value(query: ObjectQuery, name: str, found: MetricValue) -> ObjectValue:
    kind, api_version = OBJECT_KINDS[query.resource]
    described = ObjectReference(kind=kind, namespace=query.namespace, name=name, api_version=api_version)
    return ObjectValue(described, found.value, found.at_s, found.window_s)


def _subject(query: ObjectQuery) -> str:
    """The objects of a query, for a message."""
    return query.resource if query.name == EVERY_NAME else f"{query.resource} {query.name}"
