"""What is asked again, what is not, and when it ends."""

import time
from typing import Any

import pytest

from adapter.errors import SourceError
from adapter.serving.access.asking import Persistence, ask

QUICK = Persistence(deadline_s=5.0, first_pause_s=0.001)
WHAT = "post subjectaccessreviews.authorization.k8s.io"
BROKEN = SourceError("kubernetes", "connection reset")


class Api:
    """Answers one after the other as told, the last again and again."""

    def __init__(self, *outcomes: tuple[int, Any] | SourceError) -> None:
        self.outcomes = list(outcomes)
        self.left_s: list[float] = []

    def __call__(self, left_s: float) -> tuple[int, Any]:
        self.left_s.append(left_s)
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, SourceError):
            raise outcome
        return outcome


def asked(api: Api, persistence: Persistence = QUICK) -> Any:
    return ask(api, WHAT, persistence, time.monotonic() + persistence.deadline_s)


@pytest.mark.parametrize("fault", [BROKEN, (429, None), (500, None), (503, "x"), (504, {})])
def test_a_fault_that_passes_is_asked_again(fault: tuple[int, Any] | SourceError) -> None:
    api = Api(fault, fault, (201, {"kind": "X"}))
    assert asked(api) == {"kind": "X"}
    assert len(api.left_s) == 3


@pytest.mark.parametrize("code", [301, 400, 401, 403, 404, 422])
def test_a_fault_that_stays_counts_at_once(code: int) -> None:
    api = Api((code, {}), (201, {}))
    with pytest.raises(SourceError):
        asked(api)
    assert len(api.left_s) == 1


@pytest.mark.parametrize("fault", [BROKEN, (500, None)])
def test_it_is_asked_five_times_as_go_does(fault: tuple[int, Any] | SourceError) -> None:
    api = Api(fault)
    with pytest.raises(SourceError):
        asked(api)
    assert len(api.left_s) == 5


STATUS = {"kind": "Status", "status": "Failure", "message": "subject access review failed"}


@pytest.mark.parametrize(
    ("code", "document", "cause"),
    [
        (500, STATUS, "subject access review failed"),
        (500, "boom\n", f'an error on the server ("boom") has prevented the request from succeeding ({WHAT})'),
        (500, {"kind": "X"}, f'an error on the server ("unknown") has prevented the request from succeeding ({WHAT})'),
        (403, "no", f"no ({WHAT})"),
        (401, {}, f"the server has asked for the client to provide credentials ({WHAT})"),
        (404, "", f"the server could not find the requested resource ({WHAT})"),
        (503, "", f"the server is currently unable to handle the request ({WHAT})"),
        (
            418,
            "",
            f"the server responded with the status code 418 but did not return more information ({WHAT})",
        ),
    ],
    ids=["auth-179 a Status", "text", "another document", "403", "401", "404", "503", "any"],
)
def test_the_cause_is_worded_as_by_client_go(code: int, document: Any, cause: str) -> None:
    with pytest.raises(SourceError) as raised:
        asked(Api((code, document)))
    assert raised.value.cause == cause


def test_the_cause_of_a_broken_connection_is_its_own() -> None:
    with pytest.raises(SourceError, match="kubernetes: connection reset"):
        asked(Api(BROKEN))


def test_nothing_is_asked_after_the_deadline() -> None:
    api = Api((500, None))
    started_s = time.monotonic()
    with pytest.raises(SourceError):
        asked(api, Persistence(deadline_s=0.1, tries=100, first_pause_s=0.02))
    assert time.monotonic() - started_s < 0.1
    assert len(api.left_s) == 3


def test_each_try_is_given_the_time_that_is_left() -> None:
    api = Api((500, None))
    with pytest.raises(SourceError):
        asked(api)
    assert api.left_s[0] <= 5.0
    assert all(later < earlier for earlier, later in zip(api.left_s, api.left_s[1:], strict=False))


def test_pauses_grow() -> None:
    assert list(Persistence(deadline_s=1.0, first_pause_s=0.5, tries=4).pauses_s()) == [0.5, 1.0, 2.0]
    assert list(Persistence(deadline_s=1.0, tries=1).pauses_s()) == []
