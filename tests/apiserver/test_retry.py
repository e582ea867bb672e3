"""Retries of requests to the cluster."""

import time
from typing import Any

import pytest

from adapter.apiserver.cluster_api import RetryPolicy, retry
from adapter.errors import SourceError

QUICK = RetryPolicy(deadline_s=5.0, first_pause_s=0.001)
BROKEN = SourceError("kubernetes", "connection reset")


class Api:
    """Returns the outcomes in order, and the last one again and again."""

    def __init__(self, *outcomes: tuple[int, Any] | SourceError) -> None:
        self.outcomes = list(outcomes)
        self.left_s: list[float] = []

    def __call__(self, left_s: float) -> tuple[int, Any]:
        self.left_s.append(left_s)
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, SourceError):
            raise outcome
        return outcome


def retried(api: Api, policy: RetryPolicy = QUICK) -> Any:
    return retry(api, policy, time.monotonic() + policy.deadline_s)


@pytest.mark.parametrize("fault", [BROKEN, (429, None), (500, None), (503, "x"), (504, {})])
def test_a_transient_fault_is_retried(fault: tuple[int, Any] | SourceError) -> None:
    api = Api(fault, fault, (201, {"kind": "X"}))
    assert retried(api) == {"kind": "X"}
    assert min(api.left_s) > 0


@pytest.mark.parametrize("code", [301, 400, 401, 403, 404, 422])
def test_a_permanent_fault_is_not_retried(code: int) -> None:
    api = Api((code, {}), (201, {}))
    with pytest.raises(SourceError):
        retried(api)
    assert len(api.left_s) == 1


@pytest.mark.parametrize("fault", [BROKEN, (500, None)])
def test_there_are_five_attempts_as_in_go(fault: tuple[int, Any] | SourceError) -> None:
    api = Api(fault)
    with pytest.raises(SourceError):
        retried(api)
    assert len(api.left_s) == 5


STATUS = {"kind": "Status", "status": "Failure", "message": "subject access review failed"}


@pytest.mark.parametrize(
    ("code", "document", "cause"),
    [
        (500, STATUS, "subject access review failed"),
        (500, "boom\n", "the cluster's API answered 500: boom"),
        (418, {"kind": "X"}, "the cluster's API answered 418"),
    ],
    ids=["auth-179 a Status", "text", "another document"],
)
def test_the_cause_is_the_message_of_the_cluster(code: int, document: Any, cause: str) -> None:
    with pytest.raises(SourceError) as raised:
        retried(Api((code, document)))
    assert raised.value.cause == cause


def test_the_cause_of_a_broken_connection_is_its_own() -> None:
    with pytest.raises(SourceError, match="kubernetes: connection reset"):
        retried(Api(BROKEN))


def test_there_is_no_attempt_after_the_deadline() -> None:
    api = Api((500, None))
    with pytest.raises(SourceError):
        retried(api, RetryPolicy(deadline_s=0.1, attempts=100, first_pause_s=0.02))
    assert len(api.left_s) <= 3


def test_each_attempt_gets_the_time_that_is_left() -> None:
    api = Api((500, None))
    with pytest.raises(SourceError):
        retried(api)
    assert api.left_s[0] <= 5.0
    assert all(later < earlier for earlier, later in zip(api.left_s, api.left_s[1:], strict=False))
