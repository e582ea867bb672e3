"""Start and stop a Spark session and its JVM."""

import logging
import os
import pwd
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from adapter.errors import SetupError

LOOPBACK = "127.0.0.1"
STREAMING = "spark.sql.streaming."
JVM_ENDS_WITHIN_S = 15.0
SPARK_STOPS_WITHIN_S = 15.0
TASK_TRIES = 4
USER_NAME = "backlog-adapter"
MOST_LOG_BYTES = 4_000_000
JVM_ERRORS = (Py4JError, PySparkException, OSError)  # PySpark converts many exceptions of Java to its own
_CAUSES = ('Exception in thread "main" ', "Caused by: ")  # in a Java stack trace; the last one is the root cause
# The heap is small (the state is in RocksDB), so the serial collector and the first compiler tier take no more time and
# save about 150 MB. The heap returns what a large batch needed: about 200 MB at 40 000 workloads.
# The stack: Spark's regular expressions overflow 1 MB when a batch is interrupted.
JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=30 -Xss8m"


def settings(memory: str, master: str, state_partitions: int) -> dict[str, str]:
    """Spark's settings for micro-batches of a few seconds."""
    log = Path(str(files("adapter.pipeline"))) / "log4j2.properties"
    chosen = {
        "spark.app.name": "backlog-adapter",
        "spark.master": master,
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"{JVM_FLAGS} -Dlog4j2.configurationFile={log.as_uri()}",
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
        f"{STREAMING}minBatchesToRetain": "10",  # each batch writes the fast state of every shard
        f"{STREAMING}pollingDelay": "10ms",
        f"{STREAMING}numRecentProgressUpdates": "10",
        f"{STREAMING}stopTimeout": "20s",
    }
    if master.startswith("local"):
        chosen |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return chosen


def with_retries(master: str) -> str:
    """The master with retries of a failed task: Spark in this process tries a task once unless its master sets more."""
    found = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master)
    return f"local[{found[1] or 1},{TASK_TRIES}]" if found else master


_launch: Any = launch_gateway  # untyped in PySpark
_accumulators: Any = AccumulatorTCPServer  # Any, because a method is replaced


class Session:
    """A Spark session, and its JVM if this object started it.

    log: the file for the output of the JVM. locked_files: open files that the JVM inherits, so that their locks last as
    long as the JVM. Raises SetupError if Spark does not start, after its JVM has ended.
    """

    def __init__(self, chosen: Mapping[str, str], log: str, locked_files: Sequence[int] = ()) -> None:
        # Spark's workers must not run another python3 from PATH.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        # Threads with a heap each keep 300 MB more of what RocksDB and Arrow have freed.
        os.environ.setdefault("MALLOC_ARENA_MAX", "2")
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # Arrow's own pool keeps what it has freed
        pa.set_memory_pool(pa.system_memory_pool())  # in this process, which has read the variable already
        if chosen["spark.master"].startswith("local"):
            # Otherwise Spark resolves the host name, and ends if that fails.
            os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        logging.root.addFilter(_is_not_from_py4j)
        logging.getLogger("py4j").propagate = False  # it logs errors that it also raises
        _accumulators.handle_error = lambda *_: None  # otherwise it prints a traceback when the JVM ends
        conf = SparkConf().setAll(list(chosen.items()))
        self.log = log
        self._gateway: Any = None
        if SparkSession.getActiveSession() is None:
            with open_log(log) as file, _as_setup_error(conf, log):
                _use_temporary_folder(conf)
                self._gateway = _launch(conf, {"stdout": file, "stderr": file, "pass_fds": tuple(locked_files)})
        try:
            with _as_setup_error(conf, log):
                if self._gateway is not None:
                    _start(conf, self._gateway)
                self.spark = SparkSession.builder.getOrCreate()
        except BaseException:
            self._end_jvm(0.0)
            raise

    def exit_code(self, within_s: float = 0.0) -> int | None:
        """The exit code of the JVM that this object started; None if it runs for longer than within_s."""
        if self._gateway is not None:
            with suppress(subprocess.TimeoutExpired):
                return int(self._gateway.proc.wait(within_s))
        return None

    def close(self) -> None:
        """Stop the session and its JVM, even if the JVM has ended. A JVM that was already running stays."""
        if self._gateway is None:
            return
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
        stopped = run_within(SPARK_STOPS_WITHIN_S, self.spark.stop, self.kill)
        self._end_jvm(JVM_ENDS_WITHIN_S if stopped else 0.0)

    def kill(self) -> None:
        """Kill the JVM, which ends every call that hangs in it. A JVM that was already running stays."""
        if self._gateway is not None:
            self._gateway.proc.kill()
            with suppress(subprocess.TimeoutExpired):
                self._gateway.proc.wait(JVM_ENDS_WITHIN_S)

    def _end_jvm(self, within_s: float) -> None:
        """Stop the JVM that this object started; kill it after within_s."""
        if self._gateway is None:
            return
        run_within(within_s, self._gateway.shutdown, self.kill)
        process = self._gateway.proc
        process.stdin.close()  # the JVM ends when this pipe closes
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._gateway = None


