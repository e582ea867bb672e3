"""A document as Kubernetes' protobuf: an envelope that names the kind, and the message of that kind in it.

The messages are those of the .proto files of k8s.io/apimachinery, k8s.io/metrics and k8s.io/api, written as the Go
servers write them: fields in the order of their numbers; text, numbers and messages even when they are empty, unless Go
has a pointer there.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from adapter.serving.api.status import Document

# Writes what a message has of a document: one field.
_Field = Callable[[Document], bytes]
_Message = Sequence[_Field]

_ENVELOPE = b"k8s\0"
_NO_ENCODING_NO_TYPE = b"\x1a\0\x22\0"
_VARINT, _DELIMITED = 0, 2  # wire types


def written(document: Document) -> bytes | None:
    """The document with its envelope; None for a kind that has no message here."""
    version, kind = document.get("apiVersion", ""), document["kind"]
    message = _MESSAGES.get(f"{version}/{kind}") or _MESSAGES.get(kind)
    if message is None:
        return None
    return _opening(version, kind) + _delimited(2, _written(message, document)) + _NO_ENCODING_NO_TYPE


@lru_cache(maxsize=64)
def _opening(version: str, kind: str) -> bytes:
    return _ENVELOPE + _delimited(1, _delimited(1, version.encode()) + _delimited(2, kind.encode()))


def _written(message: _Message, document: Document) -> bytes:
    return b"".join([field(document) for field in message])


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; a negative number by its 64 bits."""
    number &= 2**64 - 1
    octets = bytearray()
    while number > 0x7F:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    octets.append(number)
    return bytes(octets)


_SMALL = tuple(map(_varint, range(0x80)))


def _delimited(field: int, content: bytes) -> bytes:
    size = len(content)
    return _SMALL[field << 3 | _DELIMITED] + (_SMALL[size] if size < 0x80 else _varint(size)) + content


def _integer(field: int, number: int) -> bytes:
    return _SMALL[field << 3 | _VARINT] + _varint(number)


def _text(field: int, key: str) -> _Field:
    return lambda document: _delimited(field, document.get(key, "").encode())


def _number(field: int, key: str) -> _Field:
    return lambda document: _integer(field, int(document.get(key, 0)))


def _number_if_there(field: int, key: str) -> _Field:
    return lambda document: _integer(field, document[key]) if key in document else b""


def _texts(field: int, key: str) -> _Field:
    return lambda document: _repeated(field, document.get(key, ()))


def _repeated(field: int, texts: Sequence[str]) -> bytes:
    return b"".join([_delimited(field, text.encode()) for text in texts])


def _text_map(field: int, key: str) -> _Field:
    def write(document: Document) -> bytes:
        pairs = sorted((document.get(key) or {}).items())
        return b"".join([_delimited(field, _delimited(1, k.encode()) + _delimited(2, v.encode())) for k, v in pairs])

    return write


def _one(field: int, key: str, message: _Message) -> _Field:
    empty = _delimited(field, _written(message, {}))
    return lambda document: _delimited(field, _written(message, part)) if (part := document.get(key)) else empty


def _one_if_there(field: int, key: str, message: _Message) -> _Field:
    def write(document: Document) -> bytes:
        part = document.get(key)
        return b"" if part is None else _delimited(field, _written(message, part))

    return write


def _each(field: int, key: str, message: _Message) -> _Field:
    return lambda document: b"".join([_delimited(field, _written(message, part)) for part in document.get(key) or ()])


def _wrapped(field: int, key: str, write: Callable[[Any], bytes]) -> _Field:
    """What JSON has as a bare value and protobuf as a message."""
    return lambda document: _delimited(field, write(document.get(key)))


def _verbs(texts: Sequence[str]) -> bytes:
    return _repeated(1, texts)


def _quantity(text: str) -> bytes:
    return _delimited(1, text.encode())


@lru_cache(maxsize=1024)  # a snapshot has one time for thousands of workloads
def _time(text: str | None) -> bytes:
    """Seconds and nanoseconds; a time that is not known is an empty message."""
    return b"" if text is None else _integer(1, int(datetime.fromisoformat(text).timestamp())) + _integer(2, 0)


_LIST_META = (_text(1, "selfLink"), _text(2, "resourceVersion"), _text(3, "continue"))
_METADATA = _one(1, "metadata", _LIST_META)

