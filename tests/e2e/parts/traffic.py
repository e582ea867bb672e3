"""Continuous requests, and their status codes."""

import threading
from collections import Counter
from collections.abc import Callable

import httpx

from parts.process import Part

_PAUSE_S = 0.02


class Traffic(Part):
    """Repeats one request until it stops. answers: the count of each status code, or of each connection error."""

    def __init__(self, request: Callable[[], httpx.Response]) -> None:
        self._request = request
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic")
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

    def _run(self) -> None:
        while not self._stopping.wait(_PAUSE_S):
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

    def start(self) -> None:
        """Starts the requests, on a thread of their own."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the requests."""
        self._stopping.set()
        self._thread.join(60)
