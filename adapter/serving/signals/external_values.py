"""Our signals as external metrics: one item, or a refusal."""

from collections.abc import Sequence

from adapter.core.metric_names import METRIC_NAMES
from adapter.serving.api.external import ExternalQuestion, ExternalValue
from adapter.serving.signals.metrics import METRICS
from adapter.serving.signals.reading import Question, Readings


class ExternalSignals:
    """An ExternalProvider over the held snapshot. What the selector picks is one workload, or one stage of it."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings
        self._names = tuple(METRICS)

    def names(self) -> Sequence[str]:
        """The metrics that are served: the same whatever is known, for an API server asks for them all the time."""
        return self._names

    def has(self, metric: str) -> bool:
        """Whether it is one of ours; one that this release does not serve is still ours."""
        return metric in METRIC_NAMES

    def read(self, question: ExternalQuestion) -> Sequence[ExternalValue]:
        """Exactly one item. Raises Refusal where there is none, or more than one."""
        asked = Question(question.namespace, question.metric, question.selector, question.patient)
        found = self._readings.one(asked)
        return (ExternalValue(question.metric, found.labels, found.value, found.at_s, found.window_s),)
