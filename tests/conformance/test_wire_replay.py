"""Every recorded answer of a real Go metrics server, asked for again over TLS: ours is the same, byte for byte."""

import json
from collections import defaultdict
from collections.abc import Mapping

import pytest

from adapter.serving.api.quantity import LARGEST, parse, quantity
from conformance.__main__ import RECORDED
from conformance.recording import Answered, read
from conformance.replay import Kind, Verdict, replay
from conformance.server import started

ROWS = read(RECORDED)


@pytest.fixture(scope="module")
def verdicts() -> Mapping[str, Verdict]:
    with started(ROWS) as running:
        return {verdict.row.id: verdict for verdict in replay(ROWS, running.caller)}


@pytest.mark.parametrize("name", [row.id for row in ROWS])
def test_the_answer_is_the_recorded_one_or_a_listed_divergence(verdicts: Mapping[str, Verdict], name: str) -> None:
    assert verdicts[name].kind is not Kind.FAILED, str(verdicts[name])


def test_no_more_diverges_than_is_meant(verdicts: Mapping[str, Verdict]) -> None:
    found = defaultdict(set)
    for verdict in verdicts.values():
        if verdict.kind is Kind.LISTED:
            found[verdict.divergence].add(verdict.row.id)
    assert found == {
        "filled-discovery": {"disc-026", "disc-028"},
        "bad-metric-selector": {"cust-v1beta1-142", "cust-v1beta2-161"},
        "unverified-certificate": {"auth-182"},
        "source-crashes": {"err-102"},
    }


def test_numbers_are_written_as_recorded_case_44() -> None:
    """ext-090: those that an HPA may be given; 1e3 and 1Ki are read, never written."""
    [recorded] = [row.outcome for row in ROWS if row.id == "ext-090"]
    assert isinstance(recorded, Answered)
    values = [item["value"] for item in json.loads(recorded.body or b"")["items"]]
    readable = [value for value in values if 0 <= parse(value) <= LARGEST and parse(value) * 1000 % 1 == 0]
    written = [value for value in readable if not {"e", "i"} & {*value}]
    assert len(written) >= 8
    assert [quantity(float(parse(value))) for value in written] == written
