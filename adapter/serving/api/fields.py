"""fieldSelector text -> terms, with the grammar and the errors of Kubernetes (apimachinery, fields)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adapter.serving.api.quoting import quoted

# The fields every object has; metrics have no others.
_KNOWN = ("metadata.name", "metadata.namespace")

_TERMS = re.compile(r"((?:[^\\,]|\\.?)*)(?:,|$)", re.DOTALL)
_TERM = re.compile(r"(.*?)(!=|==?)(.*)", re.DOTALL)
_ESCAPES = re.compile(r"\\([\\,=])|(\\.?)|([,=])", re.DOTALL)


class FieldSelectorError(ValueError):
    """The selector does not parse, or names a field that is not known; the message is the one Kubernetes gives."""


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term: the field is, or is not, the value."""

    field: str
    is_equal: bool
    value: str


def parse(text: str) -> Sequence[FieldTerm]:
    """The terms of a `fieldSelector` parameter, in the order of their text. Raises FieldSelectorError."""
    return [_term(part, text) for part in sorted(_split(text)) if part]


def check_known(terms: Sequence[FieldTerm]) -> None:
    """Raises FieldSelectorError for a field that not every object has."""
    for term in terms:
        if term.field not in _KNOWN:
            raise FieldSelectorError(
                f"{quoted(term.field)} is not a known field selector: only {', '.join(map(quoted, _KNOWN))}"
            )


def exact_name(terms: Sequence[FieldTerm]) -> str | None:
    """The name an object must have, None when the terms do not say."""
    return next((term.value for term in terms if term.field == "metadata.name" and term.is_equal), None)


def _split(text: str) -> Iterator[str]:
    return (found[1] for found in _TERMS.finditer(text))


def _term(part: str, text: str) -> FieldTerm:
    found = _TERM.fullmatch(part)
    if found is None:
        raise FieldSelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
    field, operator, value = found.groups()
    return FieldTerm(field, operator != "!=", _ESCAPES.sub(_unescaped, value))


def _unescaped(found: re.Match[str]) -> str:
    if found[2]:
        raise FieldSelectorError(f"invalid field selector: invalid escape sequence: {found[2]}")
    if found[3]:
        raise FieldSelectorError(f"invalid field selector: unescaped character in value: {ord(found[3])}")
    return found[1]
