"""The query of a metric request: cases 20, 21-34 and 72 as far as the query alone decides them."""

import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api.parameters import (
    LONGEST_SELECTOR,
    check_timeout,
    external_selector,
    object_selectors,
    selected_name,
    watches,
)
from adapter.serving.api.request import Request
from adapter.serving.api.selectors import EVERYTHING, parse
from adapter.serving.api.status import Answer, Refusal

Query = Mapping[str, str]
UNKNOWN_FIELD = '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"'
BAD_LIMIT = 'strconv.ParseInt: parsing "x": invalid syntax'


def refused_external(query: Query) -> Answer:
    with pytest.raises(Refusal) as raised:
        external_selector(query)
    return raised.value.answer


def refused_object(query: Query, name: str = "foo") -> Answer:
    with pytest.raises(Refusal) as raised:
        object_selectors(query, name)
    return raised.value.answer


def told(answer: Answer) -> tuple[int, str]:
    return answer.code, answer.document["message"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param({"fieldSelector": "foo=x"}, UNKNOWN_FIELD, id="case 30, ext-059"),
        pytest.param({"limit": "x"}, BAD_LIMIT, id="case 32, ext-063"),
        pytest.param({"limit": ""}, 'strconv.ParseInt: parsing "": invalid syntax', id="an empty number"),
        pytest.param({"limit": "٣"}, 'strconv.ParseInt: parsing "٣": invalid syntax', id="digits of another script"),
        pytest.param(
            {"limit": "9223372036854775808"},
            'strconv.ParseInt: parsing "9223372036854775808": value out of range',
            id="more than 64 bits",
        ),
        pytest.param({"timeoutSeconds": "x"}, BAD_LIMIT, id="timeoutSeconds"),
        pytest.param(
            {"labelSelector": "a" * (LONGEST_SELECTOR + 1)},
            "labelSelector must be at most 16384 characters, got 16385",
            id="too long a selector",
        ),
        pytest.param(
            {"fieldSelector": "a" * (LONGEST_SELECTOR + 1)},
            "fieldSelector must be at most 16384 characters, got 16385",
            id="too long a field selector",
        ),
        pytest.param({"labelSelector": "a,"}, "found '', expected: identifier after ','", id="case 28, ext-057"),
    ],
)
def test_a_wrong_parameter_is_a_400(query: Query, message: str) -> None:
    assert told(refused_external(query)) == (400, message)
    assert told(refused_object(query)) == (400, message)


@pytest.mark.parametrize(
    "query",
    [
        {},
        pytest.param({"labelSelector": ""}, id="case 20, ext-045"),
        pytest.param({"limit": "1"}, id="case 32, ext-062"),
        pytest.param({"continue": "abc"}, id="ext-064"),
        pytest.param({"resourceVersion": "5"}, id="ext-065"),
        pytest.param({"timeoutSeconds": "5"}, id="ext-067"),
        pytest.param({"foo": "bar"}, id="ext-069"),
        {"limit": "-1", "timeoutSeconds": "+7"},
        {"limit": "-9223372036854775808"},
        {"limit": "0" * 5000 + "1"},
        {"resourceVersion": "5", "resourceVersionMatch": "Exact"},
        {"watch": "false"},
        {"watch": "FALSE"},
        {"watch": "0"},
        {"fieldSelector": ","},
    ],
)
def test_a_parameter_that_is_right_changes_nothing(query: Query) -> None:
    assert external_selector(query) == EVERYTHING
    assert object_selectors(query, "foo") == (EVERYTHING, EVERYTHING)


def test_a_number_takes_no_longer_than_its_length_says() -> None:
    began_s = time.perf_counter()
    assert told(refused_external({"limit": "0" * 30_000 + "x"}))[0] == 400
    assert time.perf_counter() - began_s < 0.5  # quadratic takes ten seconds


