"""Small values for the tests of core, so that a test shows only the values that matter."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from adapter.core.capacity import SLOTS, Table
from adapter.core.decisions import Decision
from adapter.core.engine import advance, replay
from adapter.core.forecast import Fit
from adapter.core.parameters import columns
from adapter.core.policies.interface import PolicyInput
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rule_columns import RuleColumns
from adapter.core.rules import Rules
from adapter.core.samples import STAGE_SIGNALS, WHOLE, Array, Names, SampleColumns, Samples, assemble_columns
from adapter.core.signals import backlog_time
from adapter.core.state import EMPTY, State

JOB = "shop/orders"
TICK_S = 15
Row = tuple[str, str, str, float]
Case = TypeVar("Case", bound=Hashable)


def job(workload: str = JOB, stage: str = WHOLE, **signals: float | None) -> list[Row]:
    """The rows of one workload (or of one stage of it) at one tick; None leaves a signal out."""
    return [
        (workload, stage if signal in STAGE_SIGNALS else WHOLE, signal, value)
        for signal, value in signals.items()
        if value is not None
    ]


def counts(workers: float = 10, **changes: float | None) -> dict[str, float | None]:
    """The worker counts that Kubernetes reports for a workload at rest."""
    return {"spec_workers": workers, "workers": workers, "ready_workers": workers, **changes}


def flow(at_s: float, throughput: float = 1000, growth: float = 0, backlog: float = 0) -> dict[str, float | None]:
    """The counters of a steady stream. backlog: at time 0; it grows from there."""
    return {
        "processed_records": throughput * at_s,
        "appended_records": backlog + (throughput + growth) * at_s,
        "backlog_records": backlog + growth * at_s,
    }


def assemble(at_s: float, rows: Iterable[Row], faults: Iterable[tuple[str, str]] = ()) -> Samples:
    """assemble_columns for rows."""
    workload, stage, signal, value = zip(*rows, strict=True) if (rows := tuple(rows)) else ((), (), (), ())
    columns = SampleColumns(
        workload=_names(workload), stage=_names(stage), signal=_names(signal), value=np.array(value, dtype=np.float64)
    )
    return assemble_columns(at_s, columns, faults)


def _names(texts: Sequence[str]) -> Names:
    distinct = tuple(dict.fromkeys(texts))
    return Names(distinct, np.array([distinct.index(text) for text in texts], dtype=np.int64))


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
    """Rules of one configured workload, sized by `dataflow` by default."""
    return RuleBook(by_workload={workload: Rules(**{"policy": "dataflow"} | rules)})  # type: ignore[arg-type]  # names come from a test


def fold(ticks: Iterable[Samples], rules: RuleBook | None = None, state: State = EMPTY) -> list[list[Decision]]:
    """The decisions of every tick."""
    return [rows(decisions) for _, decisions in replay(ticks, rules or book(), state)]


def history(ticks: Iterable[Samples], rules: RuleBook | None = None, workload: str = JOB) -> list[Decision]:
    """The decisions of one workload, of the ticks that had one."""
    return [decision for decided in fold(ticks, rules) for decision in decided if decision.workload == workload]


def history_each(
    cases: Iterable[Case],
    seen: Callable[[Case, float], Mapping[str, float | None]],
    times_s: Iterable[float],
    rules: Callable[[Case], Mapping[str, object]],
) -> dict[Case, list[Decision]]:
    """The decisions of several jobs side by side. seen: the signals of a job at a time. rules: as of `book`."""
    names = {str(case): case for case in cases}
    named = {name: book(**rules(case)).by_workload[JOB] for name, case in names.items()}
    ticks = [tick(at_s, *(job(name, **seen(case, at_s)) for name, case in names.items())) for at_s in times_s]
    decided = {case: list[Decision]() for case in names.values()}
    for found in chain.from_iterable(fold(ticks, RuleBook(by_workload=named))):
        decided[names[found.workload]].append(found)
    return decided


def last(ticks: Iterable[Samples], rules: RuleBook | None = None, workload: str = JOB) -> Decision:
    """The last decision of one workload."""
    return history(ticks, rules, workload)[-1]


def column(*values: float) -> Array:
    """Numbers as an array."""
    return np.array(values, dtype=np.float64)


def rule_columns(count: int = 1, **changes: object) -> RuleColumns:
    """The parameters of a number of stages or workloads."""
    named = book(**changes)
    found, _ = columns((JOB,), np.array([np.nan]), named, 0.0, {})
    return found.at(np.zeros(count, dtype=np.int64))


def policy_input(
    workers: float | Sequence[float],
    throughput: float | Sequence[float],
    growth: float | Sequence[float] = 0,
    backlog: float | Sequence[float] = 0,
    **more: object,
) -> PolicyInput:
    """The input of a policy.

    more: cpu, relayed (load), fullest_ratio, partition_behind_s, latest (input rate), confirmed (the same), rise (of
    it), resumes, fit and table (default unknown), most (default 100), partitions (default most), saturated, level,
    bottleneck, held_back, and rules.
    """
    lines = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, float)) for v in (workers, throughput, growth, backlog)))
    present, passed, grown, waiting = (line.copy() for line in lines)
    most = more.pop("most", 100.0)
    return PolicyInput(
        workers=present,
        most_workers=np.full(len(present), most),
        partitions=np.full(len(present), more.pop("partitions", most)),
        throughput_records_per_s=passed,
        input_rate_records_per_s=np.maximum(passed + grown, 0.0),
        latest_input_rate_records_per_s=np.full(len(present), more.pop("latest", np.nan)),
        confirmed_input_rate_records_per_s=np.full(len(present), more.pop("confirmed", np.nan)),
        latest_throughput_records_per_s=np.full(len(present), np.nan),
        resumes=np.full(len(present), more.pop("resumes", False)),
        input_rise_records_per_s2=np.full(len(present), more.pop("rise", np.nan)),
        growth_records_per_s=grown,
        highest_backlog_records=waiting,
        rising=np.full(len(present), True),
        backlog_records=waiting,
        backlog_time_s=backlog_time(waiting, passed),
        lowest_backlog_time_s=backlog_time(waiting, passed),
        utilization_ratio=np.full(len(present), more.pop("cpu", np.nan)),
        relayed_load_ratio=np.full(len(present), more.pop("relayed", np.nan)),
        fullest_ratio=np.full(len(present), more.pop("fullest_ratio", np.nan)),
        partition_behind_s=np.full(len(present), more.pop("partition_behind_s", np.nan)),
        bottleneck=np.full(len(present), more.pop("bottleneck", True)),
        held_back=np.full(len(present), more.pop("held_back", False)),
        least_capacity_records_per_s=np.full(len(present), np.nan),
        saturated=np.full(len(present), more.pop("saturated", False)),
        level=np.full(len(present), more.pop("level", False)),
        fit=more.pop("fit", no_curve(len(present))),
        fit_age_s=np.zeros(len(present)),
        table=more.pop("table", empty_table(len(present))),
        rules=rule_columns(len(present), **more),
    )


def empty_table(stages: int) -> Table:
    """A capacity table without entries."""
    unknown = np.full((SLOTS, stages), np.nan)
    return Table(sizes=unknown, rates=unknown, confidence=unknown, seen_at_s=unknown)


def no_curve(count: int = 1) -> Fit:
    """An unpredictable input."""
    unknown = np.full(count, np.nan)
    return Fit(a=unknown, b=unknown, c=unknown, sigma=unknown)


@dataclass
class Fluid:
    """A simulated job, second by second."""

    load: Callable[[float], float]  # input of a second, records/s
    workers: int = 10
    each: float = 100.0  # capacity of one worker, records/s
    sink: Callable[[float], float] = lambda at_s: np.inf  # capacity of the sink, records/s
    pause_s: float = 0.0  # a rescale stops the job for this long
    warm_up_s: float = 0.0  # after a pause the speed rises from half within this time
    missing: Callable[[float], Iterable[str]] = lambda at_s: ()  # signals without a sample
    more: Callable[[float], dict[str, float]] = lambda at_s: {}  # additional signals
    at_s: float = 0.0
    appended: float = 0.0
    processed: float = 0.0
    busy: float = 0.0
    stopped_until_s: float = -1.0

    def rows(self, workload: str = JOB) -> list[Row]:
        """Its present samples."""
        signals = {
            "appended_records": self.appended,
            "processed_records": self.processed,
            "backlog_records": self.appended - self.processed,
            "utilization_ratio": self.busy,
        }
        known = counts(self.workers) | signals | self.more(self.at_s)
        return job(workload, **known | dict.fromkeys(self.missing(self.at_s)))

    def run(self, seconds: int = TICK_S) -> None:
        """Advance by some seconds."""
        for _ in range(seconds):
            self.appended += self.load(self.at_s)
            able = self._speed() * self.workers * self.each
            passed = min(able, self.sink(self.at_s), self.appended - self.processed)
            self.processed, self.busy = self.processed + passed, passed / (self.workers * self.each or 1.0)
            self.at_s += 1.0

    def _speed(self) -> float:
        since_s = self.at_s - self.stopped_until_s
        if self.stopped_until_s < 0 or since_s >= self.warm_up_s:
            return 1.0
        return 0.5 + since_s / self.warm_up_s / 2 if since_s >= 0 else 0.0

    def scale(self, workers: float | None) -> None:
        """Scale to a number of workers; None changes nothing."""
        if workers is not None and workers != self.workers:
            self.workers, self.stopped_until_s = int(workers), self.at_s + self.pause_s


def closed(
    running: Fluid, until_s: float, rules: RuleBook, follows: Callable[[float], bool] = lambda at_s: True
) -> list[Decision]:
    """The decisions of a job whose workers follow them at the times of `follows`; a tick is 30 s."""
    return closed_each({JOB: running}, until_s, rules, follows)[JOB]


def closed_each(
    jobs: Mapping[str, Fluid],
    until_s: float,
    rules: RuleBook,
    follows: Callable[[float], bool] = lambda at_s: True,
    tick_s: int = 2 * TICK_S,
) -> dict[str, list[Decision]]:
    """As `closed`, for several jobs side by side."""
    state, decided = EMPTY, {name: list[Decision]() for name in jobs}
    for at_s in np.arange(0.0, until_s + 1, tick_s).tolist():
        state, decisions = advance(state, tick(at_s, *(each.rows(name) for name, each in jobs.items())), rules)
        for found in rows(decisions):
            decided[found.workload].append(found)
            if follows(at_s):
                jobs[found.workload].scale(found.required_workers)
        for running in jobs.values():
            running.run(tick_s)
    return decided
