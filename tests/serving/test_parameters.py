"""The query of a metric request; the other texts are replayed from the recording in test_wire.py."""

import pytest

from adapter.serving.external import Question
from adapter.serving.parameters import LONGEST_SELECTOR, question
from adapter.serving.status import Answer


def asked(**query: str) -> Question | Answer:
    return question("shop", "backlog", query)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"fieldSelector": "foo=x"}, '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ({"limit": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"timeout": "5"}, 'invalid timeout specified in the request URL - time: invalid duration "5"'),
        ({"labelSelector": "a" * (LONGEST_SELECTOR + 1)}, "labelSelector must be at most 16384 characters, got 16385"),
    ],
)
def test_a_wrong_parameter_is_a_400(query: dict[str, str], message: str) -> None:
    refused = asked(**query)
    assert isinstance(refused, Answer)
    assert (refused.code, refused.document["message"]) == (400, message)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"limit": "5", "timeout": "1m30.5s", "continue": "x", "foo": "bar"},
        {"fieldSelector": "metadata.name=x,metadata.namespace!=y"},
        {"resourceVersion": "5", "resourceVersionMatch": "Exact"},
        {"watch": "false"},
    ],
)
def test_a_parameter_that_is_right_changes_nothing(query: dict[str, str]) -> None:
    assert isinstance(asked(**query), Question)
