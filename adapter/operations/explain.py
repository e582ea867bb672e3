"""A record -> why the number is what it is, what would change it, and what the HPA does with it."""

from collections.abc import Iterator
from dataclasses import dataclass

from adapter.core.decisions import Bound, Reason
from adapter.errors import AdapterError
from adapter.operations.changes import MEASURED, Change, Opened, decided_by, nearest, opened
from adapter.operations.enactment import enacted
from adapter.operations.numbers import asked, capacity, rules, signals, terms
from adapter.operations.reading import Reading, read
from adapter.operations.rows import Row, Section, written
from adapter.operations.tables import Gate, Step, bound_table, gate_table
from adapter.operations.words import exact, number, said, title
from adapter.serving.snapshots.records import Record, decode

_CHANGES = "What would change it: the target at the nearest other values of each input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """decided_by: an input, the gate that is closed, or the bound that cut; "" where nothing measured changes it.

    opened: what would be without that gate or bound. changes: nearest first. sections: everything, to be read.
    """

    sentence: str
    decided_by: str
    opened: Opened | None
    changes: tuple[Change, ...]
    gates: tuple[Gate, ...]
    bounds: tuple[Step, ...]
    sections: tuple[Section, ...]


def explain(told: Record) -> Explanation:
    """Take a decision apart. Raises AdapterError when the record is of another release."""
    reading = read(told)
    changes, without = nearest(reading), opened(reading)
    by, gates, bounds = decided_by(reading, changes), gate_table(reading), bound_table(reading)
    return Explanation(
        sentence=told.sentence,
        decided_by=by,
        opened=without,
        changes=changes,
        gates=gates,
        bounds=bounds,
        sections=(
            asked(reading),
            Section(_CHANGES, _change_rows(reading, by, without, changes)),
            enacted(reading),
            Section("Gates, the first that is closed holds the target", tuple(map(_gate_row, gates))),
            signals(reading),
            capacity(reading),
            terms(reading),
            Section("Bounds, in their order", tuple(map(_bound_row, bounds))),
            rules(reading),
        ),
    )


def explained(body: bytes) -> Explanation:
    """The explanation of a record as it was served. Raises AdapterError when this release cannot read it."""
    try:
        return explain(decode(body))
    except ValueError as error:
        raise AdapterError(f"{error}: use the release that runs the pipeline") from error


def lines(explanation: Explanation) -> list[str]:
    """The explanation as plain text, at most rows.COLUMNS wide. A line that is marked begins with ">"."""
    return written(explanation.sentence, explanation.sections)


def _gate_row(gate: Gate) -> Row:
    state = "closed" if gate.decided else "closed too" if gate.closed else "passed"
    return Row(name=gate.name, value=state, note=gate.numbers, marked=gate.decided)


def _bound_row(step: Step) -> Row:
    if step.before == step.after:
        return Row(name=step.name, value="as it was" if step.limit else "does not apply", note=step.limit)
    changed = f"{number(step.before)} -> {number(step.after)}"
    return Row(name=step.name, value=changed, note=f"{step.limit}: {step.meaning}", marked=True)


def _change_rows(reading: Reading, by: str, without: Opened | None, changes: tuple[Change, ...]) -> tuple[Row, ...]:
    found = [Row(name="decided by", value=_decider(reading, by, changes), note=_meaning(by), marked=True)]
    if without is not None:
        found += _opened_rows(without)
    for name in sorted(dict.fromkeys(change.name for change in changes), key=lambda name: _rank(by, name)):
        both = [change for change in changes if change.name == name]
        other = ", ".join(f"{number(c.required_workers)} at {exact(name, c.value)}" for c in both)
        found.append(Row(name=_input(reading, name), value=said(name, both[0].now), note=other))
    return tuple(found)


def _rank(by: str, name: str) -> int:
    """What decided comes first, then what was measured, then limits and rules; each nearest first."""
    return 0 if name == by else 1 if name in MEASURED else 2


def _decider(reading: Reading, by: str, changes: tuple[Change, ...]) -> str:
    if by == Bound.SINK:
        return "the sink"
    return _input(reading, by) if by else "nothing that was measured" if changes else "nothing that was tried"


def _meaning(by: str) -> str:
    return by.record.description if isinstance(by, Reason | Bound) else ""


def _input(reading: Reading, name: str) -> str:
    """What a person calls an input; an end of the range by what made it."""
    ends = {"max_workers": reading.most_by, "min_workers": reading.least_by}
    made = ends.get(name, name)
    if made == name:
        return title(name)
    return made if made.startswith("the HPA") else "the maximum" if name == "max_workers" else "the minimum"


def _opened_rows(without: Opened) -> Iterator[Row]:
    if isinstance(without.name, Reason):
        yield Row(name="it opens", note=without.name.record.opens)
    held = f", and {without.then} would hold it" if without.then is not None else ""
    name = "the sink" if without.name is Bound.SINK else without.name
    yield Row(name=f"without {name}", note=f"the target would be {number(without.required_workers)}{held}")
