"""Run a pipeline to measure it, and print JSON objects for each tick. Argument: the configuration file."""

import json
import sys
import time
from math import isnan
from pathlib import Path

import typer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from adapter import config as configuration
from adapter.pipeline.job import StreamingJob
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.stop_signals import stop_event
from adapter.wiring import load


class Ticks(StreamingQueryListener):
    """Prints Spark's time for each batch. Spark defines the names."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to print."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Print the time of a batch."""
        _print(took_s=event.progress.durationMs["triggerExecution"] / 1000)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to print."""


def main(file: Path) -> None:
    """Run the job until a stop signal."""
    config = load(file)
    with stop_event() as stop:
        job = StreamingJob(config, configuration.rule_book(config), _publish)
        if not job.start(stop):
            return
        try:
            SparkSession.builder.getOrCreate().streams.addListener(Ticks())
            stop.wait()
        finally:
            job.stop()


def _publish(snapshot: Snapshot) -> None:
    required = snapshot.entries.number("required_workers")
    decided = sum(not isnan(workers) for workers in required)
    _print(late_s=time.time() - snapshot.at_s, workloads=decided)


def _print(**figures: float) -> None:
    typer.echo(json.dumps(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
