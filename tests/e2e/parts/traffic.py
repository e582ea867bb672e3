"""Continuous requests, and their status codes."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

from parts.process import Loop, until

_PAUSE_S = 0.02


class Traffic(Loop):
    """Repeats one request until it stops. answers: the count of each status code, or of each connection error."""

    def __init__(self, request: Callable[[], httpx.Response]) -> None:
        super().__init__(_PAUSE_S)
        self._request = request
        self.answers: Counter[int | str] = Counter()
        self.first_failure = ""

    @property
    def requests(self) -> int:
        """Requests so far."""
        return self.answers.total()

    @property
    def failures(self) -> int:
        """Requests so far that did not succeed."""
        return self.requests - self.answers[200]

    def await_requests(self, count: int) -> None:
        """Returns after this many more requests."""
        goal = self.requests + count
        until(lambda: self.requests >= goal, 180, f"{count} more requests")

    def step(self) -> None:
        try:
            answer = self._request()
        except Exception as error:  # every error counts as a failure, and the requests continue
            self._count(repr(error), repr(error))
        else:
            self._count(answer.status_code, answer.text)

    def _count(self, outcome: int | str, message: str) -> None:
        self.answers[outcome] += 1
        if outcome != 200:
            self.first_failure = self.first_failure or message


@contextmanager
def lossless_traffic(request: Callable[[], httpx.Response], count: int) -> Iterator[Traffic]:
    """Repeats a request during the block, and this many times before and after it. Fails if one request fails."""
    with Traffic(request) as traffic:
        traffic.await_requests(count)
        yield traffic
        traffic.await_requests(count)
    assert traffic.failures == 0, f"{traffic.answers}: {traffic.first_failure}"
