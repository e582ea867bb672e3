"""Units -> results, on Spark: a group of units is a job of one task, and its results are kept as soon as it ends."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import TypeAlias
from uuid import uuid4

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import SparkSession

from adapter.backtest import results
from adapter.backtest.release import release
from adapter.backtest.trace import Trace
from adapter.backtest.units import Unit, describe, groups
from adapter.core.samples import Array
from adapter.errors import AdapterError

FOLD = "adapter.backtest.unit_simulation:folded"
LOOK_EVERY_S = 0.5
FEWEST_AT_ONCE = 8
_MOST_TOLD = 5

Fold: TypeAlias = Callable[[Sequence[Unit], Mapping[str, Trace]], Mapping[str, Array]]
Opened: TypeAlias = Callable[[], AbstractContextManager[SparkSession]]


class BacktestError(AdapterError):
    """Some units have no result. The message names them, says why, and that the others are kept."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """units: what is wanted. traces: by name. fold: "module:function" that a worker imports; see Fold.

    A fold turns units of equal length and their traces into arrays with a row a unit. What it says of a unit must
    not depend on the units beside it.
    """

    units: tuple[Unit, ...]
    traces: Mapping[str, Trace]
    fold: str = FOLD


@dataclass(frozen=True, kw_only=True)
class Watch:
    """progress: told, again and again, how many units are done, of how many, and how many groups are left.

    stop: when it is set, the run ends early.
    """

    progress: Callable[[int, int, int], None]
    stop: Event


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a Spark worker does with one group: everything it needs travels with it, but for the traces."""

    units: tuple[Unit, ...]
    traces: Broadcast[Mapping[str, Trace]]
    fold: str
    release: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row, the group's results as a file. Raises BacktestError where the worker runs other code."""
        for _ in batches:
            pass
        if release() != self.release:
            raise BacktestError("the worker has another release of backlog-adapter or numpy: install the driver's")
        module, _, name = self.fold.partition(":")
        numbers = getattr(import_module(module), name)(self.units, self.traces.value)
        content = pa.array([results.encoded(self.units, numbers)], pa.binary())
        yield pa.RecordBatch.from_arrays([content], ["content"])


def run(spark: SparkSession, work: Work, out: Path, watch: Watch) -> None:
    """Run what has no result in the folder yet, and put every group's results there as it ends.

    Raises BacktestError when a group failed as often as Spark tries (the others are run), or when stopped; and
    ResultsError when there is no room.
    """
    wanted = groups(results.missing(out, work.units))
    at_once = max(FEWEST_AT_ONCE, 2 * spark.sparkContext.defaultParallelism)  # workers may join late; Spark queues
    runner = _Runner(spark, work)
    with ThreadPoolExecutor(min(len(wanted), at_once) or 1, "backtest") as pool:
        running = {pool.submit(runner.results_of, group): group for group in wanted}
        try:
            failures = _collected(running, len(work.units), out, watch)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            runner.cancel(running)
    if watch.stop.is_set() and (left := results.missing(out, work.units)):
        raise BacktestError(f"stopped: {len(left)} of {len(work.units)} units are left; the same command continues")
    if failures:
        told = failures[:_MOST_TOLD] + [f"and {len(failures) - _MOST_TOLD} more"] * (len(failures) > _MOST_TOLD)
        raise BacktestError("; ".join(told) + f"; all other results are kept in {out}")


class _Runner:
    """Submits groups from many threads, and ends what it submitted."""

    def __init__(self, spark: SparkSession, work: Work) -> None:
        self._spark = spark
        self._fold = work.fold
        self._traces = spark.sparkContext.broadcast(work.traces)
        self._tag = f"backtest-{uuid4()}"
        self._cancelled = Event()

    def results_of(self, group: tuple[Unit, ...]) -> bytes:
        """The encoded results of a group, from some worker. Raises what Spark raises when the task failed for good."""
        if self._cancelled.is_set():
            raise BacktestError("cancelled")
        self._spark.sparkContext.setJobGroup(self._tag, describe(group))
        task = Task(units=group, traces=self._traces, fold=self._fold, release=release())
        rows = self._spark.range(0, 1, 1, 1).mapInArrow(task, "content binary").collect()
        return bytes(rows[0]["content"])

    def cancel(self, running: Mapping["Future[bytes]", object]) -> None:
        """End what still runs; a job that was just being submitted is caught by the next look."""
        self._cancelled.set()
        while not all(future.done() for future in running):  # wait() never counts what was cancelled in the queue
            self._spark.sparkContext.cancelJobGroup(self._tag)
            time.sleep(LOOK_EVERY_S)


def _collected(running: Mapping["Future[bytes]", tuple[Unit, ...]], total: int, out: Path, watch: Watch) -> list[str]:
    """Save what comes in until all is in or the run is stopped; a sentence for each group that failed."""
    failures, pending = [], set(running)
    finished = total - sum(map(len, running.values()))
    watch.progress(finished, total, len(pending))
    while pending and not watch.stop.is_set():
        ended, pending = wait(pending, LOOK_EVERY_S, FIRST_COMPLETED)
        failed = {running[future]: error for future in ended if (error := future.exception()) is not None}
        failures += [f"{describe(group)}: {_cause(error)}" for group, error in failed.items()]
        arrived = {running[future]: future.result() for future in ended if running[future] not in failed}
        _saved(out, arrived)
        finished += sum(map(len, arrived))
        watch.progress(finished, total, len(pending))
    return failures


def _saved(out: Path, arrived: Mapping[tuple[Unit, ...], bytes]) -> None:
    """Raises ResultsError for all that found no room, after the others are saved."""
    faults = []
    for group, content in arrived.items():
        try:
            results.save(out, group, content)
        except results.ResultsError as error:
            faults.append(str(error))
    if faults:
        raise results.ResultsError("; ".join(faults))


def _cause(error: BaseException) -> str:
    """What happened, in one line: Spark's messages carry tracebacks, a plan and a Java stack around it."""
    told = str(error).rpartition("Traceback (most recent call last):")[2]
    lines = [line.strip() for line in told.splitlines() if line and not line[0].isspace()]
    return lines[0] if lines else type(error).__name__
