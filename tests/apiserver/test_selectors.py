"""Label selectors: what matches, and what does not parse (cases 10 to 28)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.apiserver.selectors import EVERYTHING, LONGEST, Requirement, Selector, SelectorError, label_selector, parse

LABELS = {"app": "web", "tier": "1", "example.com/zone": "a", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("  ", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("other!=web", True),
        ("app in (web,api)", True),
        ("app in ( api , web )", True),
        ("app in(web)", True),
        ("app notin (web)", False),
        ("other notin (web)", True),
        ("app", True),
        ("other", False),
        ("!other", True),
        ("! app", False),
        ("empty=", True),
        ("empty in ()", True),
        ("app=", False),
        ("tier>0", True),
        ("tier > 1", False),
        ("tier<2", True),
        ("app>0", False),
        ("other>0", False),
        ("example.com/zone=a", True),
        ("app=web,tier=1", True),
        (" app = web , tier != 1 ", False),
        ("in=a", False),
        ("notin", False),
    ],
)
def test_a_selector_matches_labels(text: str, matches: bool) -> None:
    assert parse(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    "text",
    [
        "a===b",
        "$$",
        "a b",
        "-foo",
        "foo-",
        "a in bar",
        "a in (b",
        "a in b)",
        "ain (b)",
        "a=b/c",
        "a=b c",
        f"a={'b' * 64}",
        f"{'a' * 64}",
        ">1",
        "a>x",
        "a>",
        "a=b,",
        ",a=b",
        "a=b,,c=d",
        "a=b;c=d",
        "!a=b",
        "!",
        "/a",
        "a/",
        "a/b/c",
        "A/b",
        f"{'a' * 254}/b",
        "é",
        "a=é",
        "a\0",
        "a in (b=c)",
        "a" * (LONGEST + 1),
    ],
)
def test_a_malformed_selector_is_rejected_with_a_short_message(text: str) -> None:
    with pytest.raises(SelectorError) as raised:
        parse(text)
    assert len(str(raised.value)) < 400


@given(st.text(max_size=60) | st.text("ab=!,()<> in", max_size=40))
def test_any_text_parses_or_is_rejected(text: str) -> None:
    try:
        selector = parse(text)
    except SelectorError:
        return
    assert parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("", None),
        ("b=1,a=2", {"matchLabels": {"a": "2", "b": "1"}}),
        (
            "a in (y,x),b!=1,c,!d",
            {
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["x", "y"]},
                    {"key": "b", "operator": "NotIn", "values": ["1"]},
                    {"key": "c", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"},
                ]
            },
        ),
    ],
)
def test_a_selector_as_a_document(text: str, document: dict[str, object] | None) -> None:
    assert label_selector(parse(text)) == document


@pytest.mark.parametrize("text", ["a>1", "a<1"])
def test_a_comparison_has_no_document(text: str) -> None:
    with pytest.raises(SelectorError, match="cannot have"):
        label_selector(parse(text))


def test_a_selector_knows_its_keys() -> None:
    selector = parse("workload in (b,a),stage")
    assert (selector.mentions("stage"), selector.mentions("team")) == (True, False)
    assert (selector.only_values("workload"), selector.only_values("stage")) == (("a", "b"), None)
    assert selector == Selector((Requirement("stage", "exists"), Requirement("workload", "in", ("a", "b"))))
    assert parse("") is EVERYTHING
