"""A recorded answer and ours -> what differs, in words."""

from collections.abc import Mapping

from conformance.recording import Dropped, Outcome

# Headers that differ from answer to answer, or that say how it was carried.
_PASSING = frozenset({"date", "audit-id", "content-length", "connection", "keep-alive", "transfer-encoding"})
# Headers that a caller acts on: none of them may come without being recorded. Recordings leave out others.
_ACTED_ON = frozenset(
    {"allow", "cache-control", "content-encoding", "content-type", "etag", "location", "retry-after", "vary"}
    | {"www-authenticate", "x-content-type-options"}
)
_AROUND = 24  # bytes shown on either side of the first difference


def differences(recorded: Outcome, ours: Outcome) -> list[str]:
    """What differs; empty where the two are the same."""
    if isinstance(recorded, Dropped) or isinstance(ours, Dropped):
        return [] if recorded == ours else [f"connection: expected {_told(recorded)}, got {_told(ours)}"]
    found = [] if recorded.status == ours.status else [f"status: expected {recorded.status}, got {ours.status}"]
    found += header_differences(recorded.headers, ours.headers)
    return found + body_differences(recorded.body, ours.body)


def header_differences(recorded: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """What differs among the headers; those of the passage are no matter."""
    names = (recorded.keys() | (ours.keys() & _ACTED_ON)) - _PASSING
    return [
        f"header {name}: expected {_quoted(recorded.get(name))}, got {_quoted(ours.get(name))}"
        for name in sorted(names)
        if not _same(name, recorded.get(name), ours.get(name))
    ]


def _same(name: str, recorded: str | None, ours: str | None) -> bool:
    if recorded is None or ours is None:
        return False
    if name == "vary":  # recordings keep one of several
        return {*recorded.split(", ")} <= {*ours.split(", ")}
    return recorded == ours


def body_differences(recorded: bytes | None, ours: bytes | None) -> list[str]:
    """Where the bodies part. A body that was not recorded is like every other."""
    if recorded is None or ours is None or recorded == ours:
        return []
    shorter = min(len(recorded), len(ours))
    at = next((place for place in range(shorter) if recorded[place] != ours[place]), shorter)
    return [f"body at byte {at}: expected {_excerpt(recorded, at)}, got {_excerpt(ours, at)}"]


def _told(outcome: Outcome) -> str:
    return f"an end ({outcome.how})" if isinstance(outcome, Dropped) else f"an answer ({outcome.status})"


def _quoted(value: str | None) -> str:
    return "none" if value is None else repr(value)


def _excerpt(body: bytes, at: int) -> str:
    text = body[max(at - _AROUND, 0) : at + _AROUND].decode("utf-8", "backslashreplace")
    return repr(text) if body else "nothing"
