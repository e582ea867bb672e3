"""Ratios as metrics of pods: every pod of a workload has the workload's, as the average over pods that an HPA makes."""

from collections.abc import Mapping, Sequence

from adapter.serving.api.custom import EVERY_NAME, ObjectQuestion, ObjectValue
from adapter.serving.api.selectors import Selector
from adapter.serving.api.status import Refusal, bad_request, not_found
from adapter.serving.signals.metrics import METRICS
from adapter.serving.signals.near import listed
from adapter.serving.signals.pods import Pod, PodQuery, Pods
from adapter.serving.signals.reading import Question, Readings, absent, known, named

PODS = "pods"
RATIOS = tuple(name for name, metric in METRICS.items() if metric.is_ratio)


class PodSignals:
    """The workload's ratio for each of its pods, which are looked up in the cluster."""

    def __init__(self, readings: Readings, pods: Pods) -> None:
        self._readings = readings
        self._pods = pods

    def read(self, question: ObjectQuestion, namespace: str) -> Sequence[ObjectValue]:
        """One value for each pod that the selector picks, or for the one that is named.

        The workload is the one that the metric's selector names, else the one of the name of what runs the pods, else
        the one that the pods' selector names. Raises Refusal where there is none, or it is not clear which; MustWait
        where the pods have to be looked up and the question is not patient.
        """
        if not known(question.metric, PODS).is_ratio:
            raise Refusal(bad_request(_no_ratio(question.metric)))
        workloads = self._readings.workloads(namespace)
        pods = self._listed(question, namespace)
        selector = question.metric_selector
        if not selector.mentions("workload"):
            selector = named(selector, _workload(pods, question.selector, workloads))
        hint = "pods stand for the workload of the name of what runs them: name another in the metric's selector"
        found = self._readings.one(Question(namespace, question.metric, selector, question.patient, PODS, hint))
        # "/v1" is how the adapters of this API write the version of a core kind.
        return [ObjectValue("Pod", "/v1", namespace, pod.name, found.value, found.at_s, found.window_s) for pod in pods]

    def _listed(self, question: ObjectQuestion, namespace: str) -> Sequence[Pod]:
        query = _query(question, namespace)
        pods = self._pods.listed(query, patient=question.patient)
        if not pods:
            nothing = f"no pod {query} runs in namespace {namespace}; an HPA asks for the pods of its scale target"
            raise Refusal(not_found(f"{absent(question.metric, PODS)}: {nothing}"))
        return pods


def _query(question: ObjectQuestion, namespace: str) -> PodQuery:
    if question.name == EVERY_NAME:
        return PodQuery(namespace, question.selector)
    return PodQuery(namespace, name=question.name)


def _workload(pods: Sequence[Pod], selector: Selector, workloads: Mapping[str, object]) -> str:
    """Whose pods they are; where that is no workload, the name that was looked for."""
    makers = sorted({pod.controller for pod in pods})
    labelled = selector.only_values("workload") or ()
    for names in (makers, labelled):
        found = [name for name in names if name in workloads]
        if len(found) > 1:
            raise Refusal(bad_request(_several(found)))
        if found:
            return found[0]
    return next(filter(None, (*makers, *labelled)), "")


def _several(names: Sequence[str]) -> str:
    shown = listed(names)
    which = f"name one in the metric's selector, for example workload={names[0]}"
    return f"the pods are of {len(names)} workloads, {shown}: {which}"


def _no_ratio(metric: str) -> str:
    why = f"{metric} is a number of the whole workload, and an HPA would average it over pods"
    return f"{why}: ask for it as an External or Object metric; of pods there are {' and '.join(RATIOS)}"
