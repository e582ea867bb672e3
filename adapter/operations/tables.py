"""The gates and the bounds of one decision, in the order in which they apply, with their numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from adapter.core import clamps, gates
from adapter.core.clamps import Clamp
from adapter.core.decisions import Bound, Reason
from adapter.operations.number_text import ago, number, with_unit, yes_or_no
from adapter.operations.recorded_decision import RecordedDecision, known

InputText = Callable[[RecordedDecision], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate and its result."""

    name: Reason
    numbers: str  # its inputs, as text
    closed: bool  # it applies, so it would hold the target
    decided: bool  # it is the first that is closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One bound and its effect on the size."""

    name: Bound
    limit: str  # "" if it does not apply
    before: float | None  # workers
    after: float | None
    meaning: str


def gate_table(recorded: RecordedDecision) -> tuple[Gate, ...]:
    """Every gate in its order."""
    found, open_so_far = [], True
    for (name, mask), text in zip(gates.table(recorded.inputs.gate_inputs), _INPUT_TEXTS, strict=True):
        closed = bool(mask[0])
        found.append(Gate(name=name, numbers=text(recorded), closed=closed, decided=closed and open_so_far))
        open_so_far &= not closed
    return tuple(found)


def unbounded(recorded: RecordedDecision) -> float | None:
    """The size before the bounds: the policy's, or the target that a closed gate holds."""
    return known(recorded.result.unbounded)


def bound_table(recorded: RecordedDecision) -> tuple[Step, ...]:
    """Every bound in its order, with the size before and after it."""
    inputs, size = recorded.inputs, recorded.result.unbounded
    found = []
    for bound in clamps.table(
        size, inputs.status.current_workers, inputs.status.rules, inputs.range_, recorded.result.bound_inputs
    ):
        after = clamps.clamp(size, bound)
        found.append(
            Step(
                name=bound.name,
                limit=_limit(bound),
                before=known(size),
                after=known(after),
                meaning=_meaning(recorded, bound.name),
            )
        )
        size = after
    return tuple(found)


def _meaning(recorded: RecordedDecision, name: Bound) -> str:
    """The description of a bound; an end of the range names its origin."""
    if name is Bound.MAX:
        return f"not above {recorded.most_by}"
    return f"not below {recorded.least_by}" if name is Bound.MIN else name.record.description


def _limit(bound: Clamp) -> str:
    ends = {"at least": bound.least, "at most": bound.most}
    limits = {end: known(column) for end, column in ends.items() if column is not None}
    return ", ".join(f"{end} {number(limit)}" for end, limit in limits.items() if limit is not None)


def _rule(recorded: RecordedDecision, name: str) -> str:
    return f"{name} {with_unit(name, recorded.rule(name))}"


def _pause_text(recorded: RecordedDecision) -> str:
    up, down = (_pause_origin(recorded, direction) for direction in ("up", "down"))
    return f"scale-ups and scale-downs {up}" if up == down else f"scale-ups {up}, scale-downs {down}"


def _pause_origin(recorded: RecordedDecision, direction: str) -> str:
    """Who pauses a direction, and until when. A record does not have the end of an annotation."""
    if recorded.number(f"workload_status.no_{direction}") != 1:
        return "are not paused"
    until_s = recorded.rule(f"pause_{direction}_until_s")  # 0 without a pause, None without an end
    if until_s is not None and until_s <= recorded.decision.at_s:
        return "are paused by the annotation backlog-adapter/pause of the HPA"
    end = "without an end" if until_s is None else f"until {datetime.fromtimestamp(until_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return f"are paused by `pause` in the configuration {end}"


def _mask(text: str, name: str) -> InputText:
    return lambda recorded: f"{text}: {yes_or_no(recorded.number(name))}"


def _sample_age(*rules: str) -> InputText:
    return lambda recorded: ", ".join(
        [f"last sample {ago(recorded.number('gate_inputs.sample_age_s'))}", *(_rule(recorded, name) for name in rules)]
    )


def _worker_count_text(recorded: RecordedDecision) -> str:
    return f"counted {ago(recorded.number('gate_inputs.workers_age_s'))}, {_rule(recorded, 'stale_after_s')}"


def _failure_text(recorded: RecordedDecision) -> str:
    failures = recorded.number("gate_inputs.failures")
    restarts = "restarts unknown" if failures is None else f"{number(failures)} restarts"
    return f"{restarts}, {_rule(recorded, 'max_failures')}"


def _readiness_text(recorded: RecordedDecision) -> str:
    ready, desired = recorded.decision.ready_workers, recorded.number("workload_status.current_workers")
    changed_age_s = recorded.number("gate_inputs.spec_changed_age_s")
    present = "workers unknown"
    if ready is not None and desired is not None:
        present = f"{number(ready)} of {number(desired)} ready"
    rescaled = recorded.number("workload_status.rescaled") == 1  # the first count is no change
    changed = f"changed {ago(changed_age_s)}" if rescaled else "not changed yet"
    return f"{present}, {changed}, {_rule(recorded, 'in_flight_timeout_s')}"


def _settling_text(recorded: RecordedDecision) -> str:
    settles_s = with_unit("settle_s", known(gates.settle_s(recorded.inputs.gate_inputs.rules)))
    changed = f"last change or stop: {ago(recorded.number('gate_inputs.changed_age_s'))}"
    return _with_excess_input(f"{changed}, settling {settles_s}, {_rule(recorded, 'rate_window_s')}", recorded)


def _rates_text(recorded: RecordedDecision) -> str:
    return _with_excess_input(f"rates are known: {yes_or_no(recorded.number('gate_inputs.rates_known'))}", recorded)


def _with_excess_input(text: str, recorded: RecordedDecision) -> str:
    """The text of a gate that excess input may open."""
    opens = recorded.number("gate_inputs.excess_input") == 1 and recorded.number("gate_inputs.rates_known") == 0
    return f"{text}, but the input exceeds the capacity" if opens else text


# One a row of gates.table, in its order.
_INPUT_TEXTS: tuple[InputText, ...] = (
    _pause_text,
    _mask("in an excluded period", "gate_inputs.excluded"),
    _sample_age(),
    _sample_age("error_after_s"),
    _sample_age(),
    _worker_count_text,
    _mask("the job reports that it is not running", "gate_inputs.stopped"),
    _failure_text,
    _readiness_text,
    _readiness_text,
    _mask("a backlog waits and nothing is processed", "gate_inputs.nothing_moves"),
    _settling_text,
    _rates_text,
    _mask("the backlog jumped more than the input explains", "gate_inputs.discontinuous"),
)
