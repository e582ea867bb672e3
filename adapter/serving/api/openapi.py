"""`/openapi/...`: the description of this API, for `kubectl explain`, and for clients that are made from it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import formatdate
from functools import cache

from adapter.serving.api import only_json, openapi_documents
from adapter.serving.api.request import Request
from adapter.serving.api.status import JSON_CONTENT, Answer, encode
from adapter.serving.api.stored import Stored

PATHS = ("/openapi/v2", "/openapi/v3", "/openapi/v3/")

_VERSION_2, _INDEX, _VERSION_3 = PATHS
_RANGES = ("application/json", "application/*", "*/json", "*/*", "*")
_YEAR_S = 365 * 86_400


@dataclass(frozen=True, slots=True)
class OpenApi:
    """Answers `/openapi/...` from memory. clock: Unix seconds."""

    clock: Callable[[], float] = time.time

    def answer(self, request: Request) -> Answer | None:
        """A document, whatever the method; None when the path has none."""
        if request.path == _INDEX:
            return _index().answer(request.header("if-none-match"))
        stored = _documents().get(request.path)
        if stored is None:  # below `/openapi/v3/` Go's servers answer to any name, of unknown ones nothing
            return Answer(200, body=b"") if request.path.startswith(_VERSION_3) else None
        refusal = only_json.refusal(request, _RANGES)
        if refusal is not None:
            return replace(refusal, headers={"Vary": "Accept"})
        return self._document(request, stored)

    def _document(self, request: Request, stored: Stored) -> Answer:
        """With the hash that the index gives, a document may be kept for ever; with another, the caller is sent on."""
        answer = stored.answer(request.header("if-none-match"))
        asked = request.query.get("hash", "")
        if not asked or request.path == _VERSION_2:
            return answer
        if asked != stored.digest:
            location = _address(request.path, stored)
            return Answer(301, body=b"", headers={**stored.headers, "Location": location})
        expires = formatdate(self.clock() + _YEAR_S, usegmt=True)
        return replace(answer, headers={**answer.headers, "Cache-Control": "public, immutable", "Expires": expires})


@cache
def _documents() -> Mapping[str, Stored]:
    """Every document by its path."""
    parts = {f"{_VERSION_3}{name}": document for name, document in openapi_documents.version_3().items()}
    documents = {_VERSION_2: openapi_documents.version_2(), **parts}
    headers = JSON_CONTENT | {"Vary": "Accept"}
    return {path: Stored.of(encode(document), headers) for path, document in documents.items()}


@cache
def _index() -> Stored:
    """The documents of groups and their versions. Those of `/apis` and `/version` answer too, but an API server puts
    what is listed here among its own, and its own of that name would be hidden."""
    root = f"{_VERSION_3}apis/"
    listed = {path: stored for path, stored in sorted(_documents().items()) if path.startswith(root)}
    paths = {
        path.removeprefix(_VERSION_3): {"serverRelativeURL": _address(path, stored)} for path, stored in listed.items()
    }
    return Stored.of(encode({"paths": paths}), JSON_CONTENT)


def _address(path: str, stored: Stored) -> str:
    return f"{path}?hash={stored.digest}"
