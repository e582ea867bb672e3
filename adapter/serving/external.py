"""A question for an external metric -> exactly one item, or an error that says why and what to do."""

from dataclasses import dataclass
from datetime import UTC, datetime

from adapter.core.decisions import Decision, Reason
from adapter.core.metric_names import METRIC_NAMES
from adapter.core.reasons import sentence
from adapter.serving.metrics import METRICS, Metric
from adapter.serving.near import nearest
from adapter.serving.quantity import quantity
from adapter.serving.selectors import Requirement, Selector
from adapter.serving.snapshot import Entry, Snapshot
from adapter.serving.status import Answer, Document, bad_request, not_found, unavailable
from adapter.serving.store import Candidate, Held, Namespace

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
GROUP_VERSION = f"{GROUP}/{VERSION}"

MOST_NAMES = 10
FIX = "is the pipeline running, and can this server reach it? see its log and /readyz"


@dataclass(frozen=True, slots=True)
class Question:
    """What an HPA asks: one metric of what the selector picks in its namespace."""

    namespace: str
    metric: str
    selector: Selector


def answer(held: Held | None, now_s: float, question: Question) -> Answer:
    """One item, never more: an HPA adds up all items it gets (X-08).

    404: an unknown metric, or nothing matches (with the near miss). 400: several match (with their names).
    503: there is no number (X-06), with the reason; an HPA then keeps its size and shows the message.
    """
    metric = METRICS.get(question.metric)
    if metric is None:
        return _unknown_metric(question.metric)
    if held is None:
        return unavailable(f"the pipeline has published nothing since this server started; {FIX}")
    if silence := _silence(held.snapshot, now_s):
        return unavailable(silence)
    namespace = held.namespaces.get(question.namespace, Namespace())
    found = _matching(namespace, question.selector)
    if len(found) != 1:
        return bad_request(_several(found, question)) if found else not_found(_near_miss(namespace, question))
    return _answer_of(metric, found[0], held.snapshot.window_s, now_s)


def listing(items: list[Document]) -> Document:
    """An ExternalMetricValueList."""
    return {"kind": "ExternalMetricValueList", "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}


def _matching(namespace: Namespace, selector: Selector) -> list[Candidate]:
    candidates = namespace.candidates(selector.only_values("workload"), stages=selector.mentions("stage"))
    return [candidate for candidate in candidates if selector.matches(candidate.labels)]


def _answer_of(metric: Metric, found: Candidate, window_s: float, now_s: float) -> Answer:
    if found.stage is not None and metric.read_stage is None:
        whole = f"{metric.name} is a number of the whole workload {found.workload}"
        return bad_request(f"{whole}: leave stage out of the selector")
    value = _value(metric, found)
    try:
        text = None if value is None else quantity(value, signed=metric.signed)
    except ValueError:
        text = None  # NaN, infinite or negative: a number that is none is not known
    if text is None:
        return unavailable(_no_number(metric, found.decision))
    age_s = _age_s(found.decision, now_s)
    if age_s > found.entry.error_after_s:
        return unavailable(_too_old(metric, found.entry, age_s))
    return Answer(200, listing([_item(metric, found, window_s, text)]))


def _no_number(metric: Metric, decision: Decision) -> str:
    """Workload, reason, age and fix: what `kubectl describe hpa` shows."""
    known = decision.required_workers is not None
    cause = "what it is made of is not known yet; the decision was: " if known else ""
    return f"no {metric.name} for {decision.workload} ({decision.reason}): {cause}{sentence(decision)}"


def _age_s(decision: Decision, now_s: float) -> float:
    """How old the newest sample behind a decision is by now. A paused size is held however old its samples were."""
    sample_age_s = 0.0 if decision.reason is Reason.PAUSED else decision.sample_age_s or 0.0
    return now_s - decision.at_s + sample_age_s


def _too_old(metric: Metric, entry: Entry, age_s: float) -> str:
    what = f"no {metric.name} for {entry.decision.workload}: its newest sample is {age_s:.0f} s old"
    return f"{what}, the limit is {entry.error_after_s:.0f} s; {FIX}"


def _value(metric: Metric, found: Candidate) -> float | None:
    if found.stage is None:
        return metric.read(found.decision)
    return None if metric.read_stage is None else metric.read_stage(found.stage)


def _item(metric: Metric, found: Candidate, window_s: float, value: str) -> Document:
    at = datetime.fromtimestamp(int(found.decision.at_s), UTC)
    return {
        "metricName": metric.name,
        "metricLabels": found.labels,
        "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "window": round(window_s),
        "value": value,
    }


def _unknown_metric(name: str) -> Answer:
    if name in METRIC_NAMES:
        return not_found(f"the server could not find the metric {name}: this release does not serve it")
    near = nearest(name, METRICS) or ", ".join(METRICS)
    return not_found(f"the server could not find the metric {name}: nearest is {near}")


def _silence(snapshot: Snapshot, now_s: float) -> str | None:
    """Why a snapshot answers nothing; None when it does."""
    age_s = now_s - snapshot.at_s
    if snapshot.is_ahead(now_s):
        return f"the last decision is {-age_s:.0f} s in the future: compare the clocks of the pipeline and this server"
    if age_s > snapshot.error_after_s:
        return f"the pipeline published nothing for {age_s:.0f} s, the limit is {snapshot.error_after_s:.0f} s; {FIX}"
    return None


def _several(found: list[Candidate], question: Question) -> str:
    names = [candidate.labels["workload"] + _stage_suffix(candidate) for candidate in found]
    shown = ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
    asked = f'selector "{question.selector}"' if question.selector.requirements else "no selector"
    return (
        f"{asked} matches {len(found)} in namespace {question.namespace}, and an HPA would add them up: {shown}; "
        f"select one, for example with workload={found[0].labels['workload']}"
    )


def _stage_suffix(candidate: Candidate) -> str:
    return "" if candidate.stage is None else f" stage {candidate.stage.stage}"


def _near_miss(namespace: Namespace, question: Question) -> str:
    """Why nothing matched: the first term that nothing satisfies, and what is nearest to it."""
    where = f"in namespace {question.namespace}"
    if not namespace.workloads:
        return f"no workload is known {where}: ask in the namespace that the workload has in the configuration"
    candidates = namespace.candidates(None, stages=question.selector.mentions("stage"))
    for requirement in question.selector.requirements:
        if not any(requirement.matches(candidate.labels) for candidate in candidates):
            return f"{requirement} matches nothing {where}; {_nearest_to(requirement, candidates)}"
    return f"each of {question.selector} matches something {where}, but nothing matches all of it"


def _nearest_to(requirement: Requirement, candidates: list[Candidate]) -> str:
    keys = {key for candidate in candidates for key in candidate.labels}
    if requirement.key not in keys:
        near = nearest(requirement.key, keys)
        return f"nearest label is {near}" if near else f"labels are {', '.join(sorted(keys)[:MOST_NAMES])}"
    values = {candidate.labels[requirement.key] for candidate in candidates if requirement.key in candidate.labels}
    asked = requirement.values[0] if requirement.values else ""
    near = nearest(asked, values)
    return f"nearest is {near}" if near else f"values are {', '.join(sorted(values)[:MOST_NAMES])}"
