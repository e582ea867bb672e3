"""Retry a request to the cluster's API after transient failures, within one deadline."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adapter.apiserver.cluster_api import SOURCE
from adapter.errors import SourceError

# One attempt: called with the seconds that remain; returns status and document, or raises SourceError.
Attempt = Callable[[float], tuple[int, Any]]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """deadline_s: for all attempts and pauses together. Each pause doubles the previous one.

    Go's servers have no deadline but that of the request, 60 s; an HPA controller that waits so long has one of its
    five workers fewer.
    """

    deadline_s: float
    attempts: int = 5
    first_pause_s: float = 0.1


def retry(attempt: Attempt, policy: RetryPolicy, ends_s: float) -> Any:
    """The document of the first success.

    ends_s: when to give up, of the monotonic clock. Broken connections, 429 and 5xx are retried. Raises SourceError.
    """
    for number in range(policy.attempts):
        cause, is_transient = "", True
        try:
            status, document = attempt(max(ends_s - time.monotonic(), 0.001))
        except SourceError as error:
            cause = error.cause
        else:
            if 200 <= status < 300:
                return document
            cause, is_transient = _message(status, document), status == 429 or status >= 500
        pause_s = policy.first_pause_s * 2**number
        if not is_transient or number + 1 == policy.attempts or time.monotonic() + pause_s >= ends_s:
            raise SourceError(SOURCE, cause)
        time.sleep(pause_s)
    raise AssertionError("a policy has at least one attempt")


def _message(status: int, document: Any) -> str:
    """The message of a Status, otherwise the code and the beginning of the body."""
    if isinstance(document, dict) and document.get("status") == "Failure" and document.get("message"):
        return str(document["message"])
    body = document.strip()[:200] if isinstance(document, str) else ""
    return f"the cluster's API answered {status}: {body}".removesuffix(": ")
