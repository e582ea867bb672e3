"""Records as a running pipeline holds them, and targets with one input changed."""

import math
from collections.abc import Iterable
from functools import cache

import numpy as np
from builders import book, steady

from adapter import __version__
from adapter.core.decide import decide
from adapter.core.decision_input import DecisionInput
from adapter.core.decisions import Decisions
from adapter.core.engine import replay
from adapter.core.messages import sentence
from adapter.core.record import decision_input_of, with_input
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.samples import Samples
from adapter.serving.snapshots.records import Record


def decided(ticks: Iterable[Samples], rules: RuleBook) -> Decisions:
    """The decisions of the last tick."""
    return [decisions for _, decisions in replay(ticks, rules)][-1]


def record_of(ticks: Iterable[Samples], rules: RuleBook) -> Record:
    """The record of the only workload."""
    decisions = decided(ticks, rules)
    (decision,) = rows(decisions)
    numbers = {name: float(column[0]) for name, column in decisions.record.items()}
    return Record(
        version=__version__,
        decision=decision,
        sentence=sentence(decision),
        record={name: number if math.isfinite(number) else None for name, number in numbers.items()},
    )


def growing(signals: dict[str, float] | None = None, **rules: object) -> Record:
    """The running example: 10 workers process 1 000 of 1 200 records/s from 48 partitions, sized by drain."""
    seen = {"partitions": 48.0} | (signals or {})
    return _growing(tuple(seen.items()), tuple(rules.items()))


@cache
def _growing(signals: tuple[tuple[str, float], ...], rules: tuple[tuple[str, object], ...]) -> Record:
    ticks = steady(600, throughput=1000, growth=200, backlog=5000, **dict(signals))
    return record_of(ticks, book(**{"policy": "drain", **dict(rules)}))


def columns_of(record: Record) -> dict[str, np.ndarray]:
    """The columns of a record."""
    return {name: np.array([math.nan if number is None else number]) for name, number in record.record.items()}


def target_with(record: Record, name: str, value: float) -> float:
    """The target with one input changed."""
    return target(decision_input_of(with_input(columns_of(record), name, np.array([value]))))


def target(inputs: DecisionInput) -> float:
    """The target."""
    return float(decide(inputs).served[0])