@pytest.mark.parametrize(
    ("selector", "is_remembered"),
    [
        ("workload=orders", True),
        pytest.param(f"a={'b' * 63},c={'d' * 63}", True, id="two long values"),
        pytest.param(",".join("abcdefghij"), False, id="many terms"),
        pytest.param("workload in (" + "a" * 50 + ("," + "b" * 50) * 5 + ")", False, id="long"),
    ],
)
def test_only_small_selectors_are_remembered_for_anybody_may_send_others(selector: str, is_remembered: bool) -> None:
    query = {"labelSelector": selector}
    assert (external_selector(query) is external_selector(query)) == is_remembered


@pytest.mark.parametrize("field", ["metadata.name=x", "metadata.name=x,metadata.namespace!=y", "metadata.namespace==z"])
def test_ext_058_a_field_that_every_object_has_is_ignored(field: str) -> None:
    assert external_selector({"fieldSelector": field}) == EVERYTHING


def test_case_29_of_a_parameter_that_is_repeated_the_first_counts() -> None:
    request = Request.of("GET", "/m?labelSelector=foo%3Dbar&labelSelector=foo%3Dbaz&limit=1&limit=x")
    assert external_selector(request.query) == parse("foo=bar")


@pytest.mark.parametrize(
    "watch", [pytest.param("true", id="case 31, ext-060"), pytest.param("banana", id="case 31, ext-061"), ""]
)
def test_a_watch_of_external_metrics_is_a_405(watch: str) -> None:
    answer = refused_external({"watch": watch})
    assert told(answer) == (405, 'watch is not supported on resources of kind "*.external.metrics.k8s.io"')
    assert answer.document["details"] == {"group": "external.metrics.k8s.io", "kind": "*"}
    assert watches({"watch": watch})


def test_cust_143_a_watch_of_objects_is_answered_like_any_request() -> None:
    assert object_selectors({"watch": "true", "resourceVersionMatch": "Exact"}, "*") == (EVERYTHING, EVERYTHING)


def test_case_33_ext_066_a_match_without_a_version_is_a_422_with_its_cause() -> None:
    fault = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    answer = refused_external({"resourceVersionMatch": "Exact"})
    assert told(answer) == (422, f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {fault}')
    cause = {"reason": "FieldValueForbidden", "message": f"Forbidden: {fault}", "field": "resourceVersionMatch"}
    assert answer.document["details"] == {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]}


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        (
            {"resourceVersionMatch": "banana", "continue": "x"},
            [
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
                "Forbidden: resourceVersionMatch is forbidden when continue is provided",
                'Unsupported value: "banana": supported values: "Exact", "NotOlderThan", ""',
            ],
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            ['Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'],
        ),
        ({"sendInitialEvents": ""}, ["Forbidden: sendInitialEvents is forbidden for list"]),
        (
            {"watch": "true", "resourceVersionMatch": "Exact", "continue": "x"},
            [
                "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                'Unsupported value: "Exact": supported values: "NotOlderThan"',
                "Forbidden: resourceVersionMatch is forbidden when continue is provided",
            ],
        ),
        (
            {"watch": "true", "sendInitialEvents": "true"},
            ["Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"],
        ),
    ],
)
def test_every_option_that_goes_with_no_other_is_told(query: Query, parts: list[str]) -> None:
    answer = refused_external(query)
    assert answer.code == 422
    assert [cause["message"] for cause in answer.document["details"]["causes"]] == parts


def test_a_watch_that_is_well_asked_for_is_a_405_all_the_same() -> None:
    query = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    assert refused_external(query).code == 405


@pytest.mark.parametrize(
    ("query", "code", "part"),
    [
        ({"limit": "x", "timeoutSeconds": "y"}, 400, 'parsing "y"'),
        ({"limit": "x", "labelSelector": "$"}, 400, 'parsing "x"'),
        ({"labelSelector": "$", "fieldSelector": "foo"}, 400, "name part"),
        ({"fieldSelector": "foo", "resourceVersionMatch": "Exact"}, 400, "can't understand"),
        ({"fieldSelector": "foo=x", "resourceVersionMatch": "Exact"}, 422, "resourceVersionMatch"),
        ({"fieldSelector": "foo=x", "watch": "true"}, 400, "not a known field"),
        ({"watch": "true", "labelSelector": "$"}, 400, "name part"),
    ],
)
def test_of_several_faults_the_one_that_kubernetes_sees_first_is_told(query: Query, code: int, part: str) -> None:
    answer = refused_external(query)
    assert answer.code == code
    assert part in answer.document["message"]


