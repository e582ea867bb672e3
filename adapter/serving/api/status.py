"""Answers of the Kubernetes API: a code with a document, and the documents of its errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from adapter.serving.api.quoting import quoted

Document = dict[str, Any]

JSON_CONTENT = {"Content-Type": "application/json"}
TEXT_CONTENT = {"Content-Type": "text/plain; charset=utf-8"}
SAFE_TEXT = TEXT_CONTENT | {"X-Content-Type-Options": "nosniff"}  # what callers sent stands in it

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to the caller.

    document: still to be written in the media type that was asked for. indented: written as indented JSON, whoever
    asks. body: sent as it is in place of a document; its Content-Type is among the headers. headers: besides those
    every answer has.
    """

    code: int
    document: Document = field(default_factory=dict)
    indented: bool = False
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):  # noqa: N818  # raised like an error, but it is an answer
    """Ends the work on a request: this is the answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.document.get("message", answer.code))


def failure(code: int, reason: str, message: str, details: Document | None = None) -> Answer:
    """A `Status` of a failure. details: None leaves them out; some errors of the API have `{}`, some nothing.

    reason: "" for an error that has none.
    """
    document: Document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        document["reason"] = reason
    if details is not None:
        document["details"] = details
    return Answer(code, document | {"code": code})


def bad_request(message: str) -> Answer:
    """400: the caller asked wrongly."""
    return failure(400, "BadRequest", message)


def unauthorized() -> Answer:
    """401: a credential that is not accepted."""
    return failure(401, "Unauthorized", "Unauthorized")


def not_found(message: str) -> Answer:
    """404: nothing by that name, or nothing that matches."""
    return failure(404, "NotFound", message)


def no_such_resource() -> Answer:
    """404 for a path inside a known group that is no resource of it."""
    return failure(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> Answer:
    """405: everything here is read with GET."""
    message = "the server does not allow this method on the requested resource"
    return failure(405, "MethodNotAllowed", message, {})


def internal_error() -> Answer:
    """500 without a word of the inside; the log has it."""
    message = "Internal error occurred: the log of this replica says which"
    return failure(500, "InternalError", message)


def internal_server_error(uri: str, fault: object) -> Answer:
    """500 in plain text, whatever is accepted: what failed before that was looked at. uri: as sent."""
    text = without_markup(f"Internal Server Error: {quoted(uri)}: {fault}\n")
    return Answer(500, body=text.encode(), headers=SAFE_TEXT)


def timed_out() -> Answer:
    """504: not done by when its caller wanted it. As Go's servers write it, whose watch over time knows no kinds and no
    media types."""
    message = "Timeout: request did not complete within the allotted timeout"
    document = {"metadata": {}, "status": "Failure", "message": message, "reason": "Timeout", "details": {}}
    return Answer(504, body=encode(document | {"code": 504}), headers=TEXT_CONTENT)


def without_markup(text: str) -> str:
    """The text with nothing left that a browser could take for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unavailable(message: str) -> Answer:
    """503 with the reason. An HPA keeps its size and shows the message word for word; there is never a Retry-After,
    for the HPA controller would sleep on it, up to ten times, with one of its few workers."""
    return failure(503, "ServiceUnavailable", message)


# What a browser could take for HTML, and what JavaScript takes for the end of a line.
_ESCAPES = {"<": "u003c", ">": "u003e", "&": "u0026", "\u2028": "u2028", "\u2029": "u2029"}
_ESCAPED_BYTES = tuple((character.encode(), f"\\{code}".encode()) for character, code in _ESCAPES.items())


def encode(document: Document, *, indented: bool = False) -> bytes:
    """The document as the API writes it: some characters escaped, a line feed at the end unless indented."""
    body = _encoder.encode(document)
    body = msgspec.json.format(body, indent=2) if indented else body + b"\n"
    for character, escaped in _ESCAPED_BYTES:
        body = body.replace(character, escaped)
    return body
