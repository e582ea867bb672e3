"""Label selectors: the text of a `labelSelector` parameter -> a matcher."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from adapter.apiserver.cache import cache
from adapter.apiserver.status import Document

Labels = Mapping[str, str]

LONGEST = 16_384  # characters, far more than any HPA has
_WORD = r"[^\s=!(),<>]"
_TERM = re.compile(
    rf"\s*(?P<not>!\s*)?(?P<key>{_WORD}++)"
    rf"(?:\s*(?P<sign>==|!=|=|>|<)\s*(?P<value>{_WORD}*+)|\s+(?P<set>in|notin)\s*\((?P<values>[^()=!<>]*+)\))?"
    r"\s*(?P<end>,|$)",
    re.ASCII,
)
_OPERATORS = {"=": "in", "==": "in", "!=": "notin"}
_EXPRESSIONS = {"in": "In", "notin": "NotIn", "exists": "Exists", "absent": "DoesNotExist"}
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")
_PREFIX = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LONGEST_QUOTE = 100


class SelectorError(ValueError):
    """The selector does not parse."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term. operator: `in`, `notin`, `exists`, `absent`, `>` or `<`. values: sorted, unique."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether the labels satisfy the term. An absent key satisfies `notin` and `absent`."""
        value = labels.get(self.key)
        if self.operator in ("notin", "absent"):
            return value is None or (self.operator == "notin" and value not in self.values)
        if value is None:
            return False
        if self.operator in (">", "<"):
            return self._compares(value)
        return self.operator == "exists" or value in self.values

    def _compares(self, value: str) -> bool:
        if not _INTEGER.fullmatch(value):
            return False
        bound = int(self.values[0])
        return int(value) > bound if self.operator == ">" else int(value) < bound

    def __str__(self) -> str:
        if self.operator in ("exists", "absent"):
            return self.key if self.operator == "exists" else f"!{self.key}"
        if self.operator in (">", "<"):
            return f"{self.key}{self.operator}{self.values[0]}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'in' else '!='}{self.values[0]}"
        return f"{self.key} {self.operator} ({','.join(self.values)})"


@dataclass(frozen=True, slots=True)
class Selector:
    """Terms that must all hold; without terms everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether the labels satisfy every term."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def mentions(self, key: str) -> bool:
        """Whether a term has this key."""
        return any(requirement.key == key for requirement in self.requirements)

    def only_values(self, key: str) -> tuple[str, ...] | None:
        """The values that the first `in` term allows for the key; None without such a term."""
        return next((each.values for each in self.requirements if each.key == key and each.operator == "in"), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = Selector()


@cache(entries=4096, longest=256)
def parse(text: str) -> Selector:
    """Parse a selector in the grammar of Kubernetes; an empty text matches everything. Raises SelectorError."""
    if len(text) > LONGEST:
        raise SelectorError(f"a label selector must have at most {LONGEST} characters, got {len(text)}")
    return Selector(tuple(sorted(_requirements(text), key=lambda each: each.key))) if text.strip() else EVERYTHING


def label_selector(selector: Selector) -> Document | None:
    """A selector as a `LabelSelector`; None if it matches everything. Raises SelectorError for `>` and `<`."""
    equal = {each.key: each.values[0] for each in selector.requirements if _is_equality(each)}
    others = [_expression(each) for each in selector.requirements if not _is_equality(each)]
    parts = {"matchLabels": equal, "matchExpressions": others}
    return {name: part for name, part in parts.items() if part} or None


def _is_equality(requirement: Requirement) -> bool:
    return requirement.operator == "in" and len(requirement.values) == 1


def _expression(requirement: Requirement) -> Document:
    if requirement.operator not in _EXPRESSIONS:
        raise SelectorError(f"{requirement}: this selector cannot have {requirement.operator}")
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": _EXPRESSIONS[requirement.operator], **values}


def _requirements(text: str) -> Iterator[Requirement]:
    start, more = 0, True
    while more:
        found = _TERM.match(text, start)
        if found is None:
            raise SelectorError(f"expected a term such as app=web or app in (web,api), got {_quote(text[start:])}")
        yield _requirement(found)
        start, more = found.end(), found["end"] == ","


def _requirement(found: re.Match[str]) -> Requirement:
    key, sign, members = found["key"], found["sign"], found["set"]
    _check_key(key)
    if not (sign or members):
        return Requirement(key, "absent" if found["not"] else "exists")
    if found["not"]:
        raise SelectorError(f"expected !{key} alone, got {_quote(found[0])}")
    given = found["values"].split(",") if members else [found["value"]]
    values = tuple(sorted({value.strip() for value in given}))
    for value in values:
        _check_value(key, sign, value)
    return Requirement(key, members or _OPERATORS.get(sign, sign), values)


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
        raise SelectorError(f"expected a label key such as app or example.com/app, got {_quote(key)}")


def _check_value(key: str, sign: str | None, value: str) -> None:
    if sign in (">", "<") and not _INTEGER.fullmatch(value):
        raise SelectorError(f"expected an integer after {key}{sign}, got {_quote(value)}")
    if value and not _NAME.fullmatch(value):
        raise SelectorError(
            f"expected at most 63 letters, digits, '-', '_' or '.' as the value of {key}, got {_quote(value)}"
        )


def _quote(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...")
