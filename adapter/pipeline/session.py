"""A Spark session with the settings that were measured, and its clean end."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from adapter.errors import SetupError

LOOPBACK = "127.0.0.1"
STREAMING = "spark.sql.streaming."
# The heap holds little (state is in RocksDB, samples pass through): the serial collector and the first compiler
# tier cost no time here and save about 150 MB. The stack: Spark's regular expressions overflow 1 MB when a
# batch is interrupted.
JVM_ENDS_WITHIN_S = 15.0
SPARK_STOPS_WITHIN_S = 15.0
MOST_LOG_BYTES = 4_000_000
_CAUSE = "Caused by: "  # of a line in the trace of an error in Java; the last one tells the most
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
        chosen |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return chosen


_launch: Any = launch_gateway  # untyped in PySpark


class Session:
    """A Spark session, and the JVM under it when this object started it.

    The JVM prints into `log`, so that it does not tear a table on the terminal, and inherits `keep`, open files
    whose locks must last as long as the JVM. Raises SetupError when Spark does not start; its JVM is gone then.
    """

    def __init__(self, chosen: Mapping[str, str], log: str, keep: Sequence[int] = ()) -> None:
        # Workers run this very Python, else they would take python3 from the path.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if chosen["spark.master"].startswith("local"):
            # Else Spark looks for this machine by its name, which nobody has to know, and ends where nobody does.
            os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        conf = SparkConf().setAll(list(chosen.items()))
        self._gateway: Any = None
        if SparkContext._active_spark_context is None:
            with opened_log(log) as file, _explained(conf, log):
                self._gateway = _launch(conf, {"stdout": file, "stderr": file, "pass_fds": tuple(keep)})
        try:
            with _explained(conf, log):
                if self._gateway is not None:
                    _start(conf, self._gateway)
                self.spark = SparkSession.builder.getOrCreate()
        except BaseException:
            self._end_jvm(0.0)
            raise

    def close(self) -> None:
        """End the session and its JVM, also when the JVM is gone already; a borrowed session is left alone."""
        if self._gateway is None:
            return
        server: Any = self.spark.sparkContext._accumulatorServer
        server.handle_error = lambda *_: None  # its peer is the JVM that ends here; the end is no news
        stopped = done_within(SPARK_STOPS_WITHIN_S, self.spark.stop, self.kill)
        self._end_jvm(JVM_ENDS_WITHIN_S if stopped else 0.0)

    def kill(self) -> None:
        """Kill the JVM, which ends every call that hangs in it; a borrowed session is left alone."""
        if self._gateway is not None:
            self._gateway.proc.kill()

    def _end_jvm(self, within_s: float) -> None:
        """End the JVM that was started here, killed after within_s."""
        if self._gateway is None:
            return
        done_within(within_s, self._gateway.shutdown, self.kill)
        process = self._gateway.proc
        process.stdin.close()  # the JVM ends when this pipe does
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._gateway = None
        _forget()


def opened_log(path: str) -> IO[str]:
    """The log, to be appended to: it may tell of the crash that is recovered from. A large one goes to `path`.1."""
    with suppress(FileNotFoundError):
        if Path(path).stat().st_size > MOST_LOG_BYTES:
            os.replace(path, f"{path}.1")
    return open(path, "a")


def done_within(limit_s: float, step: Callable[[], object], otherwise: Callable[[], None] = lambda: None) -> bool:
    """Whether a call into a JVM returned in time; its errors say that the JVM is gone, which is fine where it ends.

    otherwise: called when it did not return, to make it return; it then has as long again.
    """

    def run() -> None:
        with suppress(Py4JError, PySparkException, OSError):
            step()

    thread = threading.Thread(target=run, name="bounded", daemon=True)
    thread.start()
    thread.join(limit_s)
    if not thread.is_alive():
        return True
    otherwise()
    thread.join(limit_s)
    return False


def _start(conf: SparkConf, gateway: Any) -> None:
    with _own_interrupt():
        SparkContext(conf=conf, gateway=gateway)


@contextmanager
def _explained(conf: SparkConf, log: str) -> Iterator[None]:
    """Whatever Spark says when it does not start, as a SetupError."""
    before = len(_written(log))
    try:
        yield
    except (Py4JError, PySparkException) as error:
        # The text of an error in the JVM is there, and the JVM ends now. One that never was leaves it in the log.
        told = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        first = told.partition("\n")[0].rstrip(".") + _last_cause(log, before)
        master = conf.get("spark.master")
        raise SetupError(f"Spark does not start with --master {master}: {first}; more is in {log}") from None


def _last_cause(log: str, since: int) -> str:
    lines = _written(log)[since:].decode(errors="replace").splitlines()
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    return f": {causes[-1]}" if causes else ""


def _written(log: str) -> bytes:
    with suppress(FileNotFoundError):
        return Path(log).read_bytes()
    return b""


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
