"""A recording -> the same with our names for what each server names itself: its port, and its documents by ETags."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from conformance.asking import Caller
from conformance.recording import Answered, Outcome, Row

_PORT = re.compile(rb'"serverAddress":\s*"(:\d+)"')
_CONDITIONS = ("if-none-match", "if-match", "range")


def renamed(rows: Sequence[Row], caller: Caller) -> list[Row]:
    """The rows as they would be, had the recorded server been this one. Requests are renamed as well as answers."""
    names = dict(chain(_ports(rows, caller), _etags(rows, caller)))
    return [_renamed(row, names) for row in rows]


def _ports(rows: Iterable[Row], caller: Caller) -> Iterable[tuple[str, str]]:
    """Their port, which the list of groups tells."""
    bodies = (row.outcome.body for row in rows if isinstance(row.outcome, Answered) and row.outcome.body)
    found = next((found for body in bodies if (found := _PORT.search(body))), None)
    if found is not None:
        yield found[1].decode(), f":{caller.port}"


def _etags(rows: Iterable[Row], caller: Caller) -> Iterable[tuple[str, str]]:
    """Their ETags, each with the one of our answer to the first request that got it."""
    seen = set()
    for row in rows:
        theirs = _etag(row.outcome)
        if theirs and theirs not in seen:
            seen.add(theirs)
            yield theirs, _etag(caller.ask(row.asked.without(*_CONDITIONS))) or theirs


def _etag(outcome: Outcome) -> str:
    return outcome.headers.get("etag", "").strip('"') if isinstance(outcome, Answered) else ""


def _renamed(row: Row, names: Mapping[str, str]) -> Row:
    headers = tuple((name, _in_our_names(value, names)) for name, value in row.asked.headers)
    asked = replace(row.asked, uri=_in_our_names(row.asked.uri, names), headers=headers)
    return replace(row, asked=asked, outcome=_renamed_outcome(row.outcome, names))


def _renamed_outcome(outcome: Outcome, names: Mapping[str, str]) -> Outcome:
    if not isinstance(outcome, Answered):
        return outcome
    headers = {name: _in_our_names(value, names) for name, value in outcome.headers.items()}
    if outcome.body is None:
        return replace(outcome, headers=headers)
    body = _in_our_names(outcome.body.decode("latin-1"), names).encode("latin-1")
    return replace(outcome, headers=headers, body=body)


def _in_our_names(text: str, names: Mapping[str, str]) -> str:
    for theirs, ours in names.items():
        text = text.replace(theirs, ours)
    return text
