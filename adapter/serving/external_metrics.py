"""Our metrics as external metrics: one value, or an error."""

from collections.abc import Sequence

from adapter.core.metrics import METRICS
from adapter.serving.external_api import ExternalQuery, ExternalValue
from adapter.serving.metric_reader import MetricQuery, MetricReader


class ExternalMetrics:
    """An ExternalProvider over the snapshot. A selector picks one workload, or one stage of it."""

    def __init__(self, reader: MetricReader) -> None:
        self._reader = reader

    def names(self) -> Sequence[str]:
        """Every metric, whatever the snapshot contains: discovery must not change with the fleet."""
        return tuple(METRICS)

    def read(self, query: ExternalQuery) -> Sequence[ExternalValue]:
        """Exactly one value. Raises StatusError."""
        found = self._reader.one(MetricQuery(query.namespace, query.metric, query.selector))
        return (ExternalValue(query.metric, found.labels, found.value, found.at_s, found.window_s),)