@pytest.mark.parametrize(
    ("query", "selectors"),
    [
        pytest.param(
            {"labelSelector": "app=x", "metricLabelSelector": "verb=GET"}, ("app=x", "verb=GET"), id="cust-128"
        ),
        pytest.param({"metricLabelSelector": "a in (b,c)"}, ("", "a in (b,c)"), id="cust-129"),
        pytest.param({"metricLabelSelector": " "}, ("", ""), id="blank"),
    ],
)
def test_objects_and_their_series_are_selected_apart(query: Query, selectors: tuple[str, str]) -> None:
    assert tuple(map(str, object_selectors(query, "*"))) == selectors


@pytest.mark.parametrize("field", ["metadata.name=foo", "metadata.name==foo,metadata.namespace=ns"])
def test_a_field_selector_may_repeat_the_name_of_the_object(field: str) -> None:
    assert object_selectors({"fieldSelector": field}, "foo") == (EVERYTHING, EVERYTHING)


@pytest.mark.parametrize(
    "field", [pytest.param("metadata.name=x", id="cust-144"), "metadata.name!=x", "metadata.namespace=ns"]
)
def test_a_field_selector_may_not_name_another_object(field: str) -> None:
    fault = "fieldSelector metadata.name doesn't match requested name"
    assert told(refused_object({"fieldSelector": field})) == (400, fault)
    assert told(refused_object({"fieldSelector": field}, "*")) == (400, fault)


def test_case_72_a_bad_selector_of_series_is_the_callers_fault() -> None:
    code, message = told(refused_object({"metricLabelSelector": "$$"}))
    assert code == 400
    assert message.startswith('unable to parse requirement: <nil>: Invalid value: "$$"')
    assert told(refused_object({"metricLabelSelector": "a>1"})) == (
        400,
        '"gt" isn\'t supported in label selectors',
    )


@pytest.mark.parametrize(
    ("text", "waits_s"),
    [
        ("", None),
        pytest.param("1s", 1.0, id="case 34, ext-074"),
        ("1m", None),
        ("59s999ms", 59.999),
        ("1m30.5s", None),
        ("500ms", 0.5),
        ("-1s", None),
        ("0", None),
    ],
)
def test_a_deadline_is_what_the_caller_says_below_the_longest(text: str, waits_s: float | None) -> None:
    assert check_timeout({"timeout": text}) == waits_s


def test_case_34_ext_068_a_bad_deadline_is_a_400_unless_there_is_none() -> None:
    with pytest.raises(Refusal) as raised:
        check_timeout({"timeout": "x"})
    fault = 'invalid timeout specified in the request URL - time: invalid duration "x"'
    assert told(raised.value.answer) == (400, fault)
    assert check_timeout({"timeout": "x"}, watching=True) is None


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({}, ""),
        ({"fieldSelector": "metadata.name=x"}, "x"),
        ({"fieldSelector": "metadata.name!=x"}, ""),
        ({"fieldSelector": "metadata.name=x", "limit": "y"}, ""),
        ({"fieldSelector": "metadata.name=a/b"}, ""),
        ({"fieldSelector": "metadata.name=.."}, ""),
    ],
)
def test_a_name_that_a_query_selects_is_known_to_access_reviews(query: Query, name: str) -> None:
    assert selected_name(query) == name


texts = st.text(max_size=30) | st.text("ab=,!\\ metadata.name$0s", max_size=30)
names = st.sampled_from(("labelSelector", "fieldSelector", "metricLabelSelector", "limit", "watch", "timeout"))


@given(st.dictionaries(names, texts, max_size=3))
def test_any_query_is_understood_or_refused(query: dict[str, str]) -> None:
    assert code_of(lambda: external_selector(query)) in (200, 400, 405)
    assert code_of(lambda: object_selectors(query, "foo")) in (200, 400)
    assert code_of(lambda: check_timeout(query)) in (200, 400)


def code_of(ask: Callable[[], object]) -> int:
    try:
        ask()
    except Refusal as refusal:
        return refusal.answer.code
    return 200
