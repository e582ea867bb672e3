"""The gates and the bounds of one decision, in the order in which they apply, with their numbers."""

from collections.abc import Callable
from dataclasses import dataclass

from adapter.core import clamps, gates
from adapter.core.clamps import Clamp
from adapter.core.decisions import Bound, Reason
from adapter.operations.reading import Reading, known
from adapter.operations.words import ago, number, said, yes

Look = Callable[[Reading], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate. numbers: what it looked at. closed: it would hold the target. decided: it is the one that did."""

    name: Reason
    numbers: str
    closed: bool
    decided: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one bound made of a size. before and after are workers, None unknown. limit: "" where it has none now."""

    name: Bound
    limit: str
    before: float | None
    after: float | None
    meaning: str


def gate_table(reading: Reading) -> tuple[Gate, ...]:
    """Every gate in its order."""
    found, open_so_far = [], True
    for (name, mask), look in zip(gates.table(reading.inputs.gate_inputs), _LOOKS, strict=True):
        closed = bool(mask[0])
        found.append(Gate(name=name, numbers=look(reading), closed=closed, decided=closed and open_so_far))
        open_so_far &= not closed
    return tuple(found)


def unbounded(reading: Reading) -> float | None:
    """The size before the bounds: the policy's, or the one a closed gate holds."""
    return known(reading.result.answer)


def bound_table(reading: Reading) -> tuple[Step, ...]:
    """Every bound in its order, and the size on its way through them."""
    inputs, size = reading.inputs, reading.result.answer
    found = []
    for cut in clamps.table(
        size, inputs.status.current_workers, inputs.status.rules, inputs.range_, reading.result.bound_inputs
    ):
        after = clamps.clamp(size, cut)
        found.append(
            Step(
                name=cut.name,
                limit=_limit(cut),
                before=known(size),
                after=known(after),
                meaning=_meaning(reading, cut.name),
            )
        )
        size = after
    return tuple(found)


def _meaning(reading: Reading, name: Bound) -> str:
    if name is Bound.MAX:
        return f"not above {reading.most_by}"
    return f"not below {reading.least_by}" if name is Bound.MIN else name.record.description


def _limit(cut: Clamp) -> str:
    least = None if cut.least is None else known(cut.least)
    most = None if cut.most is None else known(cut.most)
    parts = [f"at least {number(least)}"] if least is not None else []
    return ", ".join([*parts, *([f"at most {number(most)}"] if most is not None else [])])


def _rule(reading: Reading, name: str) -> str:
    return f"{name} {said(name, reading.rule(name))}"


def _paused(reading: Reading) -> str:
    up, down = (reading.number(f"workload_status.{name}") for name in ("no_up", "no_down"))
    return f"scale-ups paused: {yes(up)}, scale-downs paused: {yes(down)}"


def _mask(text: str, name: str) -> Look:
    return lambda reading: f"{text}: {yes(reading.number(name))}"


def _seen(*rules: str) -> Look:
    return lambda reading: ", ".join(
        [f"last sample {ago(reading.number('gate_inputs.sample_age_s'))}", *(_rule(reading, name) for name in rules)]
    )


def _counted(reading: Reading) -> str:
    return f"counted {ago(reading.number('gate_inputs.workers_age_s'))}, {_rule(reading, 'stale_after_s')}"


def _failed(reading: Reading) -> str:
    return f"{number(reading.number('gate_inputs.failures'))} restarts, {_rule(reading, 'max_failures')}"


def _present(reading: Reading) -> str:
    decision = reading.decision
    ready, asked = number(decision.ready_workers), number(reading.number("workload_status.current_workers"))
    waited = f"changed {ago(reading.number('gate_inputs.spec_changed_age_s'))}, {_rule(reading, 'in_flight_timeout_s')}"
    return f"{ready} of {asked} ready, {waited}"


def _settled(reading: Reading) -> str:
    settles_s = said("settle_s", known(gates.settle_s(reading.inputs.gate_inputs.rules)))
    changed = f"last change {ago(reading.number('gate_inputs.changed_age_s'))}"
    return f"{changed}, settling {settles_s}, {_rule(reading, 'rate_window_s')}"


# One a row of gates.table, in its order.
_LOOKS: tuple[Look, ...] = (
    _paused,
    _mask("in an excluded period", "gate_inputs.excluded"),
    _seen(),
    _seen("error_after_s"),
    _seen(),
    _counted,
    _mask("the job reports that it is not running", "gate_inputs.stopped"),
    _failed,
    _present,
    _present,
    _mask("a backlog waits and nothing moves", "gate_inputs.nothing_moves"),
    _settled,
    _mask("rates are known", "gate_inputs.rates_known"),
    _mask("the backlog jumped more than the input explains", "gate_inputs.discontinuous"),
)
