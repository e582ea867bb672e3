"""labelSelector text -> a matcher, with the grammar and the errors of Kubernetes (apimachinery, labels)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from adapter.serving.api.quoting import quoted
from adapter.serving.api.status import Document

Labels = Mapping[str, str]

# Blanks match nothing and are passed over. A NUL ends a lexeme, and where one would begin the whole text.
_TOKEN = re.compile(r"(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>\0]+)\0?")
_AFTER_THE_END = re.compile(r"(?:^|(?<=[ \t\r\n\0]))\0.*", re.DOTALL)
_SPECIAL = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))
_OPERATORS = frozenset(("in", "notin", "=", "==", "!=", ">", "<"))
_MEANINGS = {"=": "in", "==": "in", "!=": "notin"}
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MOST_FAULTS = 10  # are told of one term, each is a long sentence
MOST_LEXEMES = 2_500  # words and signs, for a list of 1 000 names; more would keep everybody else waiting
_END = ""


class SelectorError(ValueError):
    """The selector does not parse; the message is the one Kubernetes gives."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term. operator: `in`, `notin`, `exists`, `absent`, `>` or `<`; values: sorted, unique.

    sign: `=`, `==` or `!=` where an `in` or a `notin` was written so; terms that mean the same are equal.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()
    sign: str = field(default="", compare=False)

    def matches(self, labels: Labels) -> bool:
        """Whether the labels satisfy the term. `notin` and `absent` are also satisfied when the key is absent."""
        value = labels.get(self.key)
        if self.operator in ("notin", "absent"):
            return value is None or (self.operator == "notin" and value not in self.values)
        if value is None:
            return False
        if self.operator in (">", "<"):
            return self._compares(value)
        return self.operator == "exists" or value in self.values

    def _compares(self, value: str) -> bool:
        if not _is_int64(value):
            return False
        bound = int(self.values[0])
        return int(value) > bound if self.operator == ">" else int(value) < bound

    def __str__(self) -> str:
        if self.operator in ("exists", "absent"):
            return self.key if self.operator == "exists" else f"!{self.key}"
        if self.operator in (">", "<") or self.sign:
            return f"{self.key}{self.sign or self.operator}{self.values[0]}"
        return f"{self.key} {self.operator} ({','.join(self.values)})"


