"""A question about a workload -> the one number that may be served, or a refusal that says why and what to do."""

from collections.abc import Callable, Mapping, Sequence

from adapter.core.decisions import Decision, Reason
from adapter.core.messages import sentence
from adapter.core.metric_names import METRIC_NAMES
from adapter.serving.api.quantity import quantity
from adapter.serving.api.request import MustWait
from adapter.serving.api.selectors import Labels, Requirement, Selector
from adapter.serving.api.status import Refusal, bad_request, not_found, unavailable
from adapter.serving.api.values import Value
from adapter.serving.signals.lookup import Lookup
from adapter.serving.signals.metrics import METRICS, Metric
from adapter.serving.signals.near import listed, nearest
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.snapshots.store import Held, SnapshotStore
from adapter.serving.snapshots.workloads import Candidate, Namespace

FIX = "is the pipeline running, and can this server reach it? see its log and /readyz"
# Read for one answer: some 10 ms, and 4 MB for as long as the snapshot is held.
MOST_AT_ONCE = 1_000
# The same where nobody may be kept waiting: a millisecond.
MOST_AT_ONCE_IN_PASSING = 100
# Labels compared where nobody may be kept waiting, a term of each workload: a millisecond. To read them first, once a
# snapshot, takes as long as so many comparisons.
MOST_IN_PASSING = 2_000
_READ_AT_THE_COST_OF = 4


class Question(Value, frozen=True):
    """One metric of what the selector picks in a namespace.

    patient: as of Request. subject: of what the metric is asked, where it is not a workload by itself. hint: what to do
    when nothing matches.
    """

    namespace: str
    metric: str
    selector: Selector
    patient: bool = True
    subject: str = ""
    hint: str = ""


class Reading(Value, frozen=True):
    """A number that may be served. labels: of the workload or its stage. value: a Quantity. at_s: Unix seconds."""

    labels: Labels
    value: str
    at_s: float
    window_s: int


