"""The selectors of a PromQL expression."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import promql_parser


@dataclass(frozen=True)
class Selector:
    """A selector of one metric, and the function around its range."""

    text: str  # as PromQL, without the range and the offset
    metric: str
    matchers: dict[str, str]  # label -> value, whatever the operator
    range: timedelta | None = None
    function: str = ""


def selectors(expr: str) -> list[Selector]:
    """Every selector of an expression. Raises ValueError with the parser's message."""
    return list(_walk(promql_parser.parse(expr), ""))


def _walk(node: Any, function: str) -> Iterator[Selector]:
    if isinstance(node, promql_parser.VectorSelector):
        yield _selector(node, None, function)
    elif isinstance(node, promql_parser.MatrixSelector):
        yield _selector(node.vector_selector, node.range, function)
    elif isinstance(node, promql_parser.Call):
        for argument in node.args:
            yield from _walk(argument, node.func.name)
    elif isinstance(node, promql_parser.BinaryExpr):
        yield from _walk(node.lhs, "")
        yield from _walk(node.rhs, "")
    elif not isinstance(node, promql_parser.NumberLiteral | promql_parser.StringLiteral):
        yield from _walk(node.expr, "")  # parentheses, aggregations, subqueries, signs


def _selector(node: Any, range_: timedelta | None, function: str) -> Selector:
    text, _, _ = node.prettify().partition(" offset ")
    return Selector(text, node.name, {each.name: each.value for each in node.matchers.matchers}, range_, function)