_CAUSE = (_text(1, "reason"), _text(2, "message"), _text(3, "field"))
_DETAILS = (
    _text(1, "name"),
    _text(2, "group"),
    _text(3, "kind"),
    _each(4, "causes", _CAUSE),
    _number(5, "retryAfterSeconds"),
    _text(6, "uid"),
)
_STATUS = (
    _METADATA,
    _text(2, "status"),
    _text(3, "message"),
    _text(4, "reason"),
    _one_if_there(5, "details", _DETAILS),
    _number(6, "code"),
)

_VERSION = (_text(1, "groupVersion"), _text(2, "version"))
_ADDRESS = (_text(1, "clientCIDR"), _text(2, "serverAddress"))
_GROUP = (
    _text(1, "name"),
    _each(2, "versions", _VERSION),
    _one(3, "preferredVersion", _VERSION),
    _each(4, "serverAddressByClientCIDRs", _ADDRESS),
)
_RESOURCE = (
    _text(1, "name"),
    _number(2, "namespaced"),
    _text(3, "kind"),
    _wrapped(4, "verbs", _verbs),
    _texts(5, "shortNames"),
    _text(6, "singularName"),
    _texts(7, "categories"),
    _text(8, "group"),
    _text(9, "version"),
    _text(10, "storageVersionHash"),
)

_OBJECT_META = (
    _text(1, "name"),
    _text(2, "generateName"),
    _text(3, "namespace"),
    _text(4, "selfLink"),
    _text(5, "uid"),
    _text(6, "resourceVersion"),
    _number(7, "generation"),
    _wrapped(8, "creationTimestamp", _time),
)
_GVK = (_text(1, "group"), _text(2, "version"), _text(3, "kind"))
_SUBRESOURCE = (_text(1, "subresource"), _one_if_there(2, "responseKind", _GVK), _texts(4, "verbs"))
_DISCOVERED = (
    _text(1, "resource"),
    _one_if_there(2, "responseKind", _GVK),
    _text(3, "scope"),
    _text(4, "singularResource"),
    _texts(5, "verbs"),
    _each(8, "subresources", _SUBRESOURCE),
)
_DISCOVERED_VERSION = (_text(1, "version"), _each(2, "resources", _DISCOVERED), _text(3, "freshness"))
_DISCOVERED_GROUP = (_one(1, "metadata", _OBJECT_META), _each(2, "versions", _DISCOVERED_VERSION))

_EXTERNAL_VALUE = (
    _text(1, "metricName"),
    _text_map(2, "metricLabels"),
    _wrapped(3, "timestamp", _time),
    _number_if_there(4, "window"),
    _wrapped(5, "value", _quantity),
)

_EXPRESSION = (_text(1, "key"), _text(2, "operator"), _texts(3, "values"))
_SELECTOR = (_text_map(1, "matchLabels"), _each(2, "matchExpressions", _EXPRESSION))
_OBJECT = (
    _text(1, "kind"),
    _text(2, "namespace"),
    _text(3, "name"),
    _text(4, "uid"),
    _text(5, "apiVersion"),
    _text(6, "resourceVersion"),
    _text(7, "fieldPath"),
)
_VALUE_OF_V1BETA1 = (
    _one(1, "describedObject", _OBJECT),
    _text(2, "metricName"),
    _wrapped(3, "timestamp", _time),
    _number_if_there(4, "window"),
    _wrapped(5, "value", _quantity),
    _one_if_there(6, "selector", _SELECTOR),
)
_METRIC = (_text(1, "name"), _one_if_there(2, "selector", _SELECTOR))
_VALUE_OF_V1BETA2 = (
    _one(1, "describedObject", _OBJECT),
    _one(2, "metric", _METRIC),
    _wrapped(3, "timestamp", _time),
    _number_if_there(4, "windowSeconds"),
    _wrapped(5, "value", _quantity),
)

# By kind, or by version and kind where one kind has several.
_MESSAGES: dict[str, _Message] = {
    "Status": _STATUS,
    "APIGroup": _GROUP,
    "APIGroupList": (_each(1, "groups", _GROUP),),
    "APIResourceList": (_text(1, "groupVersion"), _each(2, "resources", _RESOURCE)),
    "APIGroupDiscoveryList": (_METADATA, _each(2, "items", _DISCOVERED_GROUP)),
    "PartialObjectMetadataList": (_METADATA,),
    "ExternalMetricValueList": (_METADATA, _each(2, "items", _EXTERNAL_VALUE)),
    "custom.metrics.k8s.io/v1beta1/MetricValueList": (_METADATA, _each(2, "items", _VALUE_OF_V1BETA1)),
    "custom.metrics.k8s.io/v1beta2/MetricValueList": (_METADATA, _each(2, "items", _VALUE_OF_V1BETA2)),
}
