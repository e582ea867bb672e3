"""A record -> the reason for the target, the input values that would change it, and the reaction of the HPA."""

from collections.abc import Iterator
from dataclasses import dataclass

from adapter.core.decisions import Bound, Reason
from adapter.core.formatting import workers
from adapter.errors import AdapterError, plain, printable
from adapter.operations.changes import MEASURED, Change, UnboundedDecision, decided_by, nearest_changes, without_bound
from adapter.operations.enactment import hpa_section
from adapter.operations.number_text import exact, number, title, with_unit
from adapter.operations.numbers import capacity, rules, signals, summary, terms
from adapter.operations.recorded_decision import RecordedDecision, replay
from adapter.operations.rows import Row, TextSection, render
from adapter.operations.tables import Gate, Step, bound_table, gate_table
from adapter.serving.snapshots.records import Record, decode

_CHANGES = "What would change the target: each input, its value now, and the nearest values that do"
_TITLES = {"held_workers": "previous target", "window_workers": "scale-down window"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The sentence of a decision, and as text its inputs, its steps and the changes that would change the target."""

    sentence: str
    sections: tuple[TextSection, ...]


def explain(record: Record) -> Explanation:
    """Explain a decision. Raises AdapterError if another release decided it."""
    recorded = replay(record)
    changes, without = nearest_changes(recorded), without_bound(recorded)
    by = decided_by(recorded, changes)
    return Explanation(
        sentence=record.sentence,
        sections=(
            summary(recorded),
            TextSection(_CHANGES, _change_rows(recorded, by, without, changes)),
            hpa_section(recorded),
            TextSection("Gates: the first closed gate holds the target", tuple(map(_gate_row, gate_table(recorded)))),
            signals(recorded),
            capacity(recorded),
            terms(recorded),
            TextSection("Bounds, in order", tuple(_bound_rows(bound_table(recorded)))),
            rules(recorded),
        ),
    )


def explain_body(body: bytes) -> Explanation:
    """Explain the decision in an encoded record. Raises AdapterError if this release cannot read it."""
    try:
        return explain(decode(body))
    except ValueError as error:
        raise AdapterError(f"{plain(str(error))}: use the release that runs the pipeline") from error


def lines(explanation: Explanation, *more: TextSection) -> list[str]:
    """The explanation, and more sections, as plain text at most rows.COLUMNS wide. A marked line begins with ">"."""
    return [printable(line) for line in render(explanation.sentence, (*explanation.sections, *more))]


def _gate_row(gate: Gate) -> Row:
    state = "closed" if gate.decided else "also closed" if gate.closed else "passed"
    return Row(name=gate.name, value=state, note=gate.numbers, marked=gate.decided)


def _bound_rows(bounds: tuple[Step, ...]) -> Iterator[Row]:
    yield from (_bound_row(step) for step in bounds if step.limit)
    if silent := ", ".join(step.name for step in bounds if not step.limit):
        yield Row(name="do not apply", note=silent)


def _bound_row(step: Step) -> Row:
    if step.before == step.after:
        return Row(name=step.name, value="no change", note=step.limit)
    changed = f"{number(step.before)} -> {number(step.after)}"
    return Row(name=step.name, value=changed, note=f"{step.limit}: {step.meaning}", marked=True)


def _change_rows(
    recorded: RecordedDecision, by: str, without: UnboundedDecision | None, changes: tuple[Change, ...]
) -> tuple[Row, ...]:
    found = [Row(name="decided by", value=_decider(recorded, by, changes), note=_meaning(by), marked=True)]
    if without is not None:
        found += _opened_rows(without)
    for name in sorted(dict.fromkeys(change.name for change in changes), key=lambda name: _rank(by, name)):
        both = [change for change in changes if change.name == name]
        other = ", ".join(f"{_target(c)} at {exact(name, c.value)}" for c in both)
        found.append(Row(name=_input(recorded, name), value=with_unit(name, both[0].now), note=other))
    return tuple(found)


def _target(change: Change) -> str:
    return "no target" if change.required_workers is None else workers(change.required_workers)


def _rank(by: str, name: str) -> int:
    """The deciding input comes first, then measured inputs, then limits and rules; each nearest first."""
    return 0 if name == by else 1 if name in MEASURED else 2


def _decider(recorded: RecordedDecision, by: str, changes: tuple[Change, ...]) -> str:
    if by == Bound.SINK:
        return "the sink"
    return _input(recorded, by) if by else "no single measured input" if changes else "no single input"


def _meaning(by: str) -> str:
    return by.record.description if isinstance(by, Reason | Bound) else ""


def _input(recorded: RecordedDecision, name: str) -> str:
    """The title of an input; an end of the range has the title of its origin."""
    ends = {"max_workers": recorded.most_by, "min_workers": recorded.least_by}
    made = ends.get(name, name)
    if made == name:
        return _TITLES.get(name) or title(name)
    return made if made.startswith("the HPA") else "the maximum" if name == "max_workers" else "the minimum"


def _opened_rows(without: UnboundedDecision) -> Iterator[Row]:
    if isinstance(without.name, Reason):
        yield Row(name="the gate opens", note=without.name.record.opens)
    name = "the sink" if without.name is Bound.SINK else without.name
    yield Row(name=f"without {name}", note=_target_without(without))


def _target_without(without: UnboundedDecision) -> str:
    then = without.then
    if then == without.name:  # NoDataYet is also the gate of a policy that has no size
        return "the policy could not decide either: its inputs are unknown"
    if without.required_workers is None:
        return f"there would still be no number{f', because of {then}' if then else ''}"
    return f"the target would be {number(without.required_workers)}{f', and {then} would hold it' if then else ''}"
