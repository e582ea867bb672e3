"""A file of recorded requests and answers -> rows."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

import msgspec

from conformance.identities import NAMES


class RecordingError(ValueError):
    """A recording that cannot be read; the message says where and what was expected."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An HTTP answer. headers: by name in lower case, values of one name joined by `, `. body: None was not kept."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Dropped:
    """No answer: the connection ended. how: the name of the client's exception."""

    how: str


Outcome = Answered | Dropped


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. uri: path and query as sent. identity: whose certificate is presented. body: None sends none."""

    method: str
    uri: str
    identity: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    def header(self, name: str) -> str:
        """The first value of a header, "" without it. name: in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    def without(self, *names: str) -> Self:
        """The same request less some headers. names: in lower case."""
        kept = tuple((name, value) for name, value in self.headers if name.lower() not in names)
        return replace(self, headers=kept)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a recording."""

    id: str
    asked: Asked
    outcome: Outcome
    note: str = ""


class _Line(msgspec.Struct):
    id: str
    method: str
    path: str
    identity: str
    request_headers: dict[str, str | list[str]]
    note: str = ""
    request_body: str | None = None
    status: int | None = None
    headers: dict[str, str] = {}
    encoding: Literal["utf-8", "base64", "omitted"] = "utf-8"
    body: str = ""
    error: str | None = None


def read(path: Path) -> list[Row]:
    """The rows of a file, one JSON object a line. Raises RecordingError naming the line; OSError when it is no file."""
    rows: list[Row] = []
    seen: dict[str, int] = {}
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        if not text.strip():
            continue
        try:
            row = _row(msgspec.json.decode(text, type=_Line))
        except (ValueError, binascii.Error) as error:
            raise RecordingError(f"{path}:{number}: expected a recorded request and answer in JSON: {error}") from error
        if row.id in seen:
            raise RecordingError(f"{path}:{number}: id {row.id} was given on line {seen[row.id]} already")
        seen[row.id] = number
        rows.append(row)
    if not rows:
        raise RecordingError(f"{path}: expected a line for each recorded request, got none")
    return rows


def _row(line: _Line) -> Row:
    if line.identity not in NAMES:
        raise ValueError(f"identity: expected one of {', '.join(NAMES)}, got {line.identity}")
    pairs = tuple(
        (name, value)
        for name, values in line.request_headers.items()
        for value in ([values] if isinstance(values, str) else values)
    )
    body = None if line.request_body is None else line.request_body.encode()
    return Row(line.id, Asked(line.method, line.path, line.identity, pairs, body), _outcome(line), line.note)


def _outcome(line: _Line) -> Outcome:
    if (line.status is None) == (line.error is None):
        raise ValueError("either `status` or `error` is needed")
    if line.status is None:
        return Dropped(line.error or "")
    headers = {name.lower(): value for name, value in line.headers.items()}
    return Answered(line.status, headers, _body(line))


def _body(line: _Line) -> bytes | None:
    if line.encoding == "omitted":
        return None
    return base64.b64decode(line.body, validate=True) if line.encoding == "base64" else line.body.encode()
