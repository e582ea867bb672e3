"""A question to the cluster's API, repeated after faults that pass, within one deadline."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from adapter.errors import SourceError
from adapter.serving.access.cluster import SOURCE

# One attempt: given the seconds that are left, a status and a document, or a SourceError.
Attempt = Callable[[float], tuple[int, Any]]

# What client-go says of a status whose body says nothing; it is seen in the 500 of a failed access review.
_WORDS = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


@dataclass(frozen=True, slots=True)
class Persistence:
    """How long everybody who waits for an answer waits, repeats and pauses included; each pause doubles the last.

    Go's servers repeat as often, pause half a second first and know no end but that of the request, 60 s; an HPA
    controller that waits so long has one worker fewer.
    """

    deadline_s: float
    tries: int = 5
    first_pause_s: float = 0.1

    def pauses_s(self) -> Iterator[float]:
        """The pauses between the tries."""
        return (self.first_pause_s * 2**repeat for repeat in range(self.tries - 1))


@dataclass(frozen=True, slots=True)
class _Fault:
    cause: str
    passes: bool


def ask(attempt: Attempt, what: str, persistence: Persistence, ends_s: float) -> Any:
    """The document of the first success.

    what: method and resource, for the cause. ends_s: when to give up, of the monotonic clock. Broken connections, 429
    and 5xx are repeated, another error of the API counts at once. Raises SourceError with the cause as client-go
    words it.
    """
    pauses_s = persistence.pauses_s()
    while True:
        outcome = _outcome(attempt, what, max(ends_s - time.monotonic(), 0.001))
        if not isinstance(outcome, _Fault):
            return outcome
        pause_s = next(pauses_s, None) if outcome.passes else None
        if pause_s is None or time.monotonic() + pause_s >= ends_s:
            raise SourceError(SOURCE, outcome.cause)
        time.sleep(pause_s)


def _outcome(attempt: Attempt, what: str, left_s: float) -> Any | _Fault:
    try:
        status, document = attempt(left_s)
    except SourceError as error:
        return _Fault(error.cause, passes=True)
    if 200 <= status < 300:
        return document
    return _Fault(_told(status, document, what), passes=status == 429 or status >= 500)


def _told(status: int, document: Any, what: str) -> str:
    if isinstance(document, dict) and document.get("status") == "Failure" and document.get("message"):
        return str(document["message"])
    text = document.strip()[:2048] if isinstance(document, str) else "unknown"
    unknown = f"the server responded with the status code {status} but did not return more information"
    if status == 403:
        unknown = text
    elif status >= 500:
        unknown = f"an error on the server ({json.dumps(text)}) has prevented the request from succeeding"
    return f"{_WORDS.get(status, unknown)} ({what})"
