"""What another adapter sent -> its list of metrics, an answer to pass on, or what is wrong with it."""

from dataclasses import dataclass

import msgspec

from adapter.errors import AdapterError

LISTS = ("ExternalMetricValueList", "MetricValueList")

_JSON, _PROTOBUF, _YAML = "application/json", "application/vnd.kubernetes.protobuf", "application/yaml"
_TEXT = "text/plain"  # some errors of Go's servers
_FRAME = b"k8s\x00"  # what the protobuf of Kubernetes begins with
_LONGEST_WORDS = 512  # characters of an error that are repeated


class UnansweredError(AdapterError):
    """There is no answer. kind: `late`, `unreachable`, `malformed` or `large`."""

    def __init__(self, kind: str, cause: str) -> None:
        self.kind = kind
        super().__init__(cause)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. media_type: without parameters, in lower case; content_type: as it was sent."""

    code: int
    content_type: str
    body: bytes

    @property
    def media_type(self) -> str:
        """The Content-Type without its parameters."""
        return self.content_type.partition(";")[0].strip().lower()


class Resource(msgspec.Struct):
    """An entry of a list of metrics. name: of custom.metrics.k8s.io the resource and the metric, `pods/backlog`."""

    name: str
    namespaced: bool = True


class _ResourceList(msgspec.Struct):
    resources: list[Resource] | None = None


class _Document(msgspec.Struct):
    kind: str = ""
    message: str = ""


def listed(reply: Reply) -> list[Resource]:
    """The entries of an APIResourceList. Raises UnansweredError for anything else."""
    if reply.code != 200:
        raise UnansweredError("unreachable", f"expected 200, got {reply.code}: {message(reply)}")
    try:
        return msgspec.json.decode(reply.body, type=_ResourceList).resources or []
    except (ValueError, RecursionError) as error:  # also what is no UTF-8
        raise UnansweredError("malformed", f"expected an APIResourceList in JSON: {error}") from error


def check(reply: Reply) -> None:
    """Raises UnansweredError for what no adapter answers; an error that is told as the API tells errors is sound."""
    if 300 <= reply.code < 400:
        raise UnansweredError("malformed", f"it redirects ({reply.code}), which is not followed")
    is_error = 400 <= reply.code < 600
    expected = (_JSON, _PROTOBUF, _YAML, _TEXT) if is_error else (_JSON, _PROTOBUF, _YAML)
    if not (is_error or reply.code == 200) or reply.media_type not in expected:
        raise UnansweredError("malformed", f"expected a list of values, got {reply.code} {reply.content_type[:50]!r}")
    if reply.media_type == _PROTOBUF and not reply.body.startswith(_FRAME):
        raise UnansweredError("malformed", "expected protobuf of Kubernetes, got something else")
    if reply.media_type == _JSON:
        kind = _decoded(reply).kind
        if kind not in LISTS and not is_error:
            raise UnansweredError("malformed", f"expected a list of values, got one {kind[:50]!r}")


def _decoded(reply: Reply) -> _Document:
    try:
        return msgspec.json.decode(reply.body, type=_Document)
    except (ValueError, RecursionError) as error:  # also what is no UTF-8
        raise UnansweredError("malformed", f"expected an object in JSON: {error}") from error


def message(reply: Reply) -> str:
    """What an error says of itself, on one line."""
    try:
        text = _decoded(reply).message
    except UnansweredError:
        text = reply.body[:_LONGEST_WORDS].decode("utf-8", "replace")
    return " ".join(text.split())[:_LONGEST_WORDS]
