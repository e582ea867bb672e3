"""YAML; the texts are of sigs.k8s.io/yaml."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api.status import failure
from adapter.serving.api.yaml_text import written


def test_neg_114_a_list_of_values_is_the_recorded_one() -> None:
    value = {
        "metricName": "my-external-metric",
        "metricLabels": {"foo": "bar", "ns": "default"},
        "timestamp": "2026-01-02T03:04:05Z",
        "value": "42",
    }
    names = {"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "metadata": {}}
    assert written(names | {"items": [value]}).decode() == (
        "apiVersion: external.metrics.k8s.io/v1beta1\nitems:\n- metricLabels:\n    foo: bar\n    ns: default\n"
        '  metricName: my-external-metric\n  timestamp: "2026-01-02T03:04:05Z"\n  value: "42"\n'
        "kind: ExternalMetricValueList\nmetadata: {}\n"
    )


def test_a_long_message_is_folded() -> None:
    message = (
        'unable to parse requirement: <nil>: Invalid value: "$": name part must consist of alphanumeric characters'
    )
    assert written(failure(400, "BadRequest", message).document).decode() == (
        "apiVersion: v1\ncode: 400\nkind: Status\n"
        'message: \'unable to parse requirement: <nil>: Invalid value: "$": name part must consist\n'
        "  of alphanumeric characters'\n"
        "metadata: {}\nreason: BadRequest\nstatus: Failure\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.5, "1.5"),
        ("", '""'),
        ("1500m", "1500m"),
        ("42", '"42"'),
        ("1e3", '"1e3"'),
        ("0x1F", '"0x1F"'),
        ("no", '"no"'),
        ("2026-01-02", '"2026-01-02"'),
        ("10:30", '"10:30"'),
        ("*", "'*'"),
        ("/v1", "/v1"),
        ([], "[]"),
    ],
)
def test_text_that_yaml_takes_for_something_else_is_in_quotes(value: object, text: str) -> None:
    assert written({"a": value}).decode() == f"a: {text}\n"


def test_lines_stay_lines() -> None:
    assert written({"a": "406: Not Acceptable\n\nmore", "b": 1}).decode() == (
        "a: |-\n  406: Not Acceptable\n\n  more\nb: 1\n"
    )


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"), max_size=90)
scalars = texts | st.integers(-(10**6), 10**6) | st.booleans() | st.none() | st.from_regex(r"[-+.:0-9eExob_ ]{1,8}")
documents = st.dictionaries(
    texts, st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
)


@given(documents)
def test_what_was_written_is_read_back(document: dict[str, Any]) -> None:
    assert yaml.safe_load(written(document)) == document
