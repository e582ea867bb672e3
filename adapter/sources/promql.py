"""Validate PromQL, analyse the labels of its result, and build matchers. The only module that uses promql_parser."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import nan

import promql_parser

_META = re.compile(r"[\\.+*?()|\[\]{}^$]")  # as Go's regexp.QuoteMeta
_TOKEN = re.compile(r"""[A-Za-z_:][\w:]*|\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|=~|!~|[=!<>]=|\S""")
_OPEN, _CLOSED, _QUOTES = "([{", ")]}", "\"'`"
_SELECTIONS = ("topk", "bottomk", "limitk", "limit_ratio")  # of series, with their labels
_PER_WINDOW = ("rate", "irate", "increase")  # functions that take the fall of a counter for its reset
_GROWING_WITH_SERIES = ("sum", "avg", "count")  # aggregates that may fall when a series ends
_VAGUE = "invalid promql query"  # a message of the parser without position and cause
_SYNTAX = (_VAGUE, "unexpected", "unclosed", "unterminated", "no expression", "bad number")
_KINDS = {
    "NumberLiteral": "scalar",
    "StringLiteral": "string",
    "MatrixSelector": "matrix",
    "SubqueryExpr": "matrix",
}
# Texts that can continue a prefix of a valid query, before and after its open brackets are closed.
_NEXT = ("", " a", "(a)", "(x)(a)", ' "a"', '="a"', ' x="a"', " 1m")
_AFTER = ("", " (a)", " a")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a query consists of."""

    metrics: frozenset[str]  # the names of the series that it selects
    functions: frozenset[str]  # those that it calls
    operators: frozenset[str]  # those between two operands
    has_offset: bool
    has_rate_of_aggregate: bool  # of a sum, which falls when one of its series ends


def equal(label: str, value: str) -> str:
    """A matcher of one value."""
    return f"{label}={_quote(value)}"


def one_of(label: str, values: Iterable[str]) -> str:
    """A matcher of several values: equality for one value, otherwise a regular expression of literals."""
    distinct = tuple(dict.fromkeys(values))
    if len(distinct) == 1:
        return equal(label, distinct[0])
    literals = (_META.sub(r"\\\g<0>", value) for value in distinct)
    return f"{label}=~{_quote('|'.join(literals))}"


def fault(query: str, template: str = "") -> str | None:
    """The position and cause of a query's fault as one sentence; None if the query is valid.

    template: the text that the user wrote. The sentence quotes it instead of the query if both have the same length.
    """
    cause = _cause(query)
    if cause is None:
        return None
    place = _place(query, cause)
    rest = (template if len(template) == len(query) else query)[place:].strip()
    if not rest:
        return f"at its end: {'an operand or a bracket is missing' if cause == _VAGUE else cause}"
    named = "unexpected text" if cause == _VAGUE else cause
    return f"at character {place + 1}, {_shorten(rest)!r}: {named}"


def result_kind(query: str) -> str:
    """What a valid query returns: vector, scalar, string or matrix."""
    try:
        return _kind(promql_parser.parse(query))
    except RecursionError:  # a query of about a thousand operands, which are hardly all numbers
        return "vector"


def _kind(expression: object) -> str:
    match expression:
        case promql_parser.ParenExpr() | promql_parser.UnaryExpr():
            return _kind(expression.expr)
        case promql_parser.BinaryExpr():
            return "vector" if "vector" in (_kind(expression.lhs), _kind(expression.rhs)) else "scalar"
        case promql_parser.Call():
            return "scalar" if expression.func.return_type == promql_parser.ValueType.Scalar else "vector"
    return _KINDS.get(type(expression).__name__, "vector")


def parts(query: str) -> Parts | None:
    """What a query consists of, None if it is invalid."""
    if _cause(query) is not None:
        return None
    found = list(_expressions(promql_parser.parse(query)))
    calls = [each for each in found if isinstance(each, promql_parser.Call)]
    selectors = [each for each in found if isinstance(each, promql_parser.VectorSelector)]
    return Parts(
        metrics=frozenset(each.name for each in selectors if each.name),
        functions=frozenset(each.func.name for each in calls),
        operators=frozenset(str(each.op) for each in found if isinstance(each, promql_parser.BinaryExpr)),
        has_offset=any(each.offset is not None for each in selectors),
        has_rate_of_aggregate=any(_is_rate_of_aggregate(each) for each in calls),
    )


def _expressions(expression: promql_parser.Expr) -> Iterator[promql_parser.Expr]:
    """An expression and all below it, without recursion: a query may have thousands of operands."""
    waiting = [expression]
    while waiting:
        yield (each := waiting.pop())
        waiting += _operands(each)


def _operands(expression: promql_parser.Expr) -> list[promql_parser.Expr]:
    match expression:
        case promql_parser.BinaryExpr():
            return [expression.lhs, expression.rhs]
        case promql_parser.Call():
            return list(expression.args)
        case promql_parser.MatrixSelector():
            return [expression.vector_selector]
        case (
            promql_parser.ParenExpr()
            | promql_parser.UnaryExpr()
            | promql_parser.AggregateExpr()
            | promql_parser.SubqueryExpr()
        ):
            return [expression.expr]
    return []


