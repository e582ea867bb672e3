"""Somebody who asks the same thing all the time, and what he is answered."""

import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

import httpx

_PAUSE_S = 0.02


class Traffic:
    """Asks from its entry to its exit. answers: how often each status; a broken connection counts as its error."""

    def __init__(self, ask: Callable[[], httpx.Response]) -> None:
        self._ask = ask
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic")
        self.answers: Counter[int | str] = Counter()
        self.first_fault = ""

    @property
    def asked(self) -> int:
        """How many were answered, or not, so far."""
        return self.answers.total()

    @property
    def failures(self) -> int:
        """How many of them were no success."""
        return self.asked - self.answers[200]

    def _run(self) -> None:
        while not self._stopping.wait(_PAUSE_S):
            try:
                answer = self._ask()
            except Exception as error:  # whatever it is, it is no answer, and the asking goes on
                self._count(repr(error), repr(error))
            else:
                self._count(answer.status_code, answer.text)

    def _count(self, outcome: int | str, told: str) -> None:
        self.answers[outcome] += 1
        if outcome != 200:
            self.first_fault = self.first_fault or told

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(60)