def open_log(path: str) -> IO[str]:
    """Open the log to append to it, because it may have the cause of the last crash.

    A large log moves to `path`.1, of which the newest MOST_LOG_BYTES stay.
    """
    older = f"{path}.1"
    with suppress(FileNotFoundError):
        if Path(path).stat().st_size > MOST_LOG_BYTES:
            os.replace(path, older)
        if Path(older).stat().st_size > MOST_LOG_BYTES:
            _shorten(older)
    return open(path, "a")


def _shorten(path: str) -> None:
    """Keep the end of a large file. In place, because a copy does not fit on a volume that the log has filled."""
    with open(path, "r+b") as file:
        file.seek(-MOST_LOG_BYTES, os.SEEK_END)
        end = file.read()
        file.truncate(0)
        file.seek(0)
        file.write(end)


def run_within(limit_s: float, call: Callable[[], object], unblock: Callable[[], None] = lambda: None) -> bool:
    """Run a call that ends a JVM, and return whether it finished in time. Its errors mean that the JVM has ended.

    unblock: called after limit_s so that the call returns; it then has limit_s again.
    """

    def run() -> None:
        with suppress(*JVM_ERRORS):
            call()

    thread = threading.Thread(target=run, name="bounded", daemon=True)
    thread.start()
    thread.join(limit_s)
    if not thread.is_alive():
        return True
    unblock()
    thread.join(limit_s)
    return False


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    """Filter out the traceback that py4j logs on the root logger for an error that it also raises."""
    return record.module != "java_gateway"


def _use_temporary_folder(conf: SparkConf) -> None:
    """Let the JVM use the temporary folder of this process: it ignores TMPDIR."""
    flag, options = f"-Djava.io.tmpdir={tempfile.gettempdir()}", conf.get("spark.driver.extraJavaOptions", "")
    conf.set("spark.driver.extraJavaOptions", f"{options} {shlex.quote(flag)}")


def _start(conf: SparkConf, gateway: Any) -> None:
    _set_hadoop_user(gateway)
    with _keep_interrupt_handler():
        SparkContext(conf=conf, gateway=gateway)


def _set_hadoop_user(gateway: Any) -> None:
    """Give Hadoop a user name if /etc/passwd has none for this UID, as on OpenShift: its login would fail."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        login = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
        login.setLoginUser(login.createRemoteUser(USER_NAME))


@contextmanager
def _as_setup_error(conf: SparkConf, log: str) -> Iterator[None]:
    """Raise a SetupError with the cause if Spark does not start."""
    length = len(_content(log))
    try:
        yield
    except JVM_ERRORS as error:
        first = _text_of(error).partition("\n")[0].rstrip(".") + _last_cause(log, length)
        master = conf.get("spark.master")
        raise SetupError(f"Spark does not start with --master {master}: {first}; for details see {log}") from None


def _text_of(error: Exception) -> str:
    """The message of an error. That of an error in the JVM must be read before the JVM ends; else it is in the log."""
    try:
        return str(error.java_exception.toString() if isinstance(error, Py4JJavaError) else error)
    except (Py4JError, OSError):
        return "the JVM has ended"


def _last_cause(log: str, since: int) -> str:
    lines = _content(log)[since:].decode(errors="replace").splitlines()
    causes = [line.removeprefix(start) for line in lines for start in _CAUSES if line.startswith(start)]
    return f": {causes[-1]}" if causes else ""


def _content(log: str) -> bytes:
    with suppress(FileNotFoundError):
        return Path(log).read_bytes()
    return b""


@contextmanager
def _keep_interrupt_handler() -> Iterator[None]:
    """Restore the SIGINT handler: PySpark replaces it if a context starts on the main thread."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
