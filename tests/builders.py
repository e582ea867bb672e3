"""Small values for the tests of core: a test shows only what matters to it."""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from adapter.core.decisions import Decision
from adapter.core.engine import replay
from adapter.core.policies.verdict import Evidence
from adapter.core.report import rows
from adapter.core.rules import POLICIES, QUANTA, RuleBook, Rules
from adapter.core.samples import STAGE_SIGNALS, WHOLE, Array, Samples, assemble
from adapter.core.signals import backlog_time
from adapter.core.state import EMPTY, State

JOB = "shop/orders"
TICK_S = 15
Row = tuple[str, str, str, float]


def job(workload: str = JOB, stage: str = WHOLE, **signals: float | None) -> list[Row]:
    """The rows of one workload (or of one stage of it) at one tick; None leaves a signal out."""
    return [
        (workload, stage if signal in STAGE_SIGNALS else WHOLE, signal, value)
        for signal, value in signals.items()
        if value is not None
    ]


def counts(workers: float = 10, **changes: float | None) -> dict[str, float | None]:
    """What Kubernetes says of a workload at rest."""
    return {"spec_workers": workers, "workers": workers, "ready_workers": workers, **changes}


def flow(at_s: float, throughput: float = 1000, growth: float = 0, backlog: float = 0) -> dict[str, float | None]:
    """The counters of a steady stream. backlog: at time 0; it grows from there."""
    return {
        "processed_records": throughput * at_s,
        "appended_records": backlog + (throughput + growth) * at_s,
        "backlog_records": backlog + growth * at_s,
    }


def tick(at_s: float, *rows_of: Iterable[Row], faults: Iterable[tuple[str, str]] = ()) -> Samples:
    """One tick from the rows of any number of jobs."""
    return assemble(at_s, chain.from_iterable(rows_of), faults)


def steady(until_s: float = 60, from_s: float = 0, **signals: float | None) -> list[Samples]:
    """Ticks of one job in a steady stream: throughput, growth, backlog as in flow; all else as in job."""
    stream = {name: signals.pop(name) for name in ("throughput", "growth", "backlog") if name in signals}
    return [
        tick(at_s, job(**counts() | flow(at_s, **stream) | signals))
        for at_s in np.arange(from_s, until_s + 1, TICK_S).tolist()
    ]


def book(workload: str = JOB, **rules: object) -> RuleBook:
    """Rules of one configured workload."""
    return RuleBook(by_workload={workload: Rules(**rules)})  # type: ignore[arg-type]  # a test names what it changes


def fold(ticks: Iterable[Samples], rules: RuleBook | None = None, state: State = EMPTY) -> list[list[Decision]]:
    """The decisions of every tick."""
    return [rows(decisions) for _, decisions in replay(ticks, rules or book(), state)]


def history(ticks: Iterable[Samples], rules: RuleBook | None = None, workload: str = JOB) -> list[Decision]:
    """The decisions of one workload, of the ticks that had one."""
    return [decision for decided in fold(ticks, rules) for decision in decided if decision.workload == workload]


def last(ticks: Iterable[Samples], rules: RuleBook | None = None, workload: str = JOB) -> Decision:
    """The last decision of one workload."""
    return history(ticks, rules, workload)[-1]


def column(*values: float) -> Array:
    """Numbers as an array."""
    return np.array(values, dtype=np.float64)


def rule_columns(count: int = 1, **changes: object) -> dict[str, Array]:
    """Rules as the engine lays them out: parameter -> one number a stage or workload."""
    rules = Rules(**changes)  # type: ignore[arg-type]  # a test names what it changes
    values = {name: getattr(rules, name) for name in Rules.__dataclass_fields__}
    values |= {"policy": POLICIES.index(rules.policy), "quanta": QUANTA.index(rules.quanta)}
    return {name: np.full(count, np.nan if value is None else float(value)) for name, value in values.items()}


def evidence(
    workers: float | Sequence[float],
    throughput: float | Sequence[float],
    growth: float | Sequence[float] = 0,
    backlog: float | Sequence[float] = 0,
    **more: object,
) -> Evidence:
    """What a policy is asked. more: cpu (else unknown), most (else 100), and rules."""
    lines = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, float)) for v in (workers, throughput, growth, backlog)))
    at_work, passed, grown, waiting = (line.copy() for line in lines)
    most = more.pop("most", 100.0)
    return Evidence(
        workers=at_work,
        most_workers=np.full(len(at_work), most),
        partitions=np.full(len(at_work), more.pop("partitions", most)),
        throughput_records_per_s=passed,
        growth_records_per_s=grown,
        highest_backlog_records=waiting,
        rising=np.full(len(at_work), True),
        backlog_records=waiting,
        backlog_time_s=backlog_time(waiting, passed),
        lowest_backlog_time_s=backlog_time(waiting, passed),
        utilization_ratio=np.full(len(at_work), more.pop("cpu", np.nan)),
        rules=rule_columns(len(at_work), **more),
    )
