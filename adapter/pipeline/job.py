"""The live pipeline: one streaming query, restarted when it ends or hangs. If the JVM ends, the pipeline ends."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from adapter.config import Config
from adapter.core.rule_book import RuleBook
from adapter.errors import JvmError, SetupError, cause_of
from adapter.pipeline.checkpoint import Checkpoint, claim, log_of, needs_empty_stream
from adapter.pipeline.java import check_java
from adapter.pipeline.publish import Publish, Publisher
from adapter.pipeline.query import OPENER, QueryPlan, start_query
from adapter.pipeline.session import JVM_ERRORS, Session, run_within, settings, with_retries
from adapter.stop_signals import is_stopping

CHECK_EVERY_S = 0.5
QUERY_STOPS_WITHIN_S = 25.0  # longer than Spark's own stopTimeout: by then the JVM hangs
JVM_ANSWERS_WITHIN_S = 30.0  # a call takes milliseconds; on a machine without memory, much longer
JVM_GONE_WITHIN_S = 1.0  # after its connections are closed
QUERY_STARTS_WITHIN_S = 120.0  # on a loaded machine

_T = TypeVar("_T")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """When the query is restarted, and when restarts do not help."""

    first_backoff_s: float = 1.0
    most_backoff_s: float = 60.0
    # The query hangs after this time without a published tick, whichever is longer.
    stalled_ticks: int = 4  # fewer may be a slow batch
    stalled_after_s: float = 90.0  # measured on a loaded machine: a start of 20 s and a first tick of 31 s
    starts: int = 3  # then the process is dead: after 180 + 360 + 360 s without any tick, later 90 + 180 + 360 s
    # Until then, a clock may be corrected, or a machine may have memory again.
    stream_is_lost_after_s: float = 120.0

    def stall_limit_s(self, tick_s: float, slow_starts: int) -> float:
        """The limit for the next tick. It doubles with each slow start, because the machine may be slow."""
        return float(max(self.stalled_after_s, self.stalled_ticks * tick_s) * 2 ** min(slow_starts, self.starts - 1))

    def dead_after_s(self, tick_s: float, slow_starts: int) -> float:
        """The time without a published tick after which the process must be replaced."""
        return sum(self.stall_limit_s(tick_s, slow_starts + start) for start in range(self.starts))


POLICY = RestartPolicy()


class StreamingJob:
    """Runs the pipeline in this process until stop(), or until the JVM ends: a process cannot start a second one."""

    def __init__(
        self, config: Config, rules: RuleBook, publish: Publish, *, opener: str = OPENER, policy: RestartPolicy = POLICY
    ) -> None:
        self._config = config
        self._policy = policy
        self._failed_starts = 0  # since the last published tick
        self._permanent_failures = 0  # in a row, which only an empty stream ends
        self._permanent_since_s = 0.0  # when the present row of permanent failures began
        self._plan = QueryPlan(config=config, rules=rules, opener=opener)
        self.publisher = Publisher(config, rules, publish)
        self.failure: str | None = None  # why the query ended last; None while it publishes
        self.restarts = 0
        self.phases_s: dict[str, float] = {}  # duration of each phase of the last batch, by Spark's name
        self._created_s = time.monotonic()
        self._checkpoint: Checkpoint | None = None
        self._session: Session | None = None
        self._query: StreamingQuery | None = None
        self._stopping = threading.Event()
        self._calls = ThreadPoolExecutor(1, "jvm")  # into the JVM, which may hang
        self._end_of_process = threading.Event()
        self._kill_reason = ""  # why this object killed the JVM
        self._jvm_error: JvmError | None = None
        self._thread = threading.Thread(target=self._supervise, name="pipeline", daemon=True)

    def start(self, stop: threading.Event, master: str | None = None) -> bool:
        """Check Java, lock the checkpoint, start Spark and the query. Returns False if the start fails after a signal.

        stop: of the process; set if the JVM ends. master: Spark's master; None runs in this process on pipeline.cores.
        Raises SetupError or CheckpointError.
        """
        try:
            check_java()
            self._checkpoint = claim(self._config)
            # If a client library crashes its worker, Spark repeats the task and the query continues.
            master = with_retries(master or f"local[{self._config.pipeline.cores}]")
            chosen = settings(self._config.pipeline.memory, master, self._checkpoint.state_partitions)
            self._session = Session(chosen, log_of(self._config), [self._checkpoint.lock.fileno()])
            self._start_query(self._session)
        except BaseException as error:
            self._finish()
            # A signal to the process group, such as of `timeout`, also ends the JVM.
            if isinstance(error, (SetupError, *JVM_ERRORS)) and is_stopping(stop):
                return False
            if isinstance(error, JVM_ERRORS):
                text = f"the streaming query does not start: {cause_of(error)}; for details see {log_of(self._config)}"
                raise SetupError(text) from error
            raise
        self._end_of_process = stop
        self._thread.start()
        return True

    def stop(self) -> None:
        """Stop the query, Spark and its JVM, after a publication that is in progress.

        Raises JvmError if the pipeline ended before.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._jvm_error is not None:
            raise self._jvm_error

    def is_alive(self) -> bool:
        """Whether restarts of the query can still help: for a liveness probe."""
        is_first = self.publisher.published_s is None  # the first start of a process counts as slow
        return self._idle_s(self._created_s) <= self._policy.dead_after_s(self._config.timing.tick_s, is_first)

    def gauges(self) -> Iterator[Metric]:
        """For Telemetry.add."""
        yield CounterMetricFamily("backlog_adapter_query_restarts", "restarts of the streaming query", self.restarts)
        name, text = "backlog_adapter_failed_shards", "shards whose last tick raised an error"
        yield GaugeMetricFamily(name, text, self.publisher.failed_shards)
        if self.publisher.lateness_s is not None:
            name, text = "backlog_adapter_tick_lateness_seconds", "from the last tick to its publication"
            yield GaugeMetricFamily(name, text, self.publisher.lateness_s)
        phases = GaugeMetricFamily("backlog_adapter_phase_seconds", "phases of the last micro-batch", labels=["phase"])
        for phase, took_s in self.phases_s.items():
            phases.add_metric([phase], took_s)
        yield phases

    def _start_query(self, session: Session) -> None:
        assert self._checkpoint is not None  # noqa: S101 - start() claims it first
        stream = self._checkpoint.stream
        self.publisher.open()
        self._started_s = time.monotonic()
        try:
            self._query = self._answer(
                lambda: start_query(session.spark, self._plan, stream, self.publisher), QUERY_STARTS_WITHIN_S
            )
        except (Py4JJavaError, PySparkException) as error:  # as with a bad `metadata`; the supervisor tries again
            self.failure = cause_of(error)

    def _finish(self) -> None:
        """Stop the query and Spark, and release the checkpoint."""
        try:
            self._end_query()
            if self._session is not None:
                self._session.close()
            self._calls.shutdown(wait=False)
        finally:
            if self._checkpoint is not None:
                self._checkpoint.close()

    def _end_query(self) -> None:
        self.publisher.close()
        query, self._query = self._query, None
        if query is None or run_within(QUERY_STOPS_WITHIN_S, query.stop):
            return
        self._kill_jvm(f"the query did not stop within {QUERY_STOPS_WITHIN_S:g} s, so the JVM was killed")

    def _supervise(self) -> None:
        try:
            self._watch()
        except Exception as error:
            self._jvm_error = JvmError(f"the pipeline ends after an unexpected {type(error).__name__}: {error}")
            self._end_of_process.set()  # nothing would restart the query
            raise
        finally:  # otherwise stop() would leave the JVM, which holds the lock of the checkpoint
            self._finish()

    def _watch(self) -> None:
        """Restart the query whenever it fails, until stop() or the end of the JVM."""
        backoff_s = self._policy.first_backoff_s
        assert self._session is not None  # noqa: S101 - start() opens it first
        while not self._stopping.wait(CHECK_EVERY_S):
            error = self._query_error()
            failure = error or self._stalled()
            if self._session.exit_code() is not None:
                return self._report_end(self._session)
            if failure is None and self._has_published():
                self.failure, backoff_s = None, self._policy.first_backoff_s
                self._failed_starts = self._permanent_failures = 0
            if failure is not None:
                self.failure = failure
                log.error("the query ended and is restarted", cause=failure, in_s=backoff_s)
                self._failed_starts += 1
                is_permanent = error is not None and needs_empty_stream(error, self.publisher.has_batch)
                self._permanent_failures = self._permanent_failures + 1 if is_permanent else 0
                if self._permanent_failures <= 1:
                    self._permanent_since_s = time.monotonic()
                self._restart(self._session, backoff_s)
                backoff_s = min(2 * backoff_s, self._policy.most_backoff_s)

    def _report_end(self, session: Session) -> None:
        """Let the process end after its JVM, unless a signal to the process group ends both."""
        if not self._end_of_process.is_set():
            ended = f"the JVM has ended with exit code {session.exit_code()}; if it was killed, raise the memory limit"
            self._jvm_error = JvmError(f"{self._kill_reason or ended}; see {session.log}")
            self._end_of_process.set()

    def _restart(self, session: Session, backoff_s: float) -> None:
        """End the query, wait backoff_s (return if stop() is called), and start it again.

        A failed start is stored in `failure`.
        """
        self._end_query()
        if self._stopping.wait(backoff_s):
            return
        self.restarts += 1
        try:
            if self._permanent_failures >= self._policy.starts:
                if not self._runs_jobs(session):  # the cause is the JVM, not the stream
                    return self._kill_jvm(f"Spark runs no jobs ({self.failure}), so its JVM was killed")
                if time.monotonic() - self._permanent_since_s >= self._policy.stream_is_lost_after_s:
                    self._empty_stream()
            self._start_query(session)
        except TimeoutError:
            self._kill_jvm(f"the query did not start within {QUERY_STARTS_WITHIN_S:g} s, so the JVM was killed")
        except Exception as error:  # the next round tries again
            self.failure = cause_of(error)

    def _empty_stream(self) -> None:
        assert self._checkpoint is not None  # noqa: S101 - start() claims it first
        aside = self._checkpoint.move_stream_away()
        self._permanent_failures = 0
        self.publisher.forget_tick()
        log.error(
            "the stream of the checkpoint cannot be continued, so all workloads warm up and learn their capacity again",
            cause=self.failure,
            **({} if aside is None else {"moved_to": str(aside)}),
        )

    def _query_error(self) -> str | None:
        """The error that ended the query, None while it runs. A JVM that does not answer is killed."""
        query = self._query
        if query is None:
            return self.failure or "the query did not start"
        try:
            return self._answer(lambda: self._error_of(query))
        except (Py4JJavaError, PySparkException) as error:
            return cause_of(error)
        except JVM_ERRORS as error:
            self._kill_jvm(f"the JVM did not answer ({cause_of(error)}) and was killed")
            return "the JVM did not answer"

    def _answer(self, call: Callable[[], _T], within_s: float = JVM_ANSWERS_WITHIN_S) -> _T:
        """The result of a call into the JVM. Raises TimeoutError, which is an OSError."""
        return self._calls.submit(call).result(within_s)

    def _kill_jvm(self, reason: str) -> None:
        """Kill a JVM that is broken and has not ended by itself; the process ends with the reason."""
        if self._session is not None and self._session.exit_code(JVM_GONE_WITHIN_S) is None:
            log.error("the JVM is killed", cause=reason)
            self._kill_reason = reason
            self._session.kill()

    def _runs_jobs(self, session: Session) -> bool:
        """Whether Spark runs a trivial job."""
        try:
            return self._answer(lambda: session.spark.range(1).count()) == 1
        except JVM_ERRORS:
            return False

    def _error_of(self, query: StreamingQuery) -> str | None:
        if query.isActive:
            self._note_phases(query)
            return None
        cause = query.exception()
        return cause_of(cause) if cause else "the query ended by itself"

    def _stalled(self) -> str | None:
        idle_s = self._idle_s(self._started_s)
        slow_starts = self._failed_starts + (self.publisher.published_s is None)
        limit_s = self._policy.stall_limit_s(self._config.timing.tick_s, slow_starts)
        return f"no tick was published for {idle_s:.0f} s" if idle_s > limit_s else None

    def _idle_s(self, since_s: float) -> float:
        return time.monotonic() - max(since_s, self.publisher.published_s or 0.0)

    def _has_published(self) -> bool:
        return self.publisher.published_s is not None and self.publisher.published_s > self._started_s

    def _note_phases(self, query: StreamingQuery) -> None:
        progress = query.lastProgress
        if progress is not None and "triggerExecution" in progress["durationMs"]:
            self.phases_s = {phase: took_ms / 1000 for phase, took_ms in progress["durationMs"].items()}
