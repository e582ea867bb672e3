"""A pipeline in a process of its own, to be killed: writes what it publishes to a file, a snapshot a line in base64.

Arguments: the folder, the number of the snapshot at which it kills itself before that one is written, or 0, and Spark's
master, if that is another process. SIGUSR1 stops the SparkContext, as Spark does after an error in its scheduler.
"""

import os
import signal
import sys
from base64 import b64encode
from pathlib import Path

from pipeline_stream import OPENER, RULES, config_of
from pyspark.sql import SparkSession

from adapter.pipeline.job import StreamingJob
from adapter.serving.snapshots.snapshot import Snapshot, encode
from adapter.stop_signals import stop_event


def main(folder: Path, dies_at: int, master: str | None = None) -> None:
    published = 0

    def publish(snapshot: Snapshot) -> None:
        nonlocal published
        published += 1
        if published == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        with (folder / "published").open("ab") as file:
            file.write(b64encode(encode(snapshot)) + b"\n")

    job = StreamingJob(config_of(folder), RULES, publish, opener=OPENER)
    with stop_event() as stop:
        assert job.start(stop, master)
        context = SparkSession.builder.getOrCreate().sparkContext
        signal.signal(signal.SIGUSR1, lambda *_: context._jsc.sc().stop())
        stop.wait()
        job.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
