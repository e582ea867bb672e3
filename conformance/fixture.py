"""What the recorded server had to tell: the same metrics, numbers and failures, as providers of ours."""

import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from adapter.serving.api.custom import EVERY_NAME, ObjectMetric, ObjectQuestion, ObjectValue
from adapter.serving.api.external import GROUP, ExternalQuestion, ExternalValue
from adapter.serving.api.probes import Checks, Probes
from adapter.serving.api.request import MustWait
from adapter.serving.api.selectors import Selector
from adapter.serving.api.status import Answer, Refusal, failure, not_found, unavailable

AT_S = 1_767_323_045.0  # 2026-01-02T03:04:05Z
MY_METRIC = "my-external-metric"
PANIC = "the source panicked"
# A source that is slower than any deadline that a recording gives it.
SLOW_S = 3.0

_SERIES: tuple[tuple[str, str, int | None], ...] = (("bar", "42", None), ("baz", "43", 60))
_MILLI = (
    "0", "1m", "999m", "1", "1500m", "20", "21", "-1m", "-1500m", "1k", "1234567m", "999999999m", "1M", "1G",
    "9223372036854775807m", "-9223372036854775807m",
)  # fmt: skip
# What a Quantity was read from, and what it is written as.
_PARSED = {
    "0.5": "500m",
    "1.0001": "1000100u",
    "1e3": "1e3",
    "12e6": "12e6",
    "1Ki": "1Ki",
    "1500Mi": "1500Mi",
    "100k": "100k",
    "0.0000000001": "1n",
    "12345678901234567890": "12345678901234567890",
    "1.5Gi": "1536Mi",
    "5n": "5n",
    "2500u": "2500u",
    "3E": "3E",
    "1E": "1E",
}

_BEGUN = ("ping", "log", "poststarthook/generic-apiserver-start-informers")
_HOOKED = ("poststarthook/max-in-flight-filter", "poststarthook/storage-object-count-tracker-hook")


def probes() -> Probes:
    """The recorded server's checks in its order; all pass."""
    living = _passing(*_BEGUN, *_HOOKED)
    return Probes(living, living, _passing(*_BEGUN, "informer-sync", *_HOOKED, "shutdown"))


def _passing(*names: str) -> Checks:
    return dict.fromkeys(names, lambda: True)


def _plain(message: str) -> Answer:
    """A failure without a reason: of a source that knows nothing of Kubernetes."""
    document = failure(500, "", message).document
    return Answer(500, {key: value for key, value in document.items() if key != "reason"})


_FAILURES: Mapping[str, Answer] = {
    "e-notfound": not_found("the server could not find the metric e-notfound for external"),
    "e-plain": _plain("plain go error"),
    "e-ctx": _plain("context deadline exceeded"),
    "e-internal": failure(500, "InternalError", "Internal error occurred: boom", {"causes": [{"message": "boom"}]}),
    "e-unavail": unavailable("not synced"),
    "e-toomany": failure(429, "TooManyRequests", "Too many requests: slow down"),
    "e-forbidden": failure(
        403,
        "Forbidden",
        f"e-forbidden.{GROUP} is forbidden: no",
        {"group": GROUP, "kind": "e-forbidden"},
    ),
}


class ExternalFixture:
    """Two series of one metric, and a metric for every way in which a source answers or fails. told: more failures."""

    def __init__(self, told: Mapping[str, Answer] = MappingProxyType({})) -> None:
        self._failures = {**told, **_FAILURES}
        self._ends = threading.Event()

    def close(self) -> None:
        """Who waits for the slow source waits no more."""
        self._ends.set()

    def names(self) -> Sequence[str]:
        """One metric twice: who lists them does not sort them out."""
        return (MY_METRIC, "other-external-metric", MY_METRIC)

    def has(self, metric: str) -> bool:
        """Every metric: there is no other adapter."""
        return True

    def read(self, question: ExternalQuestion) -> Sequence[ExternalValue]:
        """By the metric's name alone; the namespace becomes a label. Unknown metrics have no values."""
        metric = question.metric
        if metric in self._failures:
            raise Refusal(self._failures[metric])
        if metric == "panic":
            raise RuntimeError(PANIC)
        if metric == "slow":
            self._wait(question.patient)
        if metric == MY_METRIC:
            return _series(question.namespace, question.selector)
        if metric == "nil-labels":
            return (ExternalValue(metric, None, "1500m"),)
        return _quantities() if metric == "quant" else ()

    def _wait(self, patient: bool) -> None:
        if not patient:
            raise MustWait
        self._ends.wait(SLOW_S)


def _series(namespace: str, selector: Selector) -> Sequence[ExternalValue]:
    values = [
        ExternalValue(MY_METRIC, {"foo": foo, "ns": namespace}, value, AT_S, window_s)
        for foo, value, window_s in _SERIES
    ]
    return [value for value in values if selector.matches(value.labels or {})]


def _quantities() -> Sequence[ExternalValue]:
    made = [ExternalValue("milli", None, text, AT_S) for text in _MILLI]
    return made + [ExternalValue(f"parse {text}", None, value, AT_S) for text, value in _PARSED.items()]


class CustomFixture:
    """300m of every object and metric but the metric called `missing`; every object is a pod."""

    def metrics(self) -> Sequence[ObjectMetric]:
        """Of a core resource, of one without a namespace, and of one with a group."""
        return (
            ObjectMetric("pods", "some-metric"),
            ObjectMetric("namespaces", "some-metric", namespaced=False),
            ObjectMetric("ingresses.networking.k8s.io", "hits"),
        )

    def has(self, resource: str, metric: str) -> bool:
        """Every metric: there is no other adapter."""
        return True

    def read(self, question: ObjectQuestion) -> Sequence[ObjectValue]:
        """Two objects for `*`, else the one that is named."""
        several = question.name == EVERY_NAME
        if question.metric == "missing":
            where = question.resource if several else f"{question.resource} {question.name}"
            raise Refusal(not_found(f"the server could not find the metric missing for {where}"))
        names = ("pod-a", "pod-b") if several else (question.name,)
        return [ObjectValue("Pod", "/v1", question.namespace, name, "300m", AT_S) for name in names]