@dataclass(frozen=True, slots=True)
class Selector:
    """Terms that must all hold; without a term everything matches."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether the labels satisfy every term."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def mentions(self, key: str) -> bool:
        """Whether a term speaks of the key."""
        return key in [requirement.key for requirement in self.requirements]

    def only_values(self, key: str) -> tuple[str, ...] | None:
        """The values the key must have one of, or None when no term lists them."""
        listed = [r.values for r in self.requirements if r.key == key and r.operator == "in"]
        return listed[0] if listed else None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = Selector()


def parse(text: str) -> Selector:
    """The selector of a `labelSelector` parameter; empty text matches everything. Raises SelectorError."""
    return Selector(tuple(sorted(_Parser(text).requirements(), key=lambda requirement: requirement.key)))


def label_selector(selector: Selector) -> Document | None:
    """A selector as a `LabelSelector` document, None when it matches everything.

    Raises SelectorError for `>` and `<`, which that form does not have, and for `!=`, which Go does not put into it.
    """
    equal = {term.key: term.values[0] for term in selector.requirements if term.sign in _EQUAL}
    others = [_expression(term) for term in selector.requirements if term.sign not in _EQUAL]
    parts = {"matchLabels": equal, "matchExpressions": others}
    return {name: part for name, part in parts.items() if part} or None


_EQUAL = ("=", "==")
_EXPRESSIONS = {"in": "In", "notin": "NotIn", "exists": "Exists", "absent": "DoesNotExist"}


def _expression(term: Requirement) -> Document:
    if term.sign == "!=":
        raise SelectorError('"!=" is not a valid label selector operator')
    if term.operator not in _EXPRESSIONS:
        raise SelectorError(f'"{"gt" if term.operator == ">" else "lt"}" isn\'t supported in label selectors')
    values = {"values": list(term.values)} if term.values else {}
    return {"key": term.key, "operator": _EXPRESSIONS[term.operator]} | values


class _Parser:
    """A cursor over the lexemes, the last of which is _END."""

    def __init__(self, text: str) -> None:
        found: list[str] = _TOKEN.findall(_AFTER_THE_END.sub("", text))
        if len(found) > MOST_LEXEMES:
            raise SelectorError(f"expected at most {MOST_LEXEMES} words and signs, got {len(found)}")
        self._lexemes = [*found, _END]
        self._at = 0

    def requirements(self) -> Iterator[Requirement]:
        while (lexeme := self._peek()) != _END:
            if lexeme in _SPECIAL and lexeme != "!":
                raise SelectorError(f"found '{lexeme}', expected: !, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            self._separator()

    def _separator(self) -> None:
        lexeme = self._take()
        if lexeme == _END:
            self._at -= 1
        elif lexeme != ",":
            raise SelectorError(f"found '{lexeme}', expected: ',' or 'end of string'")
        elif self._peek() != "!" and not _is_word(self._peek()):
            raise SelectorError(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!" and self._take() == "!"
        key = self._word()
        _check_key(key)
        if absent or self._peek() in (_END, ","):
            return Requirement(key, "absent" if absent else "exists")
        operator = self._operator()
        values = self._list() if operator in ("in", "notin") else (self._value(),)
        return _checked(key, operator, tuple(sorted(set(values))))

    def _operator(self) -> str:
        lexeme = self._take()
        if lexeme not in _OPERATORS:
            raise SelectorError(f"found '{lexeme}', expected: in, notin, =, ==, !=, gt, lt")
        return lexeme

    def _value(self) -> str:
        return "" if self._peek() in (_END, ",") else self._word()

    def _list(self) -> tuple[str, ...]:
        """`(a,b)`; an empty place, also in `()`, is the empty value."""
        lexeme = self._take()
        if lexeme != "(":
            raise SelectorError(f"found '{lexeme}' expected: '('")
        values = []
        while True:
            values.append(self._take() if _is_word(self._peek()) else "")
            lexeme = self._take()
            if lexeme == ")":
                return tuple(values)
            if lexeme != ",":
                raise SelectorError(f"found '{lexeme}', expected: {_expected_in_list(values)}")

    def _word(self) -> str:
        lexeme = self._take()
        if not _is_word(lexeme):
            raise SelectorError(f"found '{lexeme}', expected: identifier")
        return lexeme

    def _peek(self) -> str:
        return self._lexemes[self._at]

    def _take(self) -> str:
        self._at = min(self._at + 1, len(self._lexemes))
        return self._lexemes[self._at - 1]


def _expected_in_list(values: list[str]) -> str:
    if values[-1]:
        return "',' or ')'"
    return "',', ')' or identifier" if len(values) == 1 else "',', or identifier"


def _is_word(lexeme: str) -> bool:
    return lexeme != _END and lexeme not in _SPECIAL


def _is_int64(text: str) -> bool:
    return len(text) <= 63 and _INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    faults = []
    for index, value in enumerate(values):
        if operator in (">", "<") and not _is_int64(value):
            faults.append(_invalid(f"values[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer"))
        faults += [_invalid(f"values[{index}][{key}]", value, fault) for fault in _value_faults(value)]
    if faults:
        raise SelectorError(faults[0] if len(faults) == 1 else f"[{', '.join(faults[:_MOST_FAULTS])}]")
    sign = operator if operator in _MEANINGS else ""
    return Requirement(key, _MEANINGS.get(operator, operator), values, sign)


def _invalid(path: str, value: str, fault: str) -> str:
    return f"{path}: Invalid value: {quoted(value)}: {fault}"


def _value_faults(value: str) -> list[str]:
    faults = ["must be no more than 63 bytes"] if len(value.encode()) > 63 else []
    if value and not _NAME.fullmatch(value):
        faults.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )
    return ["; ".join(faults)] if faults else []


_QUALIFIED = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        faults = [
            f"a valid label key {_QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    else:
        faults = [*(_prefix_faults(prefix) if slash else []), *_name_faults(name)]
    if faults:
        raise SelectorError(_invalid("<nil>", key, "; ".join(faults)))


def _prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    faults = ["prefix part must be no more than 253 bytes"] if len(prefix.encode()) > 253 else []
    if not _SUBDOMAIN.fullmatch(prefix):
        faults.append(
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
            "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
            r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    return faults


def _name_faults(name: str) -> list[str]:
    faults = [] if name else ["name part must be non-empty"]
    if len(name.encode()) > 63:
        faults.append("name part must be no more than 63 bytes")
    if not _NAME.fullmatch(name):
        faults.append(f"name part {_QUALIFIED}")
    return faults
