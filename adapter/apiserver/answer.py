"""The response type of handlers."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from adapter.apiserver.request import Request

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"  # Prometheus' text format

_encode = msgspec.json.Encoder().encode


class Answer(msgspec.Struct, frozen=True):
    """A status code and a body. headers: besides those of every response."""

    code: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = {}


# Answers a GET of a path: called with the request and, by name, the variables of its route. Raises StatusError.
Handler = Callable[..., Answer]
# Route, in the syntax of werkzeug -> handler.
Routes = Mapping[str, Handler]


def json(document: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A document in JSON."""
    return Answer(code, _encode(document), headers=headers or {})


def text(body: str, code: int = 200) -> Answer:
    """A plain text."""
    return Answer(code, body.encode(), TEXT)


def exposition(write: Callable[[], bytes]) -> Handler:
    """A handler for what Prometheus scrapes. write: returns the text of the moment."""
    return lambda request: Answer(200, write(), EXPOSITION)


def with_etag(
    request: Request, body: bytes, content_type: str = JSON, headers: Mapping[str, str] | None = None
) -> Answer:
    """A body with an ETag, or 304 for a client that has it already."""
    etag = f'"{hashlib.sha256(body).hexdigest()}"'
    every = {**(headers or {}), "Etag": etag}
    if matches(etag, request.header(b"if-none-match")):
        return Answer(304, b"", content_type, every)
    return Answer(200, body, content_type, every)


def matches(etag: str, if_none_match: str) -> bool:
    """Whether an If-None-Match header names the validator (RFC 9110, 13.1.2)."""
    return any(tag.strip().removeprefix("W/") in ("*", etag) for tag in if_none_match.split(","))
