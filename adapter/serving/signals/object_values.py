"""Our signals as metrics of the objects that run the workloads: the `Object` and `Pods` metrics of an HPA."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from adapter.core.metric_names import METRIC_NAMES
from adapter.serving.api.custom import EVERY_NAME, ObjectMetric, ObjectQuestion, ObjectValue
from adapter.serving.api.selectors import Selector
from adapter.serving.api.status import Refusal, not_found
from adapter.serving.signals.metrics import METRICS
from adapter.serving.signals.pod_values import PODS, RATIOS, PodSignals
from adapter.serving.signals.reading import Question, Reading, Readings, absent, known, named


@dataclass(frozen=True, slots=True)
class Kind:
    """How an object of a resource names itself."""

    kind: str
    api_version: str


# Resource, with its group -> its kind: what runs streaming jobs and can be a scale target.
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "deployments.apps": Kind("Deployment", "apps/v1"),
        "statefulsets.apps": Kind("StatefulSet", "apps/v1"),
        "replicasets.apps": Kind("ReplicaSet", "apps/v1"),
        "rollouts.argoproj.io": Kind("Rollout", "argoproj.io/v1alpha1"),
        "flinkdeployments.flink.apache.org": Kind("FlinkDeployment", "flink.apache.org/v1beta1"),
        "sparkapplications.sparkoperator.k8s.io": Kind("SparkApplication", "sparkoperator.k8s.io/v1beta2"),
    }
)


class ObjectSignals:
    """A CustomProvider over the held snapshot.

    An object stands for the workload of its name. The metric's selector names another with `workload`; its other terms
    narrow what is found (`stage=join`). pods: None where the cluster cannot be asked for its pods; then there are no
    metrics of pods.
    """

    def __init__(self, readings: Readings, pods: PodSignals | None) -> None:
        self._readings = readings
        self._pods = pods
        objects = [ObjectMetric(resource, name) for resource in KINDS for name in METRICS]
        ratios = [] if pods is None else [ObjectMetric(PODS, name) for name in RATIOS]
        self._listed = (*objects, *ratios)
        self._ours = frozenset(ratios)

    def metrics(self) -> Sequence[ObjectMetric]:
        """Every metric of every kind, and the ratios of pods."""
        return self._listed

    def has(self, resource: str, metric: str) -> bool:
        """Whether it is one of ours: another adapter may have a metric of that name of other resources."""
        return metric in METRIC_NAMES if resource in KINDS else ObjectMetric(resource, metric) in self._ours

    def read(self, question: ObjectQuestion) -> Sequence[ObjectValue]:
        """The number of one object, those of all objects that the selector picks, or one for each pod.

        Raises Refusal where there is none, or it is not clear whose; MustWait where it may not be waited for.
        """
        known(question.metric, _subject(question))
        namespace = question.namespace
        if namespace is not None and question.resource == PODS and self._pods is not None:
            return self._pods.read(question, namespace)
        if namespace is None or question.resource not in KINDS:
            raise Refusal(not_found(self._not_served(question)))
        if question.name == EVERY_NAME:
            return self._of_every(question, namespace)
        return (self._of_one(question, namespace),)

    def _of_one(self, question: ObjectQuestion, namespace: str) -> ObjectValue:
        subject = _subject(question)
        selector = named(question.metric_selector, question.name)
        hint = f"{subject} stands for the workload of its name: name another in the metric's selector, workload=NAME"
        asked = Question(namespace, question.metric, selector, question.patient, subject, hint)
        return self._value(question, namespace, question.name, self._readings.one(asked))

    def _of_every(self, question: ObjectQuestion, namespace: str) -> Sequence[ObjectValue]:
        """Each workload is told as the object of its name: which objects there are, the cluster knows better."""
        both = Selector((*question.selector.requirements, *question.metric_selector.requirements))
        found = self._readings.several(Question(namespace, question.metric, both, question.patient))
        return [self._value(question, namespace, reading.labels["workload"], reading) for reading in found]

    def _value(self, question: ObjectQuestion, namespace: str, name: str, found: Reading) -> ObjectValue:
        kind = KINDS[question.resource]
        return ObjectValue(kind.kind, kind.api_version, namespace, name, found.value, found.at_s, found.window_s)

    def _not_served(self, question: ObjectQuestion) -> str:
        kinds = ", ".join(KINDS)
        where = "/namespaces/NAMESPACE/RESOURCE/NAME/METRIC"
        pods = "" if self._pods is None else f" and, where it is a ratio, of {PODS}"
        return f"{absent(question.metric, _subject(question))}: it is served as {where} of {kinds}{pods}"


def _subject(question: ObjectQuestion) -> str:
    """What the API calls the objects that are asked about."""
    return question.resource if question.name == EVERY_NAME else f"{question.resource} {question.name}"
