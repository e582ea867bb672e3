"""Label selectors: cases 10-28 as far as the text alone decides them."""

import time
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api.selectors import (
    EVERYTHING,
    MOST_LEXEMES,
    Requirement,
    Selector,
    SelectorError,
    label_selector,
    parse,
)
from adapter.serving.api.status import Document

LABELS = {"app": "flink", "tier": "3", "empty": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", True, id="case 20, ext-045"),
        pytest.param("app", True, id="case 15, ext-041"),
        pytest.param("!app", False, id="case 16, ext-042"),
        ("nope", False),
        ("!nope", True),
        pytest.param("app=flink", True, id="case 10, ext-036"),
        pytest.param("app==flink", True, id="case 11, ext-037"),
        pytest.param(" app = flink ", True, id="case 19, ext-046"),
        ("app\t=\nflink", True),
        pytest.param("app!=flink", False, id="case 12, ext-038"),
        ("nope!=x", True),
        pytest.param("app in (spark,flink)", True, id="case 13, ext-039"),
        ("app in (spark)", False),
        pytest.param("app notin (spark)", True, id="case 14, ext-040"),
        ("nope notin (spark)", True),
        ("tier>2", True),
        ("tier>3", False),
        ("tier<4", True),
        pytest.param("app>1", False, id="case 17, ext-043"),
        ("nope<4", False),
        pytest.param("app=", False, id="case 18, ext-047"),
        ("empty=", True),
        ("nope=", False),
        ("empty in ()", True),
        ("app in (flink,)", True),
        ("empty in (b,)", True),
        ("empty in (,b)", True),
        pytest.param("app=flink,tier=3", True, id="ext-044"),
        ("app=flink,tier=4", False),
        ("app in (a,flink),tier,!nope,empty notin (q)", True),
        ("in in (in,notin)", False),
        ("!in", True),
        ("notin notin (a)", True),
        ("app\0=flink\0", True),
        ("app=flink \0,nope", True),
    ],
)
def test_a_selector_matches_as_kubernetes_does(text: str, expected: bool) -> None:
    assert parse(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(
            "foo===bar", "unable to parse requirement: found '=', expected: identifier", id="case 21, ext-048"
        ),
        pytest.param("foo=a b", "found 'b', expected: ',' or 'end of string'", id="case 23, ext-050"),
        pytest.param("foo in bar", "unable to parse requirement: found 'bar' expected: '('", id="case 25, ext-052"),
        pytest.param("a,", "found '', expected: identifier after ','", id="case 28, ext-057"),
        pytest.param(
            "a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt", id="no op"
        ),
        pytest.param("=a", "found '=', expected: !, identifier, or 'end of string'", id="no key"),
        pytest.param("!", "unable to parse requirement: found '', expected: identifier", id="not what"),
        pytest.param("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier", id="open"),
        pytest.param("a in (b", "unable to parse requirement: found '', expected: ',' or ')'", id="open after a value"),
        pytest.param("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'", id="no comma"),
        pytest.param("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier", id="open list"),
        pytest.param("a=b)", "found ')', expected: ',' or 'end of string'", id="closed twice"),
        pytest.param("a,,b", "found ',', expected: identifier after ','", id="two commas"),
    ],
)
def test_a_wrong_selector_is_told_in_kubernetes_words(text: str, fault: str) -> None:
    with pytest.raises(SelectorError) as raised:
        parse(text)
    assert str(raised.value) == fault


@pytest.mark.parametrize(
    ("text", "part"),
    [
        pytest.param("$$", '<nil>: Invalid value: "$$": name part must consist of', id="case 22, ext-049"),
        pytest.param("-foo", '<nil>: Invalid value: "-foo": name part must consist of', id="case 24, ext-051"),
        pytest.param("a=x/y", 'values[0][a]: Invalid value: "x/y": a valid label must be', id="case 26, ext-053"),
        pytest.param("a=" + "b" * 64, "must be no more than 63 bytes", id="case 27, ext-054"),
        pytest.param("a>x", "for 'Gt', 'Lt' operators, the value must be an integer", id="case 28, ext-056"),
        ("/a", "prefix part must be non-empty"),
        ("a/", "name part must be non-empty; name part must consist of"),
        ("A.b/c", "prefix part a lowercase RFC 1123 subdomain"),
        ("a/b/c", "a valid label key must consist of"),
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("a in (x,y/z)", 'values[1][a]: Invalid value: "y/z": a valid label must be'),
        ("a>99999999999999999999", "the value must be an integer"),
        ("a=b\u00a0c", r'Invalid value: "b\u00a0c": a valid label must be'),
    ],
)
def test_a_key_or_value_that_is_no_label_is_told(text: str, part: str) -> None:
    with pytest.raises(SelectorError) as raised:
        parse(text)
    assert part in str(raised.value)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        pytest.param("", None, id="cust-126: none"),
        pytest.param("verb=GET", {"matchLabels": {"verb": "GET"}}, id="cust-128"),
        pytest.param("b==2,a=1", {"matchLabels": {"a": "1", "b": "2"}}, id="sorted"),
        pytest.param(
            "a in (c,b,b)",
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]},
            id="cust-129, cust-148",
        ),
        pytest.param(
            "a=b,!c,d,e notin (z)",
            {
                "matchLabels": {"a": "b"},
                "matchExpressions": [
                    {"key": "c", "operator": "DoesNotExist"},
                    {"key": "d", "operator": "Exists"},
                    {"key": "e", "operator": "NotIn", "values": ["z"]},
                ],
            },
            id="all",
        ),
        pytest.param(
            "a in (b)", {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, id="one of one"
        ),
    ],
)
def test_a_selector_is_written_as_a_document(text: str, document: Document | None) -> None:
    assert label_selector(parse(text)) == document


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a>1", '"gt" isn\'t supported in label selectors'),
        ("a=b,c<1", '"lt" isn\'t supported in label selectors'),
        ("a!=b", '"!=" is not a valid label selector operator'),
        ("a!=", '"!=" is not a valid label selector operator'),
    ],
)
def test_what_has_no_form_as_a_document_is_told_in_go_s_words(text: str, fault: str) -> None:
    with pytest.raises(SelectorError, match=f"^{fault}$"):
        label_selector(parse(text))


