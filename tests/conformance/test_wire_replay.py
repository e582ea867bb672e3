"""Every recorded response of a real Go metrics server, requested again over TLS."""

from collections.abc import Mapping

import pytest

from conformance.__main__ import RECORDING
from conformance.recording import read
from conformance.replay import Result, Verdict, replay
from conformance.server import run_server

ROWS = read(RECORDING)


@pytest.fixture(scope="module")
def results() -> Mapping[str, Result]:
    with run_server(ROWS) as running:
        return {result.row.id: result for result in replay(ROWS, running.client)}


@pytest.mark.parametrize("name", [row.id for row in ROWS])
def test_the_response_is_the_recorded_one_or_a_listed_divergence(results: Mapping[str, Result], name: str) -> None:
    assert results[name].verdict is not Verdict.FAILED, str(results[name])


def test_the_plain_questions_of_an_hpa_match(results: Mapping[str, Result]) -> None:
    """case 9 to 15, 56, 58: no divergence may swallow them."""
    names = ("ext-036", "ext-037", "ext-038", "ext-041", "neg-109", "auth-176", "auth-177", "auth-181", "auth-164")
    assert {name: results[name].verdict for name in names} == dict.fromkeys(names, Verdict.MATCHED)
