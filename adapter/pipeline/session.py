"""A Spark session with the settings that were measured, and its clean end."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

STREAMING = "spark.sql.streaming."
# The heap holds little (state is in RocksDB, samples pass through): the serial collector and the first compiler
# tier cost no time here and save about 150 MB. The stack: Spark's regular expressions overflow 1 MB when a
# batch is interrupted.
JVM_ENDS_WITHIN_S = 15.0
JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss8m"


def settings(memory: str, master: str, state_partitions: int) -> dict[str, str]:
    """Spark's settings: a tick in seconds, not a batch job; the reasons are in DESIGN.md."""
    log = files("adapter.pipeline") / "log4j2.properties"
    chosen = {
        "spark.app.name": "backlog-adapter",
        "spark.master": master,
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"{JVM_FLAGS} -Dlog4j2.configurationFile=file:{log}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # Each state partition costs 0.13 CPU-s a tick.
        "spark.sql.shuffle.partitions": str(state_partitions),
        f"{STREAMING}stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{STREAMING}stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        f"{STREAMING}minBatchesToRetain": "10",  # each batch rewrites the fast state of every shard
        f"{STREAMING}pollingDelay": "10ms",
        f"{STREAMING}numRecentProgressUpdates": "10",
        f"{STREAMING}stopTimeout": "20s",
    }
    if master.startswith("local"):
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return chosen


_launch: Any = launch_gateway  # untyped in PySpark


class Session:
    """A Spark session, and the JVM under it when this object started it.

    The JVM prints into `log`, so that it does not tear a table on the terminal, and inherits `keep`, open files
    whose locks must last as long as the JVM.
    """

    def __init__(self, chosen: Mapping[str, str], log: str, keep: Sequence[int] = ()) -> None:
        # Workers run this very Python, else they would take python3 from the path.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        conf = SparkConf().setAll(list(chosen.items()))
        self._gateway: Any = None
        if SparkContext._active_spark_context is None:
            with open(log, "w") as file:
                self._gateway = _launch(conf, {"stdout": file, "stderr": file, "pass_fds": tuple(keep)})
            with _own_interrupt():
                SparkContext(conf=conf, gateway=self._gateway)
        self.spark = SparkSession.builder.getOrCreate()

    def close(self) -> None:
        """End the session and its JVM, also when the JVM is gone already; a borrowed session is left alone."""
        if self._gateway is None:
            return
        server: Any = self.spark.sparkContext._accumulatorServer
        server.handle_error = lambda *_: None  # its peer is the JVM that ends here; the end is no news
        with suppress(Py4JError, OSError):
            self.spark.stop()
        with suppress(Py4JError, OSError):
            self._gateway.shutdown()
        process = self._gateway.proc
        process.stdin.close()  # the JVM ends when this pipe does
        try:
            process.wait(JVM_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._gateway = None
        _forget()


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """PySpark takes SIGINT over when a context starts on the main thread; what was there before comes back."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _forget() -> None:
    """PySpark keeps its gateway for the life of the process; the next session of this process needs a new JVM."""
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
