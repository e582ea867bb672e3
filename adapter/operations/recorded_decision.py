"""A record -> its decision inputs, and the decision computed again from them."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from adapter.core.bounds import BOUNDS
from adapter.core.decide import DecisionResult, decide
from adapter.core.decision_input import DecisionInput
from adapter.core.decisions import Bound, Decision, Reason
from adapter.core.gates import OPEN
from adapter.core.reasons import REASONS
from adapter.core.record import RecordColumns, decision_input_of
from adapter.core.samples import Array
from adapter.errors import AdapterError
from adapter.serving.snapshots.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision:
    """One decision with all its inputs; every array has one element."""

    decision: Decision
    columns: RecordColumns
    inputs: DecisionInput
    result: DecisionResult

    @property
    def gate(self) -> Reason | None:
        """The closed gate, None if the policy decided."""
        return gate_of(self.result)

    @property
    def bound(self) -> Bound:
        """The last bound that applied."""
        return BOUNDS[int(self.result.bound[0])]

    @property
    def held_by_sink(self) -> bool:
        """Whether the job is behind and its sink is unhealthy, so that no other size helps."""
        return bool(self.result.bound_inputs.sink_unhealthy[0] and self.result.bound_inputs.behind[0])

    @property
    def served(self) -> float | None:
        """The target, None if there is none."""
        return known(self.result.served)

    @property
    def by_partitions(self) -> bool:
        """Whether the partitions set the largest size. They do not lower a target that a gate holds."""
        return self.gate is None and self.number("range.by_partitions") == 1

    @property
    def most(self) -> float | None:
        """The largest size of a scale-up."""
        return self.number("range.ceiling" if self.by_partitions else "range.allowed")

    @property
    def most_by(self) -> str:
        """The origin of the maximum, apart from the partitions."""
        if self.number("range.by_default") == 1:
            return "the default maximum"
        return "max_workers" if self.number("range.allowed") == self.rule("max_workers") else "the HPA's maxReplicas"

    @property
    def least_by(self) -> str:
        """The origin of the minimum. The maximum wins over every minimum."""
        least, rule = self.columns["range.least"][0], self.columns["rules.min_workers"][0]
        if self.number("range.by_memory") == 1:
            return "max_partitions_per_worker"
        return "the HPA's minReplicas" if least > rule else "the maximum" if least < rule else "min_workers"

    def number(self, name: str) -> float | None:
        """One number of the record, None unknown."""
        return known(self.columns[name])

    def rule(self, name: str) -> float | None:
        """One parameter, None where it is unset."""
        return self.number(f"rules.{name}")


def replay(record: Record) -> RecordedDecision:
    """Decide again from the record. Raises AdapterError if this release cannot, or decides otherwise."""
    columns = {name: np.array([np.nan if number is None else number]) for name, number in record.record.items()}
    try:
        inputs = decision_input_of(columns)
        result = decide(inputs)
    except (KeyError, ValueError) as error:
        raise AdapterError(f"the record cannot be read ({error}): use the release that runs the pipeline") from error
    recorded = RecordedDecision(decision=record.decision, columns=columns, inputs=inputs, result=result)
    if recorded.served != record.decision.required_workers:
        decided = f"{record.decision.required_workers} was decided, {recorded.served} follows from its record"
        raise AdapterError(f"{decided}: use the release that runs the pipeline")
    return recorded


def gate_of(result: DecisionResult) -> Reason | None:
    """The closed gate of the one workload, None if the policy decided."""
    place = int(result.gate[0])
    return None if place == OPEN else REASONS[place]


def known(column: Array) -> float | None:
    """The one number of a column, None for unknown."""
    number = float(column[0])
    return number if isfinite(number) else None
