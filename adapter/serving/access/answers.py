"""Answers of another server: remembered for a while, and asked for once however many wait for one."""

import time
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

import structlog

from adapter.errors import SourceError
from adapter.serving.access.cluster import SOURCE
from adapter.serving.api.request import MustWait

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
# Asks the other server: given when to give up, of the monotonic clock. Raises SourceError.
Ask = Callable[[float], Value]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Terms:
    """name: of the questions, in the plural. deadline_s: how long anybody waits for an answer. lasts_s: how long one
    counts. most_in_flight: questions that are asked at the same time; the others wait, within the same deadline.
    most_remembered: answers that are kept."""

    name: str
    deadline_s: float
    lasts_s: float = 10.0
    most_in_flight: int = 16
    most_remembered: int = 8192


@dataclass(frozen=True, slots=True)
class _Flight(Generic[Value]):
    """A question on its way. A fault comes as a value: each thread that waits raises an exception of its own."""

    future: Future[Value | SourceError]
    ends_s: float


class Answers(Generic[Key, Value]):
    """Questions are asked on threads of their own: whoever waits is back at the deadline, whatever the other server
    does. Reading takes no lock and writes nothing down: all answers last equally long, so that the oldest is always
    the one to drop when there are too many.

    clock: monotonic seconds, for how long answers last.
    """

    def __init__(self, terms: Terms, clock: Callable[[], float] = time.monotonic) -> None:
        self._terms = terms
        self._clock = clock
        self._held: dict[Key, tuple[Value, float]] = {}
        self._flights: dict[Key, _Flight[Value]] = {}
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(terms.most_in_flight, thread_name_prefix=terms.name.replace(" ", "-"))
        self._failing = False

    def get(self, key: Key, ask: Ask[Value], *, patient: bool, keep: bool = True) -> Value:
        """The answer that is remembered, or a new one, which is remembered if `keep`.

        Raises MustWait when it has to be asked for and `patient` is false, SourceError when it cannot be had.
        """
        known = self._known(key)
        if known is not None:
            return known
        if not patient:
            raise MustWait
        return self._awaited(self._flight(key, ask, keep))

    def close(self) -> None:
        """Ask nothing more; what is on its way ends at its deadline."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _known(self, key: Key) -> Value | None:
        held = self._held.get(key)
        return held[0] if held is not None and self._clock() < held[1] else None

    def _flight(self, key: Key, ask: Ask[Value], keep: bool) -> _Flight[Value]:
        with self._lock:
            flight = self._flights.get(key)
            if flight is None:
                ends_s = time.monotonic() + self._terms.deadline_s
                flight = _Flight(self._threads.submit(self._fly, key, ask, keep, ends_s), ends_s)
                self._flights[key] = flight
            return flight

    def _fly(self, key: Key, ask: Ask[Value], keep: bool, ends_s: float) -> Value | SourceError:
        try:
            known = self._known(key)
            if known is not None:  # another flight landed since the caller looked
                return known
            outcome = self._asked(ask, ends_s)
            if keep and not isinstance(outcome, SourceError):
                self._remember(key, outcome)
            return outcome
        finally:
            with self._lock:
                del self._flights[key]

    def _asked(self, ask: Ask[Value], ends_s: float) -> Value | SourceError:
        try:
            if time.monotonic() >= ends_s:
                raise SourceError(SOURCE, f"more than {self._terms.most_in_flight} {self._terms.name} at the same time")
            answer = ask(ends_s)
        except SourceError as fault:
            self._tell(fault)
            return fault
        self._tell(None)
        return answer

    def _remember(self, key: Key, answer: Value) -> None:
        with self._lock:
            self._held.pop(key, None)  # to be the newest again
            while len(self._held) >= self._terms.most_remembered:
                del self._held[next(iter(self._held))]
            self._held[key] = answer, self._clock() + self._terms.lasts_s

    def _awaited(self, flight: _Flight[Value]) -> Value:
        try:
            outcome = flight.future.result(flight.ends_s - time.monotonic())
        except (TimeoutError, CancelledError):
            outcome = SourceError(SOURCE, f"no answer within {self._terms.deadline_s:g} s")
        if isinstance(outcome, SourceError):
            raise SourceError(outcome.source, outcome.cause)
        return outcome

    def _tell(self, fault: SourceError | None) -> None:
        """Log, once a change."""
        if fault is not None and not self._failing:
            fix = "reach the API server, and bind ClusterRole system:auth-delegator to the service account"
            what = "the cluster does not answer; who needs its answer is refused"
            _log.error(what, asked_for=self._terms.name, cause=fault.cause, fix=fix)
        elif fault is None and self._failing:
            _log.info("the cluster answers again", asked_for=self._terms.name)
        self._failing = fault is not None
