"""Answers of the Kubernetes API: a code with a document, and the documents of its errors."""

from dataclasses import dataclass
from typing import Any

import msgspec

Document = dict[str, Any]

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to the caller. `indented` is set where the API indents whoever asks."""

    code: int
    document: Document
    indented: bool = False


def failure(code: int, reason: str, message: str, details: Document | None = None) -> Answer:
    """A `Status` of a failure. details: None leaves them out; some errors of the API have `{}`, some nothing."""
    document: Document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
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


def unavailable(message: str) -> Answer:
    """503 with the reason. An HPA keeps its size and shows the message word for word; there is never a Retry-After,
    for the HPA controller would sleep on it, up to ten times, with one of its few workers."""
    return failure(503, "ServiceUnavailable", message)


def encode(document: Document, *, indented: bool = False) -> bytes:
    """The document as the API writes it: `<`, `>` and `&` escaped, a line feed at the end unless indented."""
    body = _encoder.encode(document)
    body = msgspec.json.format(body, indent=2) if indented else body + b"\n"
    return body.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")
