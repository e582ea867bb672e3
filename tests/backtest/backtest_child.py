"""A backtest in a process of its own: `backtest_child.py MASTER OUT FOLD...`, one run for each fold, one line each.

The tests of a run share one Spark session, and this one needs its own master.
"""

import sys
from pathlib import Path
from threading import Event

from backtest_folds import CROWD, GRID, TRACES, UNITS

from adapter.backtest import job, results
from adapter.backtest.units import units
from adapter.errors import AdapterError
from adapter.pipeline.session import Session, settings

STOPPED = ("stopped", "crowd-stopped")


def main(master: str, folder: str, *folds: str) -> None:
    session = Session(settings("512m", master, 1), f"{folder}.log")
    try:
        for fold in folds:
            _say(_outcome(session, results.opened(Path(folder)), fold))
    finally:
        session.close()


def _outcome(session: Session, out: Path, fold: str) -> str:
    """What came of one run. One of STOPPED is stopped as soon as the first group is in, any other at its very end."""
    stop, told = Event(), []

    def progress(finished: int, total: int, _: int) -> None:
        told.append(f"{finished}/{total}")
        if finished and (fold in STOPPED or finished == total):
            stop.set()

    traces = CROWD if fold == "crowd-stopped" else TRACES
    wanted = UNITS if traces is TRACES else tuple(unit for trace in traces.values() for unit in units(trace, GRID))
    name = "summed" if fold in STOPPED else fold
    work = job.Work(units=wanted, traces=traces, fold=f"backtest_folds:{name}")
    try:
        job.run(session.spark, work, out, job.Watch(progress=progress, stop=stop))
    except AdapterError as error:
        return f"{type(error).__name__}: {error}"
    return " ".join(told)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
