"""`Status`: the errors of the Kubernetes API."""

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]


class StatusError(Exception):
    """Ends a request with an error.

    reason: machine-readable, "" for an error without one. details: None omits them. headers: besides those of every
    response.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Document | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}

    @property
    def document(self) -> Document:
        """The `Status` document."""
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        reason = {"reason": self.reason} if self.reason else {}
        details = {} if self.details is None else {"details": self.details}
        return {**head, **reason, **details, "code": self.code}


def bad_request(message: str) -> StatusError:
    """400: the request is malformed or ambiguous."""
    return StatusError(400, "BadRequest", message)


def unauthorized(headers: Mapping[str, str] | None = None) -> StatusError:
    """401: the credential is not accepted."""
    return StatusError(401, "Unauthorized", "Unauthorized", headers=headers)


def not_found(message: str) -> StatusError:
    """404: no such name, or nothing matches."""
    return StatusError(404, "NotFound", message)


def no_such_resource() -> StatusError:
    """404: no such path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> StatusError:
    """405: every path is read with GET."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def not_acceptable(types: str) -> StatusError:
    """406: the Accept header excludes the media types of the path."""
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {types}")


def internal_error(cause: str = "see the log of this server") -> StatusError:
    """500. cause: what the client reads; the cause of an unforeseen error is only in the log."""
    return StatusError(500, "InternalError", f"Internal error occurred: {cause}")


def unavailable(message: str) -> StatusError:
    """503 with the reason.

    An HPA keeps its replicas and shows the message in its condition and event. There is never a Retry-After header:
    the HPA controller would block one of its few workers for it, up to ten times.
    """
    return StatusError(503, "ServiceUnavailable", message)
