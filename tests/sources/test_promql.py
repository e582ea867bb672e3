import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sources import promql


@pytest.mark.parametrize(
    "query",
    [
        "up",
        'sum by (x) (rate(a{b="c",}[60s])) / on () group_left () d',
        'label_replace(a, "q", "$1", "__name__", "(.*)")',
        "1 + 2",
        'a{b="é"} offset 5m',
    ],
)
def test_valid_queries_have_no_fault(query: str) -> None:
    assert promql.fault(query) is None


@pytest.mark.parametrize(
    ("query", "place", "cause"),
    [
        pytest.param("sum(rate(a[1m)) by (x)", 14, "inside brackets: ')'", id="a wrong bracket"),
        pytest.param("sum by (x) (a))", 15, "unexpected right parenthesis", id="a bracket too many"),
        pytest.param("sum by (x (a)", 8, "unclosed left parenthesis", id="a bracket that nothing closes"),
        pytest.param("sum(a) + rate((b[1m])", 14, "unclosed left parenthesis", id="the outer one of two brackets"),
        pytest.param('a{b="c} + d', 5, "unterminated quoted string", id="a quote that nothing closes"),
        pytest.param('a{b="c",d="e} + f', 11, "unterminated quoted string", id="the second string is open"),
        pytest.param("a{b=c}", 5, "expected string", id="a value without quotes"),
        pytest.param('a{b=="c"}', 5, "unexpected '='", id="two equal signs in a matcher"),
        pytest.param('a{,b="c"}', 3, "unexpected text", id="a comma without a matcher before it"),
        pytest.param('a{b="c"} b', 10, "unexpected text", id="two operands without an operator"),
        pytest.param("1 + * 2", 5, "unexpected text", id="two operators"),
        pytest.param("sum(a) by x", 11, "unexpected text", id="labels without brackets"),
        pytest.param("sum by (x) rate(a[1m])", 12, "unexpected text", id="an aggregation without brackets"),
        pytest.param("sum by (x) (rate(a[1m]) / b c)", 29, "unexpected text", id="deep inside"),
        pytest.param("a[5q]", 3, "bad number or duration syntax", id="an unknown unit of time"),
        pytest.param("b + rate(a)", 5, "expected type matrix", id="a rate of no range"),
        pytest.param("sum(foo(a))", 5, "unknown function", id="an unknown function"),
        pytest.param('a{b=~"("}', 7, "illegal regex", id="a wrong regular expression"),
        pytest.param("a{$match}", 3, "'$'", id="an unfilled placeholder"),
    ],
)
def test_a_fault_states_its_position_and_cause(query: str, place: int, cause: str) -> None:
    fault = promql.fault(query)
    assert fault is not None
    assert fault.startswith(f"at character {place}, ")
    assert cause in fault


@pytest.mark.parametrize("query", ["", "a + ", "a offset", "rate(a[1m:])["])
def test_a_query_that_ends_too_early_is_wrong_at_its_end(query: str) -> None:
    assert str(promql.fault(query)).startswith("at its end: ")


@given(st.text(alphabet="ab{}[]()=~\"'1m,+*$ \nby", max_size=30))
def test_any_text_is_valid_or_has_a_fault(query: str) -> None:
    fault = promql.fault(query)
    assert fault is None or fault.startswith("at ")


@pytest.mark.parametrize(
    ("query", "dropped"),
    [
        ("sum(a)", True),
        ("(sum by (y) (a))", True),
        ("sum without (x) (a)", True),
        ("sum by (x) (a)", False),
        ("sum without (y) (a)", False),
        ("topk(3, a)", False),
        ("limitk(3, a)", False),
        ('count_values("x", a)', False),
        ('count_values("y", a)', True),
        ("a", False),
        ("sum by (x) (a) / sum by (x) (b)", False),
    ],
)
def test_an_aggregation_that_removes_the_label_is_detected(query: str, dropped: bool) -> None:
    assert promql.drops(query, "x") is dropped


def test_the_fault_of_a_long_query_is_located() -> None:
    query = " + ".join(["a"] * 500) + " + rte(b)"
    assert promql.fault(query) == "at character 2001, 'rte(b)': unknown function with name 'rte'"


def test_one_value_is_matched_by_equality_and_several_by_an_alternation() -> None:
    assert promql.one_of("g", ["a.b", "a.b"]) == 'g="a.b"'
    assert promql.one_of("g", ["a.b", "c|d"]) == r'g=~"a\\.b|c\\|d"'


@given(st.lists(st.text(min_size=1, max_size=20), min_size=2, max_size=5, unique=True), st.text(max_size=20))
def test_an_alternation_matches_its_values_and_nothing_else(values: list[str], other: str) -> None:
    escaped = re.fullmatch(r'g=~"(.*)"', promql.one_of("g", values))
    assert escaped is not None
    pattern = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]) if m[1] in 'n\\"' else m[0], escaped[1])
    for value in values:
        if value.isprintable():
            assert re.fullmatch(pattern, value)
    if other not in values and other.isprintable():
        assert not re.fullmatch(pattern, other)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_matchers_of_any_values_are_valid_promql(values: list[str]) -> None:
    assert promql.fault(f"a{{{promql.one_of('g', values)}}}") is None


@pytest.mark.parametrize(
    ("query", "is_zero"),
    [
        ("sum(a)", False),
        ("sum(a) or vector(0)", True),
        ("sum by (x) (a) OR on (x) (vector(0.0))", True),
        ("sum(a or vector(0))", True),
        ("sum(a) or absent(a) * 0", True),
        ("sum(a) or 1 - absent_over_time(a[5m])", True),
        ("(sum(rate(a[1m])) or vector(0)) / 60", True),
        ("clamp_min(sum(a) or vector(0), 0)", True),
        ('label_replace(vector(0), "x", "$1", "y", "(.*)")', True),
        ("max_over_time((sum(a) or vector(0))[5m:1m])", True),
        ("-(sum(a) or vector(0)) unless b", True),
        ("sum(a) + (sum(b) or vector(0))", False),
        ("(sum(a) or vector(0)) and on () b", False),
        ("(sum(a) or vector(0)) > 0", False),
        ("histogram_quantile(0, a)", False),
        ("sum(a) or vector(12)", False),
        ("sum(a) or time() * 0", False),
        ('sum(a{b="or vector(0)"})', False),
        ("sum(a) or or vector(0)", False),
    ],
)
def test_a_query_may_be_zero_without_its_series(query: str, is_zero: bool) -> None:
    assert promql.is_zero_without_series(query) == is_zero


def test_a_query_of_thousands_of_operands_is_a_vector_that_is_not_judged():
    query = " + ".join(["sum(a)"] * 2000)
    assert promql.result_kind(query) == "vector"
    assert not promql.is_zero_without_series(query)
