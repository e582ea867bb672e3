from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.selectors import Requirement, Selector, SelectorError, parse

LABELS = {"app": "flink", "tier": "3", "empty": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app", True),
        ("!app", False),
        ("nope", False),
        ("!nope", True),
        ("app=flink", True),
        ("app==flink", True),
        (" app = flink ", True),
        ("app\t=\nflink", True),
        ("app!=flink", False),
        ("nope!=x", True),
        ("app in (spark,flink)", True),
        ("app in (spark)", False),
        ("app notin (spark)", True),
        ("nope notin (spark)", True),
        ("tier>2", True),
        ("tier>3", False),
        ("tier<4", True),
        ("app>1", False),
        ("nope<4", False),
        ("app=", False),
        ("empty=", True),
        ("nope=", False),
        ("empty in ()", True),
        ("app in (flink,)", True),
        ("empty in (b,)", True),
        ("empty in (,b)", True),
        ("app=flink,tier=3", True),
        ("app=flink,tier=4", False),
        ("app in (a,flink),tier,!nope,empty notin (q)", True),
        ("in in (in,notin)", False),
        ("!in", True),
        ("notin notin (a)", True),
    ],
)
def test_a_selector_matches_as_kubernetes_does(text: str, expected: bool) -> None:
    assert parse(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("foo===bar", "unable to parse requirement: found '=', expected: identifier", id="ext-048"),
        pytest.param("foo=a b", "found 'b', expected: ',' or 'end of string'", id="ext-050"),
        pytest.param("foo in bar", "unable to parse requirement: found 'bar' expected: '('", id="ext-052"),
        pytest.param("a,", "found '', expected: identifier after ','", id="ext-057"),
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
        ("$$", '<nil>: Invalid value: "$$": name part must consist of'),
        ("-foo", '<nil>: Invalid value: "-foo": name part must consist of'),
        ("/a", "prefix part must be non-empty"),
        ("a/", "name part must be non-empty"),
        ("A.b/c", "prefix part a lowercase RFC 1123 subdomain"),
        ("a/b/c", "a qualified name must consist of"),
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("a=" + "b" * 64, "values[0][a]: Invalid value:"),
        ("a in (x,y/z)", 'values[1][a]: Invalid value: "y/z": a valid label must be'),
        ("a>x", "for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a>99999999999999999999", "the value must be an integer"),
        ("a=b\0c", "a valid label must be"),
    ],
)
def test_a_key_or_value_that_is_no_label_is_told(text: str, part: str) -> None:
    with pytest.raises(SelectorError) as raised:
        parse(text)
    assert part in str(raised.value)


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with suppress(SelectorError):
        assert parse(text).matches(LABELS) in (True, False)


words = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?", fullmatch=True)
requirements = st.one_of(
    st.builds(Requirement, words, st.sampled_from(("exists", "absent"))),
    st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(sorted(values))),
        words,
        st.sampled_from(("in", "notin")),
        st.sets(words, min_size=1, max_size=3),
    ),
    st.builds(
        lambda key, operator, n: Requirement(key, operator, (str(n),)), words, st.sampled_from("<>"), st.integers(0, 99)
    ),
)


@given(st.lists(requirements, max_size=4))
def test_what_a_selector_prints_is_the_selector(terms: list[Requirement]) -> None:
    selector = Selector(tuple(terms))
    assert parse(str(selector)) == selector


@given(requirements, st.dictionaries(words, words, max_size=4))
def test_in_and_notin_exclude_each_other(term: Requirement, labels: dict[str, str]) -> None:
    opposite = {"in": "notin", "notin": "in", "exists": "absent", "absent": "exists"}.get(term.operator)
    if opposite is not None:
        assert term.matches(labels) is not Requirement(term.key, opposite, term.values).matches(labels)


def test_the_values_a_key_may_have_are_known_for_the_index() -> None:
    assert parse("workload in (b,a),x").only_values("workload") == ("a", "b")
    assert parse("workload!=a").only_values("workload") is None
