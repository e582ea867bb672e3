"""A backtest in its own process: `backtest_child.py MASTER OUT FUNCTION...`, one run and one line per function.

The other tests share one Spark session; these need different masters.
"""

import sys
from pathlib import Path
from threading import Event

from backtest_folds import CROWD, TRACES, units_of

from adapter.backtest import job, results
from adapter.errors import AdapterError
from adapter.pipeline.session import Session, settings

STOPPED = ("stopped", "crowd-stopped", "killed")


def main(master: str, folder: str, *folds: str) -> None:
    session = Session(settings("512m", master, 1), f"{folder}.log")
    try:
        for fold in folds:
            _say(_outcome(session, results.open_folder(Path(folder)), fold))
    finally:
        session.close()


def _outcome(session: Session, out: Path, fold: str) -> str:
    """The outcome of one run. Runs in STOPPED are stopped after the first group, the others at their end.

    killed: the JVM ends first, as with `timeout`, whose signal goes to the whole process group.
    """
    stop, reports = Event(), []

    def progress(finished: int, total: int) -> None:
        reports.append(f"{finished}/{total}")
        if finished and fold == "killed":
            session.kill()
        if finished and (fold in STOPPED or finished == total):
            stop.set()

    traces = CROWD if fold == "crowd-stopped" else TRACES
    name = "summed" if fold in STOPPED else fold
    work = job.Work(units=units_of(traces, name), traces=traces)
    try:
        job.run(session.spark, work, out, progress, stop)
    except AdapterError as error:
        return f"{type(error).__name__}: {error}"
    return " ".join(reports)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
