"""Where this server means to answer otherwise than the recorded one: what it answers instead, and why.

A divergence holds for what is asked, not for a line of a recording, and only where the two answers differ. Its own
answer is checked too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import parse_qs

import msgspec
import yaml

from adapter.serving.api import custom, external
from adapter.serving.api.negotiation import PROTOBUF
from adapter.serving.api.status import Document
from conformance.asking import Caller
from conformance.comparing import differences
from conformance.fixture import PANIC
from conformance.identities import UNVERIFIED
from conformance.recording import Answered, Asked, Dropped, Outcome, Row

# What is wrong with our answer, taken as one that is meant to differ.
Faults = Callable[[Row, Outcome, Caller], list[str]]

_DISCOVERY = "as=APIGroupDiscoveryList"
_ALIVE = Asked("GET", "/livez", "none")


@dataclass(frozen=True, slots=True)
class Divergence:
    """asked, theirs, ours, because: for the README. applies: whether a row is of this kind."""

    name: str
    asked: str
    theirs: str
    ours: str
    because: str
    applies: Callable[[Row], bool]
    faults: Faults


def of(row: Row) -> list[Divergence]:
    """The divergences that a row may be."""
    return [each for each in DIVERGENCES if each.applies(row)]


def table() -> str:
    """The divergences in Markdown."""
    rows = [f"| `{each.name}` | {each.asked} | {each.theirs} | {each.ours} | {each.because} |" for each in DIVERGENCES]
    head = "| Name | Asked | The Go server | Here | Why |\n|---|---|---|---|---|"
    return "\n".join([head, *rows]) + "\n"


class _Version(msgspec.Struct):
    freshness: str
    resources: list[dict[str, Any]]


class _Group(msgspec.Struct):
    versions: list[_Version]


class _Discovery(msgspec.Struct):
    kind: Literal["APIGroupDiscoveryList"]
    items: list[_Group]


def _is_aggregated(row: Row) -> bool:
    return isinstance(row.outcome, Answered) and _DISCOVERY in row.outcome.headers.get("content-type", "")


def _is_filled(row: Row, ours: Outcome, _: Caller) -> list[str]:
    return _except_for_body(_answered(row), ours) or _unfilled(ours)


def _unfilled(ours: Outcome) -> list[str]:
    if isinstance(ours, Answered) and PROTOBUF in ours.headers.get("content-type", ""):
        missing = [group for group in (custom.GROUP, external.GROUP) if group.encode() not in (ours.body or b"")]
        return [f"expected {group} in it" for group in missing]
    try:
        discovery = msgspec.convert(_document(ours), _Discovery)
    except msgspec.ValidationError as error:
        return [str(error)]
    versions = [version for group in discovery.items for version in group.versions]
    if versions and all(version.freshness == "Current" and version.resources for version in versions):
        return []
    return ["expected resources in every version, all Current"]


def _breaks_on_metric_selector(row: Row) -> bool:
    given = parse_qs(row.asked.uri.partition("?")[2])
    broken = isinstance(row.outcome, Answered) and row.outcome.status == 500
    return broken and "metricLabelSelector" in given


def _is_bad_request(row: Row, ours: Outcome, _: Caller) -> list[str]:
    recorded = _answered(row)
    document = _document(recorded)
    expected = document | {"reason": "BadRequest", "code": 400} if document else document
    return _except_for_body(replace(recorded, status=400), ours) or _other_document(expected, ours)


def _has_unverified_certificate(row: Row) -> bool:
    return row.asked.identity in UNVERIFIED


def _is_dropped(row: Row, ours: Outcome, _: Caller) -> list[str]:
    return [] if isinstance(ours, Dropped) else [f"expected the handshake to fail, got an answer ({ours.status})"]


def _gives_nothing(row: Row) -> bool:
    return isinstance(row.outcome, Dropped)


def _is_told_and_goes_on(row: Row, ours: Outcome, caller: Caller) -> list[str]:
    told, after = caller.ask_in_turn(row.asked, _ALIVE)
    found = [] if _is_internal_error(told) else ["expected a Status of an internal error, without the source's words"]
    return [*found, "expected the connection to be kept"] if isinstance(after, Dropped) else found


def _is_internal_error(told: Outcome) -> bool:
    if isinstance(told, Dropped) or told.body is None:
        return False
    return told.status == 500 and b"InternalError" in told.body and PANIC.encode() not in told.body


def _has_delay(row: Row) -> bool:
    return isinstance(row.outcome, Answered) and "retry-after" in row.outcome.headers


def _has_none(row: Row, ours: Outcome, _: Caller) -> list[str]:
    recorded = _answered(row)
    headers = {name: value for name, value in recorded.headers.items() if name != "retry-after"}
    expected = _document(recorded)
    expected.get("details", {}).pop("retryAfterSeconds", None)
    return _except_for_body(replace(recorded, headers=headers), ours) or _other_document(expected, ours)


def _except_for_body(recorded: Answered, ours: Outcome) -> list[str]:
    return differences(replace(recorded, body=None), ours)


def _other_document(expected: Document, ours: Outcome) -> list[str]:
    got = _document(ours)
    return [] if got == expected else [f"expected {expected}, got {got}"]


def _document(outcome: Outcome) -> Document:
    """What an answer says, in JSON or YAML; empty for what is neither."""
    body = None if isinstance(outcome, Dropped) else outcome.body
    try:
        document = yaml.safe_load((body or b"").decode())
    except (UnicodeDecodeError, yaml.YAMLError):
        return {}
    return document if isinstance(document, dict) else {}


def _answered(row: Row) -> Answered:
    if isinstance(row.outcome, Dropped):
        raise TypeError(f"{row.id}: expected a recorded answer")
    return row.outcome


DIVERGENCES = (
    Divergence(
        name="filled-discovery",
        asked="`GET /apis` as aggregated discovery v2",
        theirs="an empty list",
        ours="every group, version and metric, with an ETag of its own",
        because="an empty list is believed: the API server then shows the version without a single metric",
        applies=_is_aggregated,
        faults=_is_filled,
    ),
    Divergence(
        name="bad-metric-selector",
        asked="a `metricLabelSelector` that does not parse, or has `>`, `<` or `!=`",
        theirs="500",
        ours="400 with the same message, as for `labelSelector`",
        because="the fault is the caller's, and a 500 sends its reader to look for it here",
        applies=_breaks_on_metric_selector,
        faults=_is_bad_request,
    ),
    Divergence(
        name="unverified-certificate",
        asked="anything, with a client certificate of an unknown CA, that has expired, or that is not for clients",
        theirs="401",
        ours="the TLS handshake fails",
        because="Python's TLS verifies a certificate that is presented; nobody is served either way",
        applies=_has_unverified_certificate,
        faults=_is_dropped,
    ),
    Divergence(
        name="source-crashes",
        asked="a metric whose source crashes",
        theirs="the connection is closed without an answer",
        ours="500 `InternalError` without a word of the inside; the connection is kept",
        because="an HPA shows a `Status` to its reader, and neighbours on the connection lose nothing",
        applies=_gives_nothing,
        faults=_is_told_and_goes_on,
    ),
    Divergence(
        name="no-retry-after",
        asked="a metric whose source gives a delay with its failure",
        theirs="`Retry-After` and `retryAfterSeconds`",
        ours="the same answer without them",
        because="the HPA controller would sleep on it with one of its five workers, up to ten times",
        applies=_has_delay,
        faults=_has_none,
    ),
)
