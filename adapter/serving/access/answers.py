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
from adapter.serving.access.kept import Kept
from adapter.serving.api.request import MustWait
from adapter.serving.outage import Outage

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
# Asks the other server: given when to give up, of the monotonic clock. Raises SourceError.
Ask = Callable[[float], Value]

_FIX = "reach the API server, and bind ClusterRole system:auth-delegator to the service account"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Terms:
    """name: of the questions, in the plural. deadline_s: how long anybody waits for an answer. lasts_s: how long one
    counts. most_in_flight: questions that are asked at the same time; the others wait, within the same deadline.
    most_bytes: of answers that are kept, some 4 000 usual ones."""

    name: str
    deadline_s: float
    lasts_s: float = 10.0
    most_in_flight: int = 16
    most_bytes: int = 10 * 2**20


@dataclass(frozen=True, slots=True)
class _Flight(Generic[Value]):
    """A question on its way. A fault comes as a value: each thread that waits raises an exception of its own."""

    future: Future[Value | SourceError]
    ends_s: float


class Answers(Generic[Key, Value]):
    """Questions are asked on threads of their own: whoever waits is back at the deadline, whatever the other server
    does. Reading takes no lock and writes nothing down: all answers last equally long, so that the oldest is always
    the one to drop when there are too many.

    weight: of a question and its answer, as Kept.put. clock: monotonic seconds, for how long answers last.
    """

    def __init__(
        self, terms: Terms, weight: Callable[[Key, Value], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._terms = terms
        self._weight = weight
        self._clock = clock
        self._kept: Kept[Key, tuple[Value, float]] = Kept(terms.most_bytes)
        self._flights: dict[Key, _Flight[Value]] = {}
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(terms.most_in_flight, thread_name_prefix=terms.name.replace(" ", "-"))
        began, over = "the cluster does not answer; who needs its answer is refused", "the cluster answers again"
        self._outage = Outage(_log, began, over, asked_for=terms.name)
        began, over = "more is asked of the cluster than it answers in time; some are refused", "all are answered again"
        self._crowd = Outage(_log, began, over, asked_for=terms.name)

    def get(self, key: Key, ask: Ask[Value], *, patient: bool) -> Value:
        """The answer that is remembered, or a new one.

        Raises MustWait when it has to be asked for and `patient` is false, SourceError when it cannot be had.
        """
        known = self._known(key)
        if known is not None:
            return known
        if not patient:
            raise MustWait
        return self._awaited(self._flight(key, ask))

    def close(self) -> None:
        """Ask nothing more; what is on its way ends at its deadline."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _known(self, key: Key) -> Value | None:
        held = self._kept.get(key)
        return held[0] if held is not None and self._clock() < held[1] else None

    def _flight(self, key: Key, ask: Ask[Value]) -> _Flight[Value]:
        with self._lock:
            flight = self._flights.get(key)
            if flight is None:
                ends_s = time.monotonic() + self._terms.deadline_s
                flight = _Flight(self._threads.submit(self._fly, key, ask, ends_s), ends_s)
                self._flights[key] = flight
            return flight

    def _fly(self, key: Key, ask: Ask[Value], ends_s: float) -> Value | SourceError:
        try:
            known = self._known(key)  # another flight may have landed since the caller looked
            return self._asked(key, ask, ends_s) if known is None else known
        finally:
            self._land(key)

    def _asked(self, key: Key, ask: Ask[Value], ends_s: float) -> Value | SourceError:
        if time.monotonic() >= ends_s:
            return self._too_late()
        try:
            answer = ask(ends_s)
        except SourceError as fault:
            self._outage.failed(fault.cause, is_grave=True, fix=_FIX)
            return fault
        self._outage.worked()
        self._kept.put(key, (answer, self._clock() + self._terms.lasts_s), self._weight(key, answer))
        return answer

    def _too_late(self) -> SourceError:
        """It waited in vain for its turn, which is no fault of the question and perhaps none of the cluster."""
        cause = f"more than {self._terms.most_in_flight} {self._terms.name} at the same time"
        self._crowd.failed(cause)
        return SourceError(SOURCE, cause)

    def _land(self, key: Key) -> None:
        with self._lock:
            del self._flights[key]
            is_calm = len(self._flights) < self._terms.most_in_flight
        if is_calm:
            self._crowd.worked()

    def _awaited(self, flight: _Flight[Value]) -> Value:
        try:
            outcome = flight.future.result(flight.ends_s - time.monotonic())
        except (TimeoutError, CancelledError):
            outcome = SourceError(SOURCE, f"no answer within {self._terms.deadline_s:g} s")
        if isinstance(outcome, SourceError):
            raise SourceError(outcome.source, outcome.cause)
        return outcome
