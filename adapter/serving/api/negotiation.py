"""An Accept header -> the media type of the answer, with the order and the errors of Kubernetes' API servers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adapter.serving.api.remembering import remembered
from adapter.serving.api.status import Answer, Refusal, failure

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"

# What is written, in the order of preference; and what a watch could be, were there one.
_TYPES = (JSON, YAML, PROTOBUF)
_STREAMED = (JSON, PROTOBUF)
_WITH_STREAMS = (*_TYPES, *(f"{name};stream=watch" for name in _STREAMED))

_MOST_CLAUSES = 100  # the rest is not read
# Each digit fits in one place only: looking for another would take the square of their number.
_QUALITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Transform:
    """The kind that is wanted in place of the one that is there."""

    group: str
    version: str
    kind: str


_AGGREGATED = Transform("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
_PARTIAL = frozenset(
    Transform("meta.k8s.io", version, kind)
    for version in ("v1", "v1beta1")
    for kind in ("PartialObjectMetadata", "PartialObjectMetadataList")
)


@dataclass(frozen=True, slots=True)
class MediaType:
    """What an answer is written as. indented: JSON for people. transform: None for the kind that is there."""

    name: str
    indented: bool = False
    transform: Transform | None = None

    @property
    def content_type(self) -> str:
        """What the answer's Content-Type says: of aggregated discovery which, of other transforms nothing."""
        if self.transform != _AGGREGATED:
            return self.name
        return f"{self.name};g={self.transform.group};v={self.transform.version};as={self.transform.kind}"


# For an error, when nothing that is accepted can be written.
FOR_PEOPLE = MediaType(JSON, indented=True)
AGGREGATED_JSON = MediaType(JSON, transform=_AGGREGATED)


@dataclass(frozen=True, eq=False, slots=True)
class Offer:
    """What an answer can be sent as. representations: of its route. transforms: what it can be turned into, None among
    them where it is sent as it is. server_version: what a caller may ask for by `sv`."""

    representations: tuple[str, ...]
    transforms: frozenset[Transform | None]
    server_version: str = ""


_PLAIN = frozenset([None])
DISCOVERY = Offer(_TYPES, _PLAIN)
AGGREGATED = Offer(_TYPES, frozenset([_AGGREGATED]))
EXTERNAL = Offer(_WITH_STREAMS, _PLAIN | _PARTIAL, server_version="v1")
CUSTOM = Offer(_WITH_STREAMS, _PLAIN)


def negotiate(accept: str, offer: Offer = EXTERNAL) -> MediaType:
    """What an answer is written as. Raises Refusal (406)."""
    found = _negotiated(accept, offer)
    if isinstance(found, Answer):
        raise Refusal(found)
    return found


@remembered(most=1024, longest=512)
def _negotiated(accept: str, offer: Offer) -> MediaType | Answer:
    try:
        check_acceptable(accept, offer.representations)
    except Refusal as refusal:
        return refusal.answer
    message = f"only the following media types are accepted: {', '.join(_TYPES)}"
    return _found(accept, offer) or failure(406, "NotAcceptable", message)


def check_acceptable(accept: str, representations: Sequence[str]) -> None:
    """What a route asks first: one of the bare types, letter by letter. Raises Refusal (406)."""
    if not _covers(accept, tuple(representations)):
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(representations)}"
        raise Refusal(failure(406, "NotAcceptable", message, {}))


@remembered(most=1024, longest=512)
def _covers(accept: str, representations: tuple[str, ...]) -> bool:
    types = (clause.partition(";")[0].strip(" ") for clause in accept.split(","))
    return not accept or any(name == "*/*" or name in representations for name in types)


def of_error(accept: str) -> MediaType:
    """What an error is written as: it is told, whatever is accepted."""
    return _found(accept, DISCOVERY) or FOR_PEOPLE


def takes_aggregated(accept: str) -> MediaType | None:
    """What aggregated discovery is written as; None when it is not wanted."""
    return _found(accept, AGGREGATED) if accept else None


@dataclass(frozen=True, slots=True)
class _Clause:
    main: str
    sub: str
    parameters: Mapping[str, str]
    quality: float

    def comes_before(self, other: "_Clause") -> bool:
        # No order in the mathematical sense: where both come before each other, the place in the header decides.
        if self.quality > other.quality or (self.main != "*" and other.main == "*"):
            return True
        return self.sub != "*" and other.sub == "*"

    def covers(self, name: str) -> bool:
        main, _, sub = name.partition("/")
        return (self.main, self.sub) in ((main, sub), (main, "*"), ("*", "*"))


@remembered(most=1024, longest=512)
def _found(accept: str, offer: Offer) -> MediaType | None:
    if not accept:
        return MediaType(JSON)
    for clause in _clauses(accept):
        for name in filter(clause.covers, _TYPES):
            media = _of_clause(clause.parameters, name, offer)
            if media is not None:
                return media
    return None


def _of_clause(parameters: Mapping[str, str], name: str, offer: Offer) -> MediaType | None:
    if parameters.get("stream", "watch") != "watch" or ("stream" in parameters and name not in _STREAMED):
        return None
    if parameters.get("sv", offer.server_version) != offer.server_version:
        return None
    transform = None
    if not parameters.keys().isdisjoint(("g", "v", "as")):
        transform = Transform(*(parameters.get(key, "") for key in ("g", "v", "as")))
    if transform not in offer.transforms:
        return None
    return MediaType(name, parameters.get("pretty") == "1", transform)


def _clauses(accept: str) -> Sequence[_Clause]:
    """The preferred first."""
    ordered: list[_Clause] = []
    for text in accept.split(",")[:_MOST_CLAUSES]:
        clause = _clause(text.strip(" "))
        if clause is not None:
            place = len(ordered)
            while place and clause.comes_before(ordered[place - 1]):
                place -= 1
            ordered.insert(place, clause)
    return ordered


def _clause(text: str) -> _Clause | None:
    media, _, rest = text.partition(";")
    main, _, sub = media.partition("/")
    main = main.strip(" ")
    sub, _, more = (sub or ("*" if main == "*" else "")).partition("/")
    if more or not sub:
        return None
    parameters = dict(_parameters(rest))
    quality = parameters.pop("q", "1")
    return _Clause(main, sub.strip(" "), parameters, float(quality) if _QUALITY.fullmatch(quality) else 0.0)


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for parameter in text.split(";"):
        name, _, value = parameter.partition("=")
        value, _, more = value.partition("=")
        name = name.strip(" ")
        if value and not more:
            # A blank before a quality makes it none.
            yield name, value if name == "q" else value.strip(" ")
