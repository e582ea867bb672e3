"""The live pipeline: one streaming query, watched, and started again when it ends or hangs."""

import threading
import time
from dataclasses import dataclass

import structlog
from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from adapter.config import Config
from adapter.core import engine, state
from adapter.core.rules import RuleBook
from adapter.pipeline.checkpoint import Checkpoint, claim
from adapter.pipeline.fold import Core
from adapter.pipeline.java import check_java
from adapter.pipeline.publish import Publish, Publisher
from adapter.pipeline.query import OPENER, Plan, start_query
from adapter.pipeline.session import Session, done_within, settings

CORE = Core(
    advance=engine.advance,
    empty=state.EMPTY,
    version=state.VERSION,
    encode_fast=state.encode_fast,
    encode_slow=state.encode_slow,
    decode=state.decode,
)
LOOK_EVERY_S = 0.5
TASK_TRIES = 4
QUERY_STOPS_WITHIN_S = 25.0  # Spark itself gives up after its stopTimeout; longer, the JVM does not answer

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Watch:
    """When the query is started again. stalled_*: without a publication for so long, whichever is longer, it hangs.

    dead_after_stalls: after so many times that, starting it again does not help: the process has to go.
    """

    first_backoff_s: float = 1.0
    most_backoff_s: float = 60.0
    stalled_ticks: int = 4  # fewer may be a slow batch
    stalled_after_s: float = 90.0  # a first tick was seen to take 31 s on a loaded machine, after a start of 20 s
    dead_after_stalls: int = 5


WATCH = Watch()


class StreamingJob:
    """Runs the pipeline in this process until it is stopped.

    failure: why the query ended last, None while it runs well. restarts: how often it was started again.
    publisher: the last tick's time, lateness and faults.
    last_tick_duration_s: what Spark took for the last batch; None before the first.
    """

    def __init__(
        self, config: Config, rules: RuleBook, publish: Publish, *, opener: str = OPENER, watch: Watch = WATCH
    ) -> None:
        self._config = config
        self._watch = watch
        self._ended_by_itself = False
        self._plan = Plan(config=config, rules=rules, core=CORE, opener=opener)
        self.publisher = Publisher(config, rules, publish)
        self.failure: str | None = None
        self.restarts = 0
        self.last_tick_duration_s: float | None = None
        self._created_s = time.monotonic()
        self._checkpoint: Checkpoint | None = None
        self._session: Session | None = None
        self._query: StreamingQuery | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="pipeline", daemon=True)

    def start(self, master: str | None = None) -> None:
        """Check the machine, take the checkpoint, start Spark and the query.

        master: Spark's master; None runs in this process on pipeline.cores.
        Raises SetupError or CheckpointError, and Spark's own errors when it does not start.
        """
        check_java()
        self._checkpoint = claim(self._config)
        # A client library that crashes its worker costs one more try of a task, not the query.
        self._master = master or f"local[{self._config.pipeline.cores},{TASK_TRIES}]"
        try:
            self._begin()
        except BaseException:
            self._end()
            self._checkpoint.close()
            raise
        self._thread.start()

    def stop(self) -> None:
        """End the query, Spark and its JVM. Waits for a publication that is under way, and starts no new one."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the job was stopped. False when it still runs after timeout_s."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def alive(self) -> bool:
        """Whether a tick was published lately, however often the query was started again: for a liveness probe."""
        return self._still_s(self._created_s) <= self._watch.dead_after_stalls * self._allowed_s()

    def _begin(self) -> None:
        assert self._checkpoint is not None  # noqa: S101 - start() claims it first
        if self._session is None:
            chosen = settings(self._config.pipeline.memory, self._master, self._checkpoint.state_partitions)
            self._session = Session(chosen, self._checkpoint.log, [self._checkpoint.lock.fileno()])
        self.publisher.open()
        self._begun_s = time.monotonic()
        self._query = start_query(self._session.spark, self._plan, self._checkpoint.stream, self.publisher)

    def _end(self) -> None:
        """Stop the query and Spark, whatever state they are in."""
        self._end_query()
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _end_query(self) -> None:
        self.publisher.close()
        query, self._query = self._query, None
        if query is None or done_within(QUERY_STOPS_WITHIN_S, query.stop):
            return
        log.error("the query does not stop: its JVM is killed")
        if self._session is not None:
            self._session.kill()

    def _supervise(self) -> None:
        backoff_s = self._watch.first_backoff_s
        while not self._stopping.wait(LOOK_EVERY_S):
            failure = self._failed()
            if failure is None and self._publishing():
                self.failure, backoff_s = None, self._watch.first_backoff_s
            if failure is not None:
                self.failure = failure
                log.error("the pipeline ended and is started again", cause=failure, in_s=backoff_s)
                self._again(backoff_s)
                backoff_s = min(2 * backoff_s, self._watch.most_backoff_s)
        self._end()
        if self._checkpoint is not None:
            self._checkpoint.close()

    def _again(self, backoff_s: float) -> None:
        """Start the query again. Only a query that ended by itself leaves a JVM that can be trusted."""
        if self._ended_by_itself:
            self._end_query()
        else:
            self._end()
        if self._stopping.wait(backoff_s):
            return
        self.restarts += 1
        try:
            self._begin()
        except Exception as error:  # the loop that keeps the pipeline alive: the next round tries again, later
            self.failure = _cause(error)

    def _failed(self) -> str | None:
        """Why the query must be started again, None while it runs."""
        self._ended_by_itself = False
        if self._query is None:
            return self.failure or "the query did not start"
        try:
            if not self._query.isActive:
                cause = self._query.exception()
                self._ended_by_itself = True
                return _cause(cause) if cause else "the query ended by itself"
            self._note_duration(self._query)
        except (Py4JError, OSError) as error:
            return f"the JVM is gone ({_cause(error)})"
        return self._stalled()

    def _stalled(self) -> str | None:
        still_s = self._still_s(self._begun_s)
        return f"no tick was published for {still_s:.0f} s" if still_s > self._allowed_s() else None

    def _still_s(self, since_s: float) -> float:
        return time.monotonic() - max(since_s, self.publisher.published_s or 0.0)

    def _allowed_s(self) -> float:
        return max(self._watch.stalled_after_s, self._watch.stalled_ticks * self._config.timing.tick_s)

    def _publishing(self) -> bool:
        return self.publisher.published_s is not None and self.publisher.published_s > self._begun_s

    def _note_duration(self, query: StreamingQuery) -> None:
        progress = query.lastProgress
        if progress is not None and "triggerExecution" in progress["durationMs"]:
            self.last_tick_duration_s = progress["durationMs"]["triggerExecution"] / 1000


def _cause(error: BaseException) -> str:
    """What happened, in one line: Spark's messages carry a Python traceback, a plan and a Java stack around it."""
    told = str(error).rpartition("Traceback (most recent call last):")[2]
    lines = [line.strip() for line in told.splitlines() if line and not line[0].isspace()]
    return lines[0] if lines else type(error).__name__
