"""Answers of Prometheus -> series of numbers, and the causes of answers without them."""

from array import array
from collections.abc import Collection, Sequence
from math import inf, nan

import msgspec


class QueryError(Exception):
    """A query has no result. The message is the cause."""


class Series(msgspec.Struct, frozen=True, gc=False):
    """One series of a result. A range query of a large fleet has millions of points, so they are columns."""

    labels: dict[str, str]
    at_s: Sequence[int]  # Unix seconds of the ticks that have a value
    values: Sequence[float]  # finite and at least 0
    rejected: tuple[tuple[int, str], ...]  # ticks with another value, and its text

    def without(self, ticks: Collection[int]) -> "Series":
        """The series without its values of these ticks."""
        rest = {at: value for at, value in zip(self.at_s, self.values, strict=True) if at not in ticks}
        return msgspec.structs.replace(self, at_s=array("q", rest), values=array("d", rest.values()))


class _Series(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str] | None = None  # of an instant query: Unix seconds, value as text
    values: msgspec.Raw = msgspec.Raw(b"[]")  # of a range query: a list of such points


class _Result(msgspec.Struct):
    kind: str = msgspec.field(name="resultType")
    result: msgspec.Raw


class _Answer(msgspec.Struct):
    status: str
    data: _Result | None = None
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""
    warnings: tuple[str, ...] | None = None
    is_partial: bool = msgspec.field(name="isPartial", default=False)  # of VictoriaMetrics, which has no warnings

    def gaps(self) -> list[str]:
        """Why a part of the result is missing (a store, a remote). A sum over the rest would be wrong."""
        serious = [warning for warning in self.warnings or () if not warning.startswith("PromQL info:")]
        return [*serious, "a storage node did not answer (isPartial)"] if self.is_partial else serious


_ANSWER = msgspec.json.Decoder(_Answer)
_SERIES = msgspec.json.Decoder(list[_Series])
_POINTS = msgspec.json.Decoder(list[tuple[float, str]])
_NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LATEST_S = 2**40
_HINTS = {
    401: "; it requires credentials: bearer_token_file, basic or tls",
    403: "; these credentials do not allow queries",
    404: "; is the base path of the url right?",
    405: "; it does not allow POST",
}


def decode(status: int, content_type: str, body: bytes, most_values: int) -> list[Series]:
    """The series of one answer. Raises QueryError with the server's message."""
    try:
        answer = _ANSWER.decode(body)
    except _NOT_DECODED as error:
        raise QueryError(_unknown_answer(status, content_type, str(error))) from error
    if answer.status != "success" or answer.data is None or status >= 400:
        raise QueryError(f"{status} {answer.error_type or answer.status}: {answer.error or 'no data'}")
    if gaps := answer.gaps():
        raise QueryError(f"the answer is incomplete: {'; '.join(gaps)}")
    if answer.data.kind not in ("vector", "matrix"):
        raise QueryError(f"expected a vector, the query returns a {answer.data.kind}; vector(...) converts a scalar")
    # Each value begins with this bracket. Counting them takes no memory, decoding them does.
    count = body.count(b"[") - 1
    if count > most_values:
        raise QueryError(f"the answer has {count} values, more than {most_values}; aggregate by ($by), or match less")
    try:
        return [_series(one) for one in _SERIES.decode(answer.data.result)]
    except _NOT_DECODED as error:
        raise QueryError(f"the answer is not in Prometheus' format: {error}") from error


def _unknown_answer(status: int, content_type: str, cause: str) -> str:
    """The message for an answer that is not from Prometheus' API."""
    kind = content_type.partition(";")[0] or "no content type"
    if status >= 400:
        return f"HTTP {status}{_HINTS.get(status, '')}"
    if kind == "text/html":
        return "the answer is a web page: a login page, or a wrong url"
    return f"the answer ({kind}) is not in Prometheus' format: {cause}"


def _series(one: _Series) -> Series:
    values: dict[int, float] = {}
    rejected: dict[int, str] = {}
    for at, text in _POINTS.decode(one.values) if one.value is None else (one.value,):
        value = _number(text)
        if 0 <= at <= _LATEST_S and 0 <= value < inf:
            values.setdefault(round(at), value)
        elif 0 <= at <= _LATEST_S:
            rejected.setdefault(round(at), text)
    if one.value is None:
        return Series(one.metric, array("q", values), array("d", values.values()), tuple(rejected.items()))
    return Series(
        one.metric, tuple(values), tuple(values.values()), tuple(rejected.items())
    )  # faster than arrays of one number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
