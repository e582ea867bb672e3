"""Compare a recorded response with ours by meaning.

Compared are the status, the content type, `Retry-After`, the parsed JSON of a success, and `reason` and `code` of an
error. The text of an error is not: it is each server's own.
"""

import json
import re
from typing import Any

from conformance.recording import Outcome, Response

_LONGEST = 60  # characters shown of a value
# Each server reports its own port in the list of groups.
_ADDRESS = re.compile(rb'"serverAddress":\s*"[^"]*"')


def differences(recorded: Outcome, ours: Outcome) -> list[str]:
    """One sentence for each difference; empty for the same meaning."""
    if recorded is None or ours is None:
        same = recorded is None and ours is None
        return [] if same else [f"connection: expected {_summary(recorded)}, got {_summary(ours)}"]
    pairs = {
        "status": (recorded.status, ours.status),
        "content type": (recorded.media_type, ours.media_type),
        "retry-after": (recorded.headers.get("retry-after"), ours.headers.get("retry-after")),
    }
    found = [f"{name}: expected {theirs}, got {our}" for name, (theirs, our) in pairs.items() if theirs != our]
    return found + _body_differences(recorded, ours)


def _body_differences(recorded: Response, ours: Response) -> list[str]:
    if recorded.status >= 400:
        theirs, our = recorded.document, ours.document
        fields = ("reason", "code") if theirs.get("kind") == "Status" else ()
        return [f"{name}: expected {theirs.get(name)}, got {our.get(name)}" for name in fields
                if theirs.get(name) != our.get(name)]  # fmt: skip
    if not recorded.body or not recorded.media_type.startswith("application/json"):
        return []
    return json_differences(_comparable(recorded), _comparable(ours), "")


def _comparable(response: Response) -> dict[str, Any]:
    body = None if response.body is None else _ADDRESS.sub(b'"serverAddress":""', response.body)
    return Response(response.status, response.headers, body).document


def json_differences(expected: Any, got: Any, path: str) -> list[str]:
    """Where two JSON values differ, each place with its path."""
    if isinstance(expected, dict) and isinstance(got, dict):
        names = sorted(expected.keys() | got.keys())
        pairs = [(name, expected.get(name), got.get(name)) for name in names]
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        pairs = [(str(place), *pair) for place, pair in enumerate(zip(expected, got, strict=True))]
    else:
        return [] if expected == got else [f"body at {path}: expected {_excerpt(expected)}, got {_excerpt(got)}"]
    return [found for name, one, other in pairs for found in json_differences(one, other, f"{path}.{name}")]


def _excerpt(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _summary(outcome: Outcome) -> str:
    return "no response" if outcome is None else f"a response with status {outcome.status}"
