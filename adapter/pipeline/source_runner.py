"""Run a source in a Spark worker within a deadline: a source that hangs loses its samples, and the tick goes on."""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from functools import lru_cache, partial
from pkgutil import resolve_name

import pyarrow as pa

from adapter.config import Config
from adapter.errors import SourceError
from adapter.failure_logger import TracebackLogger
from adapter.sources import Source
from adapter.sources.sample_table import SampleTable

Opener = Callable[[Config, str], Source]

GRACE_S = 0.5  # a source reports its own deadline first, with a better message
ABANDON_AFTER_DEADLINES = 20  # a call that hangs for this long is abandoned, and the source is opened anew

_log = logging.getLogger(__name__)


class SourceRunner:
    """Calls one source of one configuration from one thread at a time. The first call opens the source."""

    def __init__(
        self, config: Config, name: str, opener: Opener, *, abandon_after_deadlines: int = ABANDON_AFTER_DEADLINES
    ) -> None:
        self._open: Callable[[], Source] = partial(opener, config, name)
        self._name = name
        self._tracebacks = TracebackLogger(_log)
        self._deadline_s = config.sources[name].deadline_s + GRACE_S
        self._abandon_after_s = abandon_after_deadlines * self._deadline_s
        self._lock = threading.Lock()  # a call is either abandoned, or stores the source that it opened
        self._source: Source | None = None
        self._call: Future[pa.Table] | None = None  # without an answer
        self._started_s = 0.0
        self._late_error = ""  # of the call before, if it failed after its deadline; the end of a message

    def samples(self, ticks: range) -> pa.Table:
        """The source's samples of the ticks. Raises SourceError for every kind of failure."""
        self._check_last_call()
        self._call, self._started_s = Future(), time.monotonic()
        # A daemon thread: a call that never returns must not keep the worker process alive.
        threading.Thread(target=self._run, args=(self._call, self._source, ticks), daemon=True).start()
        wait([self._call], self._deadline_s)
        if not self._call.done():
            raise SourceError(self._name, f"no answer within {self._deadline_s:g} s{self._late_error}")
        try:
            return self._call.result()
        except SourceError:
            raise
        except Exception as error:  # an error of a client library loses this source's samples, not the tick
            self.close()
            self._tracebacks.log(error, "source %s failed", self._name)
            raise SourceError(self._name, f"unexpected {type(error).__name__}: {error}") from error
        finally:
            self._call = None  # its error holds the frames of the source, and so all that they use

    def close(self) -> None:
        """Close the source if it is open. The next call opens it again."""
        source, self._source = self._source, None
        if source is not None:
            threading.Thread(target=source.close, daemon=True).start()  # closing may hang too

    def _check_last_call(self) -> None:
        """Do not start threads on a source that hangs. Raises SourceError until the call is abandoned."""
        if self._call is None or self._call.done():
            self._late_error = self._error_of_late_call()
            return
        hanging_s = time.monotonic() - self._started_s
        if hanging_s < self._abandon_after_s:
            raise SourceError(self._name, f"still no answer after {hanging_s:.0f} s")
        self._late_error = ""
        with self._lock:
            if self._call.cancel():  # the call closes its source when it returns: closing a source in use may crash
                self._source = None

    def _error_of_late_call(self) -> str:
        error = None if self._call is None else self._call.exception()
        if error is None:
            return ""
        if isinstance(error, SourceError):
            return f"; the last call failed after its deadline: {error.cause}"
        self.close()
        return f"; the last call failed after its deadline: unexpected {type(error).__name__}: {error}"

    def _run(self, call: Future[pa.Table], source: Source | None, ticks: range) -> None:
        try:
            if source is None:
                source = self._open()
                self._store(call, source)
            call.set_result(source.samples(ticks[0], ticks[-1], ticks.step))
        except BaseException as error:  # the calling thread handles it
            with suppress(InvalidStateError):  # the call is abandoned
                call.set_exception(error)
        finally:
            if source is not None and call.cancelled():
                source.close()
            del call  # its error holds this frame: the cycle would keep a closed source until a garbage collection

    def _store(self, call: Future[pa.Table], source: Source) -> None:
        """Store an open source for the next call. Raises InvalidStateError if the call was abandoned."""
        with self._lock:
            if call.cancelled():
                raise InvalidStateError
            self._source = source


# They live as long as the worker, so that connections outlive a tick.
_runners: dict[tuple[str, str, str], SourceRunner] = {}


def runner_of(config_json: str, opener: str, name: str) -> SourceRunner:
    """The runner of a source, the same one in every tick. Closes the sources of an older configuration."""
    digest = hashlib.blake2b(config_json.encode()).hexdigest()
    for key in [key for key in _runners if key[0] != digest]:
        _runners.pop(key).close()
    if (digest, opener, name) not in _runners:
        _runners[digest, opener, name] = SourceRunner(deserialize(config_json), name, resolve_name(opener))
    return _runners[digest, opener, name]


def serialize(config: Config) -> str:
    """The configuration as JSON, which crosses processes."""
    return config.model_dump_json(by_alias=True)


@lru_cache(maxsize=1)
def deserialize(config_json: str) -> Config:
    """Reverse serialize(), once a process."""
    return Config.model_validate_json(config_json)


def fault_table(workloads: Iterable[str], ticks: range, message: str) -> pa.Table:
    """The fault of a whole source, for each of these workloads."""
    table = SampleTable()
    for at_s in ticks:
        for workload in workloads:
            table.add_fault(at_s, workload, message)
    return table.finish()
