"""Readers of transactions work in bursts: all records of a transaction become backlog when it is committed."""

from dataclasses import dataclass, field
from itertools import product
from math import inf

import pytest
from builders import counts, job, tick

from adapter.core.engine import advance
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.state import EMPTY

INPUT, EACH = 700.0, 100.0  # records/s; of ten workers, each carries 100
BUSY_S, TICK_S, PAUSE_S = 15, 15, 20.0  # a source reports the mean utilization of BUSY_S


@dataclass(slots=True, kw_only=True)
class Reader:
    """A job that reads only committed records, second by second."""

    transaction_s: int
    commit_s: int  # between its own commits
    phase_s: int  # of the transactions
    workers: int = 10
    stopped_until_s: float = -inf
    appended: float = 0.0
    stable: float = 0.0  # the last stable offset
    processed: float = 0.0
    committed: float = 0.0
    busy: list[float] = field(default_factory=list)
    sizes: set[int] = field(default_factory=set)

    def step(self, at_s: int) -> None:
        self.appended += INPUT
        if at_s % self.transaction_s == self.phase_s:
            self.stable = self.appended
        able = EACH * self.workers if at_s >= self.stopped_until_s else 0.0
        done = min(able, self.stable - self.processed)
        self.processed += done
        self.busy.append(done / (EACH * self.workers))
        if at_s % self.commit_s == 3 % self.commit_s:
            self.committed = self.processed

    def row(self, name: str):
        return job(
            name,
            **counts(self.workers, partitions=48.0),
            appended_records=self.appended,
            processed_records=self.committed,
            backlog_records=self.stable - self.committed,
            utilization_ratio=sum(self.busy[-BUSY_S:]) / BUSY_S,
        )

    def scale(self, at_s: int, workers: float | None) -> None:
        if workers is not None and workers != self.workers:
            self.workers, self.stopped_until_s = int(workers), at_s + PAUSE_S
        self.sizes.add(self.workers)


def rules(reader: Reader) -> Rules:
    """`drain` with a target that leaves time for a transaction and for a commit."""
    target_s, window_s = 2.0 * reader.transaction_s, max(60.0, reader.transaction_s)
    return Rules(policy="drain", rescale_pause_s=10.0, backlog_time_target_s=target_s, rate_window_s=window_s)


@pytest.mark.simulation
def test_a_steady_reader_of_transactions_does_not_scale_up():
    """It is full while it reads a transaction and idle until the next one: 70 % busy in the mean."""
    readers = {
        f"shop/{transaction_s}-{commit_s}-{phase_s}": Reader(
            transaction_s=transaction_s, commit_s=commit_s, phase_s=phase_s
        )
        for transaction_s, phase_s in product((30, 60, 90), (0, 7, 11))
        for commit_s in (5, transaction_s)
    }
    state, known = EMPTY, RuleBook(by_workload={name: rules(each) for name, each in readers.items()})
    for at_s in range(-600, 3600):  # it has run for ten minutes before the first tick
        if at_s >= 0 and at_s % TICK_S == 0:
            reported = tick(float(at_s), *(each.row(name) for name, each in readers.items()))
            state, decided = advance(state, reported, known)
            for found in rows(decided):
                readers[found.workload].scale(at_s, found.required_workers)
        for each in readers.values():
            each.step(at_s)
    assert {name: max(each.sizes) for name, each in readers.items()} == dict.fromkeys(readers, 10)
