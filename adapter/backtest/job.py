"""Run units on Spark: each group is a job of one task, and its results are stored as soon as it ends."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from threading import Event
from typing import TypeAlias
from uuid import uuid4

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import Broadcast
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from adapter.backtest import results
from adapter.backtest.release import release
from adapter.backtest.table import ProgressReport
from adapter.backtest.trace import Trace
from adapter.backtest.units import Unit, describe, groups
from adapter.errors import AdapterError, cause_of

POLL_S = 0.5
MIN_CONCURRENT_GROUPS = 8
_MAX_LISTED = 5

SessionFactory: TypeAlias = Callable[[], AbstractContextManager[SparkSession]]


class BacktestError(AdapterError):
    """Some units failed. The message names them and the cause; the results of all others are stored."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Units to run, and their traces by name.

    The function of a unit turns units of equal length and their traces into arrays with a row per unit. A unit's row
    must not depend on the other units.
    """

    units: tuple[Unit, ...]
    traces: Mapping[str, Trace]


@dataclass(frozen=True, kw_only=True)
class GroupTask:
    """The work of a Spark worker on one group. Only the traces travel apart from it, as a broadcast."""

    units: tuple[Unit, ...]
    traces: Broadcast[Mapping[str, Trace]]
    release: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row, the group's results as a file. Raises BacktestError if the worker runs other code."""
        for _ in batches:
            pass
        unit = self.units[0]
        if release(unit.module) != self.release:
            raise BacktestError(
                "the worker runs another release of backlog-adapter or numpy than the driver; install the driver's"
            )
        numbers = resolve_name(unit.function)(self.units, self.traces.value)
        content = pa.array([results.encode(self.units, numbers)], pa.binary())
        yield pa.RecordBatch.from_arrays([content], ["content"])


def run(spark: SparkSession, work: Work, out: Path, progress: ProgressReport, stop: Event) -> None:
    """Run the units without a result in the folder, and store the results of each group as it ends.

    stop: ends the run early when it is set.
    Raises BacktestError if a group failed all of Spark's tries (the others are run) or the run was stopped, and
    ResultsError if results cannot be stored.
    """
    pending = groups(results.missing(out, work.units))
    concurrent = max(MIN_CONCURRENT_GROUPS, 2 * spark.sparkContext.defaultParallelism)  # Spark queues them
    runner = _Runner(spark, work)
    with ThreadPoolExecutor(min(len(pending), concurrent) or 1, "backtest") as pool:
        running = {pool.submit(runner.results_of, group): group for group in pending}
        try:
            failures = collect(running, len(work.units), out, progress, stop)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            runner.cancel(running)
    if stop.is_set() and results.missing(out, work.units):
        raise stop_error(out, work.units)
    if failures:
        listed = failures[:_MAX_LISTED] + [f"and {len(failures) - _MAX_LISTED} more"] * (len(failures) > _MAX_LISTED)
        raise BacktestError("; ".join(listed) + f"; all other results are stored in {out}")


def stop_error(out: Path, units: tuple[Unit, ...]) -> BacktestError:
    """The error of a run that was stopped before its end."""
    left = len(results.missing(out, units))
    return BacktestError(f"stopped: {left} of {len(units)} runs are left; repeat the command to continue")


class _Runner:
    """Submits groups from many threads, and cancels them."""

    def __init__(self, spark: SparkSession, work: Work) -> None:
        self._spark = spark
        self._traces = spark.sparkContext.broadcast(work.traces)
        self._tag = f"backtest-{uuid4()}"
        self._cancelled = Event()

    def results_of(self, group: tuple[Unit, ...]) -> bytes:
        """The encoded results of a group. Raises Spark's error if the task failed all tries."""
        if self._cancelled.is_set():
            raise BacktestError("cancelled")
        self._spark.sparkContext.setJobGroup(self._tag, describe(group))
        task = GroupTask(units=group, traces=self._traces, release=release(group[0].module))
        rows = self._spark.range(0, 1, 1, 1).mapInArrow(task, "content binary").collect()
        return bytes(rows[0]["content"])

    def cancel(self, running: Mapping["Future[bytes]", object]) -> None:
        """Cancel the running jobs. A job that is being submitted meanwhile is cancelled by the next iteration."""
        self._cancelled.set()
        # wait() does not return futures that were cancelled in the queue.
        while not all(future.done() for future in running):
            # A signal to the process group has also ended the JVM, and so the jobs.
            with suppress(Py4JError, PySparkException, OSError):
                self._spark.sparkContext.cancelJobGroup(self._tag)
            time.sleep(POLL_S)


def collect(
    running: Mapping["Future[bytes]", tuple[Unit, ...]], total: int, out: Path, progress: ProgressReport, stop: Event
) -> list[str]:
    """Store results until all are in or the run is stopped; returns a sentence for each failed group."""
    failures, pending = [], set(running)
    finished = total - sum(map(len, running.values()))
    progress(finished, total)
    while pending and not stop.is_set():
        ended, pending = wait(pending, POLL_S, FIRST_COMPLETED)
        failed = {running[future]: error for future in ended if (error := future.exception()) is not None}
        failures += [f"{describe(group)}: {cause_of(error)}" for group, error in failed.items()]
        arrived = {running[future]: future.result() for future in ended if running[future] not in failed}
        _save(out, arrived)
        finished += sum(map(len, arrived))
        progress(finished, total)
    return failures


def _save(out: Path, arrived: Mapping[tuple[Unit, ...], bytes]) -> None:
    """Store every group that can be stored, then raise ResultsError for the others."""
    faults = []
    for group, content in arrived.items():
        try:
            results.save(out, group, content)
        except results.ResultsError as error:
            faults.append(str(error))
    if faults:
        raise results.ResultsError("; ".join(faults))
