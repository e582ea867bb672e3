"""What every answer is, whatever was asked: the claims of the tests, apart from how they ask."""

import gzip
import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from adapter.serving.api.rendering import Response

CODES = frozenset((200, 301, 304, 400, 401, 403, 404, 405, 406, 422, 500, 503))
# A 500 that is meant: a path that Go's servers cannot read either, a kind that a list has no form in, a review that
# breaks. Each says so; nothing else is one.
MEANT = re.compile(
    r"Internal Server Error: \".*\": (failed to create RequestInfo: |the stand-in breaks off this review)"
    r"|object does not implement the Object interfaces",
    re.DOTALL,
)
_EMPTY = (301, 304)
_TOKEN = re.compile(rb"[a-z0-9!#$%&'*+.^_`|~-]+")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check(response: Response) -> Any:
    """Raises AssertionError where the response is not one that HTTP and Kubernetes can read. Returns what it says."""
    assert response.code in CODES
    fields = sound_fields(response)
    if response.code in _EMPTY:
        assert response.body == b""
        return None
    assert int(fields.get("content-length", len(response.body))) == len(response.body)
    said = read(fields.get("content-type", ""), _plain(fields, response.body))
    if response.code == 500:
        assert MEANT.search(said if isinstance(said, str) else said["message"])
    return said


def sound_fields(response: Response) -> Mapping[str, str]:
    """Its headers, each of which can be sent, and stands there once."""
    for name, value in response.headers:
        assert _TOKEN.fullmatch(name)
        assert not set(value) & set(b"\r\n\0")
    fields = {name.decode(): value.decode("latin-1") for name, value in response.headers}
    assert len(fields) == len(response.headers)
    assert fields["audit-id"]
    assert "retry-after" not in fields
    return fields


def _plain(fields: Mapping[str, str], body: bytes) -> bytes:
    return gzip.decompress(body) if fields.get("content-encoding") == "gzip" else body


def read(content_type: str, body: bytes) -> Any:
    """What a body says: a document, or text."""
    media_type = content_type.partition(";")[0]
    if media_type == "application/json":
        document = json.loads(body)
        assert isinstance(document, dict)
        return document
    if media_type == "application/yaml":
        return yaml.load(body, _LOADER)  # noqa: S506  # a safe one
    if media_type == "application/vnd.kubernetes.protobuf":
        return _unpacked(body)
    assert media_type == "text/plain" or body == b""
    return body.decode()


def _unpacked(body: bytes) -> dict[str, Any]:
    """As much of a message in its envelope as every kind has: the kind; of a Status the words too."""
    assert body[:4] == b"k8s\0"
    envelope = _parts(body[4:])
    about, inner = _parts(envelope[1]), _parts(envelope[2])
    kind = about[2].decode()
    found: dict[str, Any] = {"kind": kind}
    return found | {"message": inner[3].decode(), "code": inner[6]} if kind == "Status" else found


def _parts(message: bytes) -> dict[int, Any]:
    """The last value of each field: a number, or bytes."""
    found: dict[int, Any] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, at = _varint(message, at)
        if key & 7 == 2:
            found[key >> 3] = message[at : at + number]
            at += number
        else:
            found[key >> 3] = number
    assert at == len(message)
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (message[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if message[at - 1] < 0x80:
            return number, at
