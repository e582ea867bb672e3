"""An answer -> the bytes of a response, in the media type the caller prefers."""

import gzip
import re
from functools import lru_cache
from itertools import chain
from random import getrandbits

from adapter.serving.api import negotiation, protobuf, yaml_text
from adapter.serving.api.negotiation import FOR_PEOPLE, PROTOBUF, YAML, MediaType
from adapter.serving.api.request import Headers, MustWait, Request
from adapter.serving.api.status import Answer, Document, Refusal, encode, failure
from adapter.serving.api.values import Value

# Smaller bodies arrive sooner as they are.
_COMPRESSED_ABOVE_BYTES = 128 * 1024

_LONGEST_AUDIT_ID = 64
_AUDIT_ID = re.compile(r"[ -~\x80-\xff]+")
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_PEOPLE = ("curl", "Wget", "Mozilla/5.0")  # how the User-Agent of their programs begins

# By kind; everything else is sent as it is.
_OFFERS = {
    "ExternalMetricValueList": negotiation.EXTERNAL,
    "MetricValueList": negotiation.CUSTOM,
    "APIGroupDiscoveryList": negotiation.AGGREGATED,
}

_ALWAYS = {"cache-control": "no-cache, private"}
_GZIPPED = (("content-encoding", "gzip"), ("vary", "Accept-Encoding"))


class Response(Value, frozen=True):
    """What goes over the wire. headers: (name in lower case, value), as ASGI wants them, without the length."""

    code: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


def respond(request: Request, answer: Answer) -> Response:
    """The answer as its caller wants it, or the 406. An error is told whatever is accepted.

    Raises MustWait where it is wanted in YAML by a request that is not patient: people read it, and to write it takes
    ten times as long as JSON, a second for the list of a large neighbour.
    """
    if answer.body is not None:
        return _response(request, answer, answer.body)
    try:
        media = _media(request.header("accept"), answer)
        if media.name == YAML and not request.patient:
            raise MustWait
        body = _written(_transformed(answer.document, media), media, request)
    except Refusal as refusal:
        return respond(request, refusal.answer)
    content: Headers = (("content-type", media.content_type),)
    if len(body) > _COMPRESSED_ABOVE_BYTES and _takes_gzip(request):
        body = gzip.compress(body, compresslevel=1, mtime=0)
        content = (*content, *_GZIPPED)
    return _response(request, answer, body, content)


def wants_indented(request: Request) -> bool:
    """Whether people read the answer: they say so, or their program does."""
    asked = request.query.get("pretty", "")
    return asked in _TRUE if asked else request.header("user-agent").startswith(_PEOPLE)


def _media(accept: str, answer: Answer) -> MediaType:
    if answer.indented:
        return FOR_PEOPLE
    if answer.code >= 400:
        return negotiation.of_error(accept)
    return negotiation.negotiate(accept, _OFFERS.get(answer.document.get("kind", ""), negotiation.DISCOVERY))


def _transformed(document: Document, media: MediaType) -> Document:
    """The document as the kind that is wanted. A list of metrics has no metadata of objects, so only an empty one has
    another form. Raises Refusal, with the errors of the Go servers."""
    wanted = media.transform
    if wanted is None or wanted.kind == document["kind"]:
        return document
    if wanted.kind == "PartialObjectMetadata":
        fault = "the requested object is a list (*external_metrics.ExternalMetricValueList)"
        raise Refusal(failure(406, "NotAcceptable", f"you requested PartialObjectMetadata, but {fault}"))
    if document["items"]:
        raise Refusal(failure(500, "", "object does not implement the Object interfaces"))
    return {"kind": wanted.kind, "apiVersion": f"{wanted.group}/{wanted.version}", "metadata": {}, "items": None}


def _written(document: Document, media: MediaType, request: Request) -> bytes:
    if media.name == YAML:
        return yaml_text.written(document)
    if media.name == PROTOBUF:
        return _protobuf(document)
    return encode(document, indented=media.indented or wants_indented(request))


def _protobuf(document: Document) -> bytes:
    body = protobuf.written(document)
    if body is None:
        message = f"a {document['kind']} has no form in protobuf, accept {negotiation.JSON} or {YAML}"
        raise Refusal(failure(406, "NotAcceptable", message))
    return body


def _takes_gzip(request: Request) -> bool:
    return "gzip" in map(str.strip, request.header("accept-encoding").split(","))


def _response(request: Request, answer: Answer, body: bytes, content: Headers = ()) -> Response:
    """content: headers that say what the body is, where the answer's own do not."""
    headers = _wire(tuple(answer.headers.items()), content)
    return Response(answer.code, (*headers, (b"audit-id", _audit_id(request))), body)


@lru_cache(maxsize=256)  # the same few in every answer
def _wire(own: Headers, content: Headers) -> tuple[tuple[bytes, bytes], ...]:
    pairs = ((_ALWAYS | {name.lower(): value for name, value in own}).items(), content)
    return tuple((name.encode(), value.encode("latin-1", "replace")) for name, value in chain(*pairs))


def _audit_id(request: Request) -> bytes:
    """The one that the caller, or an API server before it, gave the request; else a new one."""
    given = request.header("audit-id")[:_LONGEST_AUDIT_ID]
    return (given if given and _AUDIT_ID.fullmatch(given) else _new_id()).encode("latin-1", "replace")


def _new_id() -> str:
    """A random UUID (version 4)."""
    text = f"{getrandbits(128):032x}"  # unique is enough: nothing is kept secret by it
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"
