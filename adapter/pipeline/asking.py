"""A source, kept open in its worker and asked within a deadline: dead, it costs its samples, never the tick."""

import hashlib
import importlib
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import lru_cache, partial

import pyarrow as pa

from adapter.config import Config
from adapter.errors import SourceError
from adapter.sources import EVERY, FAULT, Row, Source
from adapter.sources.columns import read

Opener = Callable[[Config, str], Source]

GRACE_S = 0.5  # a source keeps its own deadline and says more about it; ours is the belt over it
ABANDON_AFTER_DEADLINES = 20  # a call that hangs for so long is given up, and the source is opened anew


class Asked:
    """One source of one configuration, opened at its first use, asked by one thread at a time."""

    def __init__(
        self, config: Config, name: str, opener: Opener, *, abandon_after_deadlines: int = ABANDON_AFTER_DEADLINES
    ) -> None:
        self._opened: Callable[[], Source] = partial(opener, config, name)
        self._name = name
        self._belt_s = config.sources[name].deadline_s + GRACE_S
        self._abandon_after_s = abandon_after_deadlines * self._belt_s
        self._lock = threading.Lock()  # a call is given up, or keeps the source it opened, never both
        self._source: Source | None = None
        self._call: Future[pa.Table] | None = None
        self._asked_s = 0.0

    def samples(self, ticks: range) -> pa.Table:
        """The source's rows of the ticks. Raises SourceError when there is none, whatever went wrong."""
        self._leave_hanging_call()
        self._call, self._asked_s = Future(), time.monotonic()
        # A daemon thread: a call that never returns must not keep the worker process from ending.
        threading.Thread(target=self._run, args=(self._call, self._source, ticks), daemon=True).start()
        try:
            return self._call.result(self._belt_s)
        except SourceError:
            raise
        except TimeoutError as error:
            raise SourceError(self._name, f"no answer within {self._belt_s:g} s") from error
        except Exception as error:  # whatever a client library raises costs this source's samples, never the tick
            self.close()
            raise SourceError(self._name, f"unexpected {type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Close the source, if it was opened; it is opened again when it is asked again."""
        source, self._source = self._source, None
        if source is not None:
            # Closing may hang as well as asking.
            threading.Thread(target=source.close, daemon=True).start()

    def _leave_hanging_call(self) -> None:
        """Do not pile up threads on a source that hangs; its late answer belongs to a tick that is gone."""
        if self._call is None or self._call.done():
            return
        hanging_s = time.monotonic() - self._asked_s
        if hanging_s < self._abandon_after_s:
            raise SourceError(self._name, f"still no answer after {hanging_s:.0f} s")
        with self._lock:
            if self._call.cancel():  # it closes its source itself when it comes back: closing what is in use may crash
                self._source = None

    def _run(self, call: Future[pa.Table], source: Source | None, ticks: range) -> None:
        try:
            if source is None:
                source = self._opened()
                self._keep(call, source)
            call.set_result(read(source, ticks))
        except BaseException as error:  # handed to the asking thread, which tells them apart
            with suppress(InvalidStateError):  # nobody asks any more
                call.set_exception(error)
        if source is not None and call.cancelled():
            source.close()

    def _keep(self, call: Future[pa.Table], source: Source) -> None:
        """Keep an opened source for the next call. Raises InvalidStateError when this one was given up."""
        with self._lock:
            if call.cancelled():
                raise InvalidStateError
            self._source = source


_asked: dict[tuple[str, str, str], Asked] = {}  # lives as long as the worker process: connections survive the tick


def asked(config_json: str, opener: str, name: str) -> Asked:
    """The source `name` of the configuration, kept across ticks; those of an older configuration are closed."""
    digest = hashlib.blake2b(config_json.encode()).hexdigest()
    for key in [key for key in _asked if key[0] != digest]:
        _asked.pop(key).close()
    if (digest, opener, name) not in _asked:
        _asked[digest, opener, name] = Asked(parsed(config_json), name, imported(opener))
    return _asked[digest, opener, name]


def told(config: Config) -> str:
    """The configuration as the text that crosses processes."""
    return config.model_dump_json(by_alias=True)


@lru_cache(maxsize=1)
def parsed(config_json: str) -> Config:
    """The configuration of that text, parsed once a process."""
    return Config.model_validate_json(config_json)


def imported(opener: str) -> Opener:
    """The function "module:name"; a name crosses processes, a function of a test would not."""
    module, _, name = opener.partition(":")
    function: Opener = getattr(importlib.import_module(module), name)
    return function


def workloads_of(config: Config, source: str) -> list[str]:
    """The configured workloads that read from a source."""
    return [
        f"{workload.namespace}/{workload.name}"
        for workload in config.workloads
        if any(reading.source == source for reading in workload.read)
    ]


def fault_rows(workloads: Iterable[str], ticks: range, sentence: str) -> list[Row]:
    """A fault of a whole source: of every workload without a sample, and by name of those configured to read it."""
    named = [EVERY, *workloads]
    return [Row(at_s, workload, "", FAULT, 0.0, sentence) for at_s in ticks for workload in named]
