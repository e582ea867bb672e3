"""Field selectors; the texts are of a Go server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api.fields import FieldSelectorError, FieldTerm, check_known, exact_name, parse


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        (",", []),
        ("metadata.name=x", [FieldTerm("metadata.name", True, "x")]),
        ("metadata.name==x,", [FieldTerm("metadata.name", True, "x")]),
        ("metadata.name!= x", [FieldTerm("metadata.name", False, " x")]),
        (r"b=\\\,\=,a=1", [FieldTerm("a", True, "1"), FieldTerm("b", True, r"\,=")]),
    ],
)
def test_a_field_selector_is_its_terms_sorted(text: str, terms: list[FieldTerm]) -> None:
    assert list(parse(text)) == terms


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a,b=c", "invalid selector: 'a,b=c'; can't understand 'a'"),
        (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_a_wrong_field_selector_is_told_in_kubernetes_words(text: str, fault: str) -> None:
    with pytest.raises(FieldSelectorError) as raised:
        parse(text)
    assert str(raised.value) == fault


def test_a_field_that_is_not_known_is_told() -> None:
    check_known(parse("metadata.name=x,metadata.namespace!=y"))
    with pytest.raises(FieldSelectorError, match='"a" is not a known field selector: only'):
        check_known(parse("b=1,a=1"))


def test_the_name_that_is_asked_for_is_the_first_that_must_be() -> None:
    assert exact_name(parse("metadata.name!=a,metadata.name=c,metadata.name=b")) == "b"
    assert exact_name(parse("metadata.namespace=x")) is None


@given(st.dictionaries(st.from_regex(r"[a-z.]{1,5}", fullmatch=True), st.text(max_size=5), max_size=3))
def test_every_value_can_be_written(values: dict[str, str]) -> None:
    escaped = str.maketrans({"\\": r"\\", ",": r"\,", "=": r"\="})
    text = ",".join(f"{field}={value.translate(escaped)}" for field, value in values.items())
    assert {term.field: term.value for term in parse(text)} == values
