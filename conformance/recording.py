"""Read a file of recorded requests and responses."""

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from conformance.identities import NAMES


class RecordingError(ValueError):
    """A recording that cannot be read. The message names the file, the line and the expectation."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request. target: path and query as sent. identity: the client certificate to present."""

    method: str
    target: str
    identity: str = "none"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str:
        """The first value of a header, "" without it. name: in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    def with_header(self, name: str, value: str) -> Self:
        """The request with one value of a header; "" removes the header. name: in lower case."""
        others = tuple(pair for pair in self.headers if pair[0].lower() != name)
        return replace(self, headers=(*others, (name, value)) if value else others)


@dataclass(frozen=True, slots=True)
class Response:
    """A response. headers: by name in lower case. body: None where the recording omits it."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None = b""

    @property
    def media_type(self) -> str:
        """The content type with the `as` parameter of discovery and without the others."""
        media, *parameters = self.headers.get("content-type", "").split(";")
        return ";".join([media.strip(), *(each.strip() for each in parameters if each.strip().startswith("as="))])

    @property
    def document(self) -> dict[str, Any]:
        """The body as a JSON object; empty for any other body."""
        with suppress(ValueError):
            document = json.loads(self.body or b"")
            return document if isinstance(document, dict) else {}
        return {}


# None: the connection ended without a response.
Outcome = Response | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a recording."""

    id: str
    request: Request
    outcome: Outcome


class _Line(msgspec.Struct):
    id: str
    method: str
    path: str
    identity: str
    request_headers: dict[str, str | list[str]]
    request_body: str | None = None
    status: int | None = None
    headers: dict[str, str] = {}
    encoding: Literal["utf-8", "base64", "omitted"] = "utf-8"
    body: str = ""
    error: str | None = None


def read(path: Path) -> list[Row]:
    """The rows of a file, one JSON object a line. Raises RecordingError, or OSError for an unreadable file."""
    rows: dict[str, Row] = {}
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        if not text.strip():
            continue
        try:
            row = _row(msgspec.json.decode(text, type=_Line))
        except ValueError as error:
            raise RecordingError(f"{path}:{number}: expected a recorded request and response: {error}") from error
        if row.id in rows:
            raise RecordingError(f"{path}:{number}: the id {row.id} is used twice")
        rows[row.id] = row
    if not rows:
        raise RecordingError(f"{path}: expected one recorded request a line, the file is empty")
    return list(rows.values())


def _row(line: _Line) -> Row:
    if line.identity not in NAMES:
        raise ValueError(f"identity: expected one of {', '.join(NAMES)}, got {line.identity}")
    if (line.status is None) == (line.error is None):
        raise ValueError("expected either `status` or `error`")
    pairs = tuple(
        (name, value)
        for name, values in line.request_headers.items()
        for value in ([values] if isinstance(values, str) else values)
    )
    request = Request(line.method, line.path, line.identity, pairs, (line.request_body or "").encode())
    headers = {name.lower(): value for name, value in line.headers.items()}
    return Row(line.id, request, None if line.status is None else Response(line.status, headers, _body(line)))


def _body(line: _Line) -> bytes | None:
    if line.encoding == "omitted":
        return None
    return base64.b64decode(line.body, validate=True) if line.encoding == "base64" else line.body.encode()