@given(st.text(max_size=60) | st.text("ab=!<>(),in \t\0é$/", max_size=40))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with suppress(SelectorError):
        assert parse(text).matches(LABELS) in (True, False)


words = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?", fullmatch=True)
listed = st.sets(words, min_size=1, max_size=3).map(lambda values: tuple(sorted(values)))
singles = words.map(lambda value: (value,))
requirements = st.one_of(
    st.builds(Requirement, words, st.sampled_from(("exists", "absent"))),
    st.builds(Requirement, words, st.sampled_from(("in", "notin")), listed),
    st.builds(Requirement, words, st.just("in"), singles, st.sampled_from(("=", "=="))),
    st.builds(Requirement, words, st.just("notin"), singles, st.just("!=")),
    st.builds(Requirement, words, st.sampled_from("<>"), st.integers(0, 99).map(lambda number: (str(number),))),
)


@given(st.lists(requirements, max_size=4))
def test_what_a_selector_prints_is_the_selector(terms: list[Requirement]) -> None:
    selector = Selector(tuple(sorted(terms, key=lambda term: term.key)))
    assert parse(str(selector)) == selector
    assert str(parse(str(selector))) == str(selector)


def holds(term: Requirement, labels: Mapping[str, str]) -> bool:
    """Kubernetes' manual, read line by line."""
    value = labels.get(term.key)
    match term.operator:
        case "exists":
            return value is not None
        case "absent":
            return value is None
        case "in":
            return value in term.values
        case "notin":
            return value not in term.values
    bound = int(term.values[0])
    number = int(value) if value is not None and value.isdecimal() else bound
    return number > bound if term.operator == ">" else number < bound


@given(
    st.lists(requirements, max_size=3),
    st.dictionaries(words, words | st.integers(0, 99).map(str), max_size=4),
    st.data(),
)
def test_a_selector_is_all_of_its_terms(terms: list[Requirement], labels: dict[str, str], data: st.DataObject) -> None:
    for term in terms:  # Or a random key would hardly ever be there.
        if data.draw(st.booleans()):
            labels[term.key] = data.draw(st.sampled_from((*term.values, "other", "50")))
    assert Selector(tuple(terms)).matches(labels) is all(holds(term, labels) for term in terms)


def test_a_selector_that_is_empty_is_everything() -> None:
    assert parse(" \t") == EVERYTHING


def test_the_values_a_key_may_have_are_known_for_the_index() -> None:
    assert parse("workload in (b,a),x").only_values("workload") == ("a", "b")
    assert parse("workload=a").only_values("workload") == ("a",)
    assert parse("workload!=a").only_values("workload") is None


@pytest.mark.parametrize(
    "part", ["a.", "-", "a", "(", "a in (", "a,", "!", "\0", "a/", " ", "é", "a=$,", "a,!b,c in (d,e),f>1,"]
)
@pytest.mark.parametrize("frame", ["{}", "a in ({})", "a in ($,{})", "{}/a", "a={}", "{}$"])
def test_the_longest_selector_takes_no_longer_than_its_length_says(part: str, frame: str) -> None:
    text = frame.format(part * (16_384 // len(part)))
    began_s = time.perf_counter()
    with suppress(SelectorError):
        parse(text)
    assert time.perf_counter() - began_s < 0.5  # quadratic takes minutes


def test_a_selector_of_a_thousand_names_is_read_and_one_of_very_many_words_is_refused() -> None:
    names = [f"job-{number}" for number in range(1000)]
    assert parse(f"workload in ({','.join(names)})").only_values("workload") == tuple(sorted(names))
    with pytest.raises(SelectorError, match=f"expected at most {MOST_LEXEMES} words and signs, got 8191"):
        parse(",".join("a" * 4096))


def test_a_term_with_a_thousand_faults_tells_of_ten() -> None:
    with pytest.raises(SelectorError) as raised:
        parse(f"a in ({','.join(f'${number}' for number in range(1000))})")
    assert str(raised.value).count("Invalid value") == 10