def _is_rate_of_aggregate(call: promql_parser.Call) -> bool:
    argument = next(iter(call.args), None)
    if call.func.name not in _PER_WINDOW or not isinstance(argument, promql_parser.SubqueryExpr):
        return False
    inner = _without_brackets(argument.expr)
    return isinstance(inner, promql_parser.AggregateExpr) and str(inner.op) in _GROWING_WITH_SERIES


def _without_brackets(expression: promql_parser.Expr) -> promql_parser.Expr:
    while isinstance(expression, promql_parser.ParenExpr):
        expression = expression.expr
    return expression


def drops(query: str, label: str) -> bool:
    """Whether the outermost aggregation of a query removes a label from the result."""
    expression = _without_brackets(promql_parser.parse(query))
    if not isinstance(expression, promql_parser.AggregateExpr):
        return False
    op, param = str(expression.op), expression.param
    if op in _SELECTIONS or (op == "count_values" and param is not None and param.val == label):
        return False
    modifier = expression.modifier
    if modifier is None:
        return True
    return bool((label in modifier.labels) != (modifier.type == promql_parser.AggModifierType.By))


def is_zero_without_series(query: str) -> bool:
    """Whether a valid query returns 0 where none of its series exists, such as one with `or vector(0)`."""
    try:
        return _cause(query) is None and _value_without_series(promql_parser.parse(query)) == 0
    except RecursionError:  # a query of about a thousand operands
        return False


def _value_without_series(expression: promql_parser.Expr) -> float | None:
    """The value of an expression where none of its series exists: None for an empty result, NaN for any number."""
    match expression:
        case promql_parser.NumberLiteral():
            return expression.val
        case promql_parser.StringLiteral():
            return nan
        case promql_parser.Call():
            values = [_value_without_series(each) for each in expression.args]
            if expression.func.name.startswith("absent"):
                return 1.0
            return None if None in values else next(iter(values), nan)
        case promql_parser.BinaryExpr():
            return _combined(str(expression.op), *map(_value_without_series, (expression.lhs, expression.rhs)))
        case (
            promql_parser.ParenExpr()
            | promql_parser.UnaryExpr()
            | promql_parser.AggregateExpr()
            | promql_parser.SubqueryExpr()
        ):
            return _value_without_series(expression.expr)
    return None  # a selector


def _combined(op: str, left: float | None, right: float | None) -> float | None:
    if op == "or":
        return right if left is None else left
    if left is None or right is None:
        return left if op == "unless" else None
    of_numbers = {"+": left + right, "-": left - right, "*": left * right, "/": left, "and": left}
    return of_numbers.get(op)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # JSON's escapes are a part of PromQL's


def _cause(query: str) -> str | None:
    try:
        promql_parser.parse(query)
    except ValueError as error:
        return str(error)
    return None


def _place(query: str, cause: str) -> int:
    if cause.startswith("unexpected end"):
        return len(query)
    if cause.startswith("unclosed"):
        return next((start for start, _ in _open_brackets(query)), 0)
    if cause.startswith("unterminated"):
        return next((start for start, end in _tokens(query) if query[start:end] in _QUOTES), 0)
    if cause == _VAGUE:
        return next((start for start, end in _tokens(query) if not _can_continue(query[:end])), len(query))
    return _named(query, cause)


def _named(query: str, cause: str) -> int:
    """The position of the text that the cause quotes; 0 if it quotes none."""
    named = re.search(r"'(.+?)'|illegal regex for (.+)|syntax: (.+)", cause)
    if named is None:
        return 0
    # The lexer stops at its first fault: every longer prefix of the query has the same cause.
    end = bisect_left(range(len(query) + 1), True, key=lambda end: _cause(query[:end]) == cause)
    return max(0, query.rfind(named[named.lastindex or 1], 0, end))


def _tokens(query: str) -> Iterator[tuple[int, int]]:
    return (token.span() for token in _TOKEN.finditer(query))


def _can_continue(prefix: str) -> bool:
    closing = "".join(bracket for _, bracket in reversed(_open_brackets(prefix)))
    endings = (following + closing + after for following in _NEXT for after in _AFTER)
    causes = (_cause(prefix + ending) for ending in endings)
    return any(cause is None or not cause.startswith(_SYNTAX) for cause in causes)


def _open_brackets(prefix: str) -> list[tuple[int, str]]:
    """The positions of unclosed brackets, each with its closing bracket."""
    waiting: list[tuple[int, str]] = []
    for start, end in _tokens(prefix):
        token = prefix[start:end]
        if token in _OPEN:
            waiting.append((start, _CLOSED[_OPEN.index(token)]))
        elif waiting and token == waiting[-1][1]:
            waiting.pop()
    return waiting


def _shorten(text: str) -> str:
    return text if len(text) <= 30 else text[:30] + "…"
