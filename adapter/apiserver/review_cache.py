"""Answers of TokenReviews and SubjectAccessReviews: cached for ten seconds, requested once for all who wait."""

import time
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

import structlog

from adapter.apiserver.cache import ByteCache
from adapter.apiserver.cluster_api import SOURCE
from adapter.errors import SourceError
from adapter.failure_logger import FailureLogger

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
# Requests a review. Called with the time to give up, of the monotonic clock. Raises SourceError.
Ask = Callable[[float], Value]

_FIX = "reach the API server, and bind ClusterRole system:auth-delegator to the service account"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """How long reviews may take, and how many answers are stored.

    name: of the reviews, in the plural. deadline_s: for an answer. lasts_s: how long an answer counts. concurrency:
    reviews at the same time; more wait, within the same deadline. largest_bytes: of all answers, some 4 000 usual ones.
    """

    name: str
    deadline_s: float
    lasts_s: float = 10.0
    concurrency: int = 16
    largest_bytes: int = 10 * 2**20


@dataclass(frozen=True, slots=True)
class _PendingReview(Generic[Value]):
    """A review in progress. A failure is its result: each waiting thread raises an exception of its own."""

    future: Future[Value | SourceError]
    ends_s: float


class ReviewCache(Generic[Key, Value]):
    """Requests reviews on threads of its own, so that a request ends at the deadline whatever the cluster does.

    Reads take no lock. All answers last equally long, so the oldest is the one to drop. weight: bytes of a key and its
    value, as ByteCache.put takes them. clock: monotonic seconds, for the age of answers.
    """

    def __init__(
        self, settings: CacheSettings, weight: Callable[[Key, Value], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._weight = weight
        self._clock = clock
        self._cache: ByteCache[Key, tuple[Value, float]] = ByteCache(settings.largest_bytes)
        self._pending: dict[Key, _PendingReview[Value]] = {}
        self._lock = Lock()
        name = settings.name.replace(" ", "-")
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix=name)
        began, over = "reviews fail, and so do the requests that need them", "reviews succeed again"
        self._failures = FailureLogger(_log, began, over, reviews=settings.name)
        began, over = "more reviews wait than the cluster answers in time; some requests fail", "no review waits"
        self._overload = FailureLogger(_log, began, over, reviews=settings.name)

    def get(self, key: Key, ask: Ask[Value]) -> Value:
        """The cached answer, or a new one. Raises SourceError if there is none by the deadline."""
        known = self._known(key)
        return self._wait(self._pending_review(key, ask)) if known is None else known

    def close(self) -> None:
        """Request no more reviews; those in progress end at their deadline."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _known(self, key: Key) -> Value | None:
        entry = self._cache.get(key)
        return entry[0] if entry is not None and self._clock() < entry[1] else None

    def _pending_review(self, key: Key, ask: Ask[Value]) -> _PendingReview[Value]:
        with self._lock:
            pending = self._pending.get(key)
            if pending is None:
                ends_s = time.monotonic() + self._settings.deadline_s
                pending = _PendingReview(self._threads.submit(self._run_review, key, ask, ends_s), ends_s)
                self._pending[key] = pending
            return pending

    def _run_review(self, key: Key, ask: Ask[Value], ends_s: float) -> Value | SourceError:
        try:
            known = self._known(key)  # another review may have ended since the lookup
            return self._request(key, ask, ends_s) if known is None else known
        finally:
            self._end(key)

    def _request(self, key: Key, ask: Ask[Value], ends_s: float) -> Value | SourceError:
        if time.monotonic() >= ends_s:
            cause = f"more than {self._settings.concurrency} {self._settings.name} at the same time"
            self._overload.record_failure(cause)
            return SourceError(SOURCE, cause)
        try:
            answer = ask(ends_s)
        except SourceError as error:
            self._failures.record_failure(error.cause, is_grave=True, fix=_FIX)
            return error
        self._failures.record_success()
        self._cache.put(key, (answer, self._clock() + self._settings.lasts_s), self._weight(key, answer))
        return answer

    def _end(self, key: Key) -> None:
        with self._lock:
            del self._pending[key]
            has_room = len(self._pending) < self._settings.concurrency
        if has_room:
            self._overload.record_success()

    def _wait(self, pending: _PendingReview[Value]) -> Value:
        try:
            result = pending.future.result(pending.ends_s - time.monotonic())
        except (TimeoutError, CancelledError):
            result = SourceError(SOURCE, f"no answer within {self._settings.deadline_s:g} s")
        if isinstance(result, SourceError):
            raise SourceError(result.source, result.cause)
        return result
