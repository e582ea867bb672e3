"""What a recording tells of what was given to the recorded server: its release, and the words of what failed around it.

A server hands these on. A replay has to give it the same.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from adapter.serving.api.status import Answer, Document, failure
from adapter.serving.api.version import PATH as VERSION_PATH
from adapter.serving.api.version import Version
from conformance.cluster import BROKEN
from conformance.recording import Answered, Row

_decoder = msgspec.json.Decoder(dict[str, Any])
# What an access review that broke was answered with, and how Go's client words a body that is no Status.
_UNDECIDED = re.compile(r'Internal Server Error: "[^"]*": (.*)\n')
_NO_STATUS = re.compile(r'an error on the server \("(.*)"\) has prevented the request from succeeding \(.*\)')


@dataclass(frozen=True, slots=True)
class Given:
    """version: the release. failures: what sources called `e-...` fail with, by metric. broken_review: the body of an
    access review that breaks."""

    version: Version
    failures: Mapping[str, Answer]
    broken_review: str


def told_by(rows: Sequence[Row]) -> Given:
    """Of the recorded server; what the rows do not tell is as it is here."""
    return Given(_version(rows), _failures(rows), _broken_review(rows))


def _version(rows: Iterable[Row]) -> Version:
    for row in rows:
        outcome = row.outcome
        if row.asked.uri == VERSION_PATH and isinstance(outcome, Answered) and outcome.status == 200:
            with suppress(msgspec.DecodeError):
                return Version(_decoder.decode(outcome.body or b""))
    return Version()


def _failures(rows: Iterable[Row]) -> Mapping[str, Answer]:
    found: dict[str, Answer] = {}
    for row in rows:
        metric, outcome = row.asked.uri.partition("?")[0].rpartition("/")[2], row.outcome
        if metric.startswith("e-") and row.asked.identity == "admin" and isinstance(outcome, Answered):
            with suppress(msgspec.DecodeError):
                document = _without_delay(_decoder.decode(outcome.body or b""))
                found.setdefault(metric, Answer(outcome.status, document))  # later rows ask in odd ways
    return found


def _without_delay(document: Document) -> Document:
    """A failure without the seconds after which to ask again: no source of ours gives them."""
    if "details" not in document:
        return document
    details = {key: value for key, value in document["details"].items() if key != "retryAfterSeconds"}
    return document | {"details": details}


def _broken_review(rows: Iterable[Row]) -> str:
    bodies = (row.outcome.body for row in rows if isinstance(row.outcome, Answered) and row.outcome.status == 500)
    told = (_UNDECIDED.fullmatch(body.decode("utf-8", "replace")) for body in bodies if body is not None)
    cause = next((each[1] for each in told if each is not None), None)
    if cause is None:
        return BROKEN
    bare = _NO_STATUS.fullmatch(cause)
    return bare[1] if bare else json.dumps(failure(500, "InternalError", cause).document)