class Readings:
    """The numbers of the held snapshot, of which nothing is kept here. clock: Unix seconds.

    Every method raises Refusal. 404: an unknown metric, or nothing matches (with the near miss). 400: several match
    (with their names). 503: there is no number (X-06), with the reason; an HPA then keeps its size and shows the
    message. MustWait is raised for what takes milliseconds in a namespace of very many workloads.
    """

    def __init__(self, store: SnapshotStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def one(self, question: Question) -> Reading:
        """Exactly one, for an HPA adds up all it gets (X-08)."""
        metric = known(question.metric, question.subject)
        now_s = self._clock()
        held = self._answering(now_s)
        found = _found(held, question)
        if len(found) > 1:
            raise Refusal(bad_request(_several(found, question)))
        return _reading(metric, found[0], held.snapshot, now_s)

    def several(self, question: Question) -> list[Reading]:
        """All that have a number, at least one of them."""
        metric = known(question.metric, question.subject)
        now_s = self._clock()
        held = self._answering(now_s)
        told: list[Reading] = []
        refused: Refusal | None = None
        for candidate in _not_too_many(_found(held, question), question):
            try:
                told.append(_reading(metric, candidate, held.snapshot, now_s))
            except Refusal as refusal:
                refused = refused or refusal
        if refused is not None and not told:
            raise refused
        return told

    def workloads(self, namespace: str) -> Mapping[str, object]:
        """The workloads of a namespace by name, at least one."""
        found = self._answering(self._clock()).namespaces.get(namespace)
        if found is None:
            raise Refusal(not_found(_unknown_namespace(namespace)))
        return found.workloads

    def _answering(self, now_s: float) -> Held:
        """What is held, if it may answer."""
        held = self._store.current
        if held is None:
            raise Refusal(unavailable(f"the pipeline has published nothing since this server started; {FIX}"))
        if silence := _silence(held.snapshot, now_s):
            raise Refusal(unavailable(silence))
        return held


def known(name: str, subject: str = "") -> Metric:
    """The metric of that name. Raises Refusal (404) with the nearest. subject: of what it is asked."""
    metric = METRICS.get(name)
    if metric is not None:
        return metric
    missing = absent(name, subject)
    if name in METRIC_NAMES:
        raise Refusal(not_found(f"{missing}: this release does not serve it"))
    near = nearest(name, METRICS)
    raise Refusal(not_found(f"{missing}: " + (f"nearest is {near}" if near else f"there are {', '.join(METRICS)}")))


def named(selector: Selector, name: str) -> Selector:
    """The selector, with the workload of that name unless it speaks of workloads itself."""
    if selector.mentions("workload"):
        return selector
    return Selector((Requirement("workload", "in", (name,), "="), *selector.requirements))


def absent(name: str, subject: str) -> str:
    """How the API says that there is no such metric."""
    return f"the server could not find the metric {name}" + (f" for {subject}" if subject else "")


def _found(held: Held, question: Question) -> Sequence[Candidate]:
    """What the selector picks, at least one."""
    selector = question.selector
    namespace = held.namespaces.get(question.namespace) or Namespace()
    if not question.patient and _keeps_waiting(namespace, selector):
        raise MustWait
    lookup = Lookup(namespace, stages=selector.mentions("stage"))
    if found := lookup.matching(selector):
        return found
    if not question.patient:  # to find the near miss takes some 30 ms
        raise MustWait
    raise Refusal(not_found(_nothing(question, namespace, lookup)))


def _not_too_many(found: Sequence[Candidate], question: Question) -> Sequence[Candidate]:
    if len(found) > MOST_AT_ONCE:
        most = f"at most {MOST_AT_ONCE} are told at once: narrow the selector"
        raise Refusal(bad_request(f"{len(found)} workloads match in namespace {question.namespace}; {most}"))
    if not question.patient and len(found) > MOST_AT_ONCE_IN_PASSING:
        raise MustWait
    return found


def _keeps_waiting(namespace: Namespace, selector: Selector) -> bool:
    """Whether to search takes milliseconds."""
    names = selector.only_values("workload")
    if names is not None:
        return len(names) > MOST_AT_ONCE_IN_PASSING
    terms, stages = max(1, len(selector.requirements)), selector.mentions("stage")
    if namespace.is_labelled(stages=stages):
        return len(namespace.labelled(stages=stages).candidates) * terms > MOST_IN_PASSING
    return stages or len(namespace.workloads) * (terms + _READ_AT_THE_COST_OF) > MOST_IN_PASSING


def _nothing(question: Question, namespace: Namespace, lookup: Lookup) -> str:
    if not namespace.workloads:
        return _unknown_namespace(question.namespace)
    near_miss = lookup.near_miss(question.selector, f"in namespace {question.namespace}")
    is_there = any(name in namespace.workloads for name in question.selector.only_values("workload") or ())
    return f"{near_miss}; {question.hint}" if question.hint and not is_there else near_miss


def _unknown_namespace(name: str) -> str:
    return f"no workload is known in namespace {name}: ask in the namespace that the workload has in the configuration"


def _reading(metric: Metric, found: Candidate, snapshot: Snapshot, now_s: float) -> Reading:
    try:
        entry = found.entry
    except ValueError as error:
        raise Refusal(unavailable(_unreadable(metric, found, error))) from error
    value = _quantity(metric, found)
    if value is None:
        raise Refusal(unavailable(_no_number(metric, entry.decision)))
    age_s = _age_s(metric, entry.decision, now_s)
    if age_s > entry.error_after_s:
        raise Refusal(unavailable(_too_old(metric, entry, age_s)))
    return Reading(found.labels, value, entry.decision.at_s, round(snapshot.window_s))


def _quantity(metric: Metric, found: Candidate) -> str | None:
    """None when there is no number: a number that is none (NaN, infinite, negative) is not known either."""
    value = _value(metric, found)
    try:
        return None if value is None else quantity(value, signed=metric.signed)
    except ValueError:
        return None


def _value(metric: Metric, found: Candidate) -> float | None:
    if found.stage is None:
        return metric.read(found.decision)
    if metric.read_stage is None:
        whole = f"{metric.name} is a number of the whole workload {found.workload}"
        raise Refusal(bad_request(f"{whole}: leave stage out of the selector"))
    return metric.read_stage(found.stage)


def _no_number(metric: Metric, decision: Decision) -> str:
    """Workload, reason, age and fix: what `kubectl describe hpa` shows."""
    decided = decision.required_workers is not None
    cause = "what it is made of is not known yet; the decision was: " if decided else ""
    return f"no {metric.name} for {decision.workload} ({decision.reason}): {cause}{sentence(decision)}"


def _unreadable(metric: Metric, found: Candidate, error: ValueError) -> str:
    what = f"no {metric.name} for workload {found.labels['workload']}: what the pipeline says of it cannot be read"
    return f"{what}: {error}; run one release of pipeline and serve"


def _age_s(metric: Metric, decision: Decision, now_s: float) -> float:
    """How old the newest sample behind a number is by now; a paused size is held, however old its samples were."""
    is_held = decision.reason is Reason.PAUSED and metric.is_size
    told_s = None if is_held else metric.age_s(decision)
    return now_s - decision.at_s + (told_s or 0.0)


def _too_old(metric: Metric, entry: Entry, age_s: float) -> str:
    what = f"no {metric.name} for {entry.decision.workload}: its newest sample is {age_s:.0f} s old"
    return f"{what}, the limit is {entry.error_after_s:.0f} s; {FIX}"


def _silence(snapshot: Snapshot, now_s: float) -> str | None:
    """Why a snapshot answers nothing; None when it does."""
    age_s = now_s - snapshot.at_s
    if snapshot.is_ahead(now_s):
        return f"the last decision is {-age_s:.0f} s in the future: compare the clocks of the pipeline and this server"
    if age_s > snapshot.error_after_s:
        return f"the pipeline published nothing for {age_s:.0f} s, the limit is {snapshot.error_after_s:.0f} s; {FIX}"
    return None


def _several(found: Sequence[Candidate], question: Question) -> str:
    shown = listed([candidate.labels["workload"] + _stage_suffix(candidate) for candidate in found])
    asked = f'selector "{question.selector}"' if question.selector.requirements else "a question without selector"
    return (
        f"{asked} picks {len(found)} in namespace {question.namespace}, and an HPA would add them up: {shown}; "
        f"select one, for example with workload={found[0].labels['workload']}"
    )


def _stage_suffix(candidate: Candidate) -> str:
    return "" if candidate.place is None else f" stage {candidate.labels['stage']}"
