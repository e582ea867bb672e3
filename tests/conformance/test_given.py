"""What a recording tells of what was given to the recorded server."""

import json
from typing import Any

from adapter.serving.api.status import Answer
from adapter.serving.api.version import Version
from conformance.cluster import BROKEN
from conformance.given import told_by
from conformance.recording import Answered, Asked, Dropped, Outcome, Row

METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"


def row(uri: str, body: str | dict[str, Any], status: int = 200, identity: str = "admin") -> Row:
    text = body if isinstance(body, str) else json.dumps(body)
    return asked(uri, Answered(status, {}, text.encode()), identity)


def asked(uri: str, outcome: Outcome, identity: str = "admin") -> Row:
    return Row(uri, Asked("GET", uri, identity), outcome)


def undecided(cause: str) -> Row:
    return row(METRIC, f'Internal Server Error: "{METRIC}": {cause}\n', 500, "proxy")


def test_nothing_told_is_as_it_is_here() -> None:
    told = told_by([asked("/version", Dropped("SSLError")), row("/version", "no JSON"), row(METRIC, {"a": 1})])
    assert (told.version, dict(told.failures), told.broken_review) == (Version(), {}, BROKEN)


def test_the_release_is_that_of_the_recording() -> None:
    assert told_by([row("/version", {"major": "1"})]).version == Version({"major": "1"})


def test_a_source_fails_in_the_words_of_the_recording() -> None:
    document = {"message": "no", "code": 503}
    assert told_by([row(f"{METRIC}/e-late?a=b", document, 503)]).failures == {"e-late": Answer(503, document)}


def test_the_first_answer_tells_how_a_source_fails() -> None:
    told = told_by([row(f"{METRIC}/e-late", {"code": 503}, 503), row(f"{METRIC}/e-late", {"code": 406}, 406)])
    assert told.failures == {"e-late": Answer(503, {"code": 503})}


def test_a_source_gives_no_delay() -> None:
    """case 50"""
    told = told_by([row(f"{METRIC}/e-late", {"details": {"a": 1, "retryAfterSeconds": 7}}, 504)])
    assert told.failures["e-late"].document == {"details": {"a": 1}}


def test_what_a_stranger_is_told_is_no_failure_of_a_source() -> None:
    assert told_by([row(f"{METRIC}/e-late", {"code": 403}, 403, "none")]).failures == {}


def test_a_review_breaks_in_the_words_of_the_recording() -> None:
    """auth-179"""
    assert json.loads(told_by([undecided("review failed")]).broken_review)["message"] == "review failed"


def test_a_review_that_broke_without_a_status_breaks_so_again() -> None:
    cause = 'an error on the server ("boom") has prevented the request from succeeding (post subjectaccessreviews)'
    assert told_by([undecided(cause)]).broken_review == "boom"
