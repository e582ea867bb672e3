"""Names, numbers and notes -> aligned lines of plain text."""

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import wrap

COLUMNS = 100
_WIDEST_NAME, _WIDEST_VALUE = 28, 32
_MARK = "> "


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number with its name and a note."""

    name: str
    value: str = ""
    note: str = ""
    marked: bool = False  # the line begins with ">"


@dataclass(frozen=True, slots=True)
class TextSection:
    """Rows under one title. A section without rows is left out."""

    title: str
    rows: tuple[Row, ...]


def render(sentence: str, sections: Iterable[TextSection]) -> list[str]:
    """The sentence, then every section, at most COLUMNS wide."""
    found = _wrapped(sentence)
    for section in sections:
        if section.rows:
            found += ["", section.title, *_lines(section.rows)]
    return found


def _lines(rows: tuple[Row, ...]) -> Iterable[str]:
    name = min(max(len(row.name) for row in rows), _WIDEST_NAME)
    value = min(max(len(row.value) for row in rows), _WIDEST_VALUE)
    for row in rows:
        mark = _MARK if row.marked else " " * len(_MARK)
        head = f"{mark}{row.name:<{name}}  {row.value:<{value}}  "
        text = (head + row.note).rstrip()
        yield from _wrapped(text, " " * (len(head) if row.note else name + 4))


def _wrapped(text: str, indent: str = "") -> list[str]:
    """The text in lines. A hyphen ends no line, because it may be a part of a name that a user copies."""
    return wrap(text, COLUMNS, subsequent_indent=indent, break_on_hyphens=False)
