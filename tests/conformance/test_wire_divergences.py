"""The divergences that are listed: each holds for what is asked, and its own answer is checked too."""

import json
import re
from typing import Any

import pytest

from conformance.asking import Caller
from conformance.divergences import DIVERGENCES, Divergence, of, table
from conformance.identities import UNVERIFIED
from conformance.recording import Answered, Asked, Dropped, Outcome, Row

BY_NAME = {each.name: each for each in DIVERGENCES}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
SELECTED = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/pods/*/m?metricLabelSelector="
JSON = {"content-type": "application/json"}


class Scripted(Caller):
    """A server that answers what it is told to."""

    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes = list(outcomes)

    def ask_in_turn(self, *requests: Asked) -> list[Outcome]:
        return self._outcomes[: len(requests)]


def row(outcome: Outcome, uri: str = "/apis", identity: str = "admin") -> Row:
    return Row("some-001", Asked("GET", uri, identity), outcome)


def status(code: int, message: str, **fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "message": message, **fields, "code": code}, separators=(",", ":")).encode()


def discovery(*items: Any) -> Answered:
    document = {"kind": "APIGroupDiscoveryList", "metadata": {}, "items": items}
    return Answered(200, {"content-type": AGGREGATED, "etag": '"a"'}, json.dumps(document).encode())


def group(freshness: str = "Current", resources: int = 1) -> dict[str, Any]:
    return {"versions": [{"version": "v1", "freshness": freshness, "resources": [{}] * resources}]}


EMPTY = row(discovery())
BROKEN_SELECTOR = row(Answered(500, JSON, status(500, "no")), SELECTED + "%24")
STRANGER = row(Answered(401, JSON, b""), identity="rogue")
CRASH = row(Dropped("RemoteDisconnected"))
DELAYED = row(Answered(504, JSON | {"retry-after": "7"}, status(504, "no", details={"a": 1, "retryAfterSeconds": 7})))
CRASHED = Answered(500, JSON, status(500, "the log says which", reason="InternalError"))
ALIVE = Answered(200, {}, b"ok")

MEANT = [
    ("filled-discovery", EMPTY, discovery(group()), ()),
    ("bad-metric-selector", BROKEN_SELECTOR, Answered(400, JSON, status(400, "no", reason="BadRequest")), ()),
    *(("unverified-certificate", row(STRANGER.outcome, identity=name), Dropped("SSLError"), ()) for name in UNVERIFIED),
    ("source-crashes", CRASH, CRASHED, (CRASHED, ALIVE)),
    ("no-retry-after", DELAYED, Answered(504, JSON, status(504, "no", details={"a": 1})), ()),
]


@pytest.mark.parametrize(("name", "recorded", "ours", "again"), MEANT)
def test_what_is_meant_is_no_fault(name: str, recorded: Row, ours: Outcome, again: tuple[Outcome, ...]) -> None:
    """case 4, 58, 72, 76"""
    assert of(recorded) == [BY_NAME[name]]
    assert BY_NAME[name].faults(recorded, ours, Scripted(*again)) == []


@pytest.mark.parametrize(
    ("name", "recorded", "ours", "again"),
    [
        pytest.param("filled-discovery", EMPTY, discovery(), (), id="empty as well"),
        pytest.param("filled-discovery", EMPTY, discovery(group("Stale")), (), id="stale"),
        pytest.param("filled-discovery", EMPTY, discovery(group(), group(resources=0)), (), id="an empty version"),
        pytest.param("filled-discovery", EMPTY, Answered(200, JSON, b"{}"), (), id="another document"),
        pytest.param("filled-discovery", EMPTY, Dropped("SSLError"), (), id="no document"),
        pytest.param(
            "bad-metric-selector", BROKEN_SELECTOR, Answered(400, JSON, status(400, "?", reason="BadRequest")), (),
            id="in other words",
        ),
        pytest.param("unverified-certificate", STRANGER, Answered(200, JSON, b""), (), id="a stranger is served"),
        pytest.param("source-crashes", CRASH, CRASHED, (CRASHED, Dropped("BrokenPipeError")), id="the connection ends"),
        pytest.param("source-crashes", CRASH, ALIVE, (ALIVE, ALIVE), id="a crash is hidden"),
        pytest.param(
            "source-crashes", CRASH, CRASHED,
            (Answered(500, JSON, status(500, "the source panicked", reason="InternalError")), ALIVE),
            id="the inside is told",
        ),
        pytest.param("no-retry-after", DELAYED, Answered(504, JSON, status(504, "no")), (), id="details are lost"),
    ],
)  # fmt: skip
def test_a_difference_that_is_not_the_one_meant_is_a_fault(
    name: str, recorded: Row, ours: Outcome, again: tuple[Outcome, ...]
) -> None:
    assert BY_NAME[name].faults(recorded, ours, Scripted(*again)) != []


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param(row(Answered(200, JSON, b"{}")), id="plain discovery"),
        pytest.param(row(Answered(500, JSON, b"")), id="another failure"),
        pytest.param(row(Answered(200, JSON, b""), SELECTED + "a"), id="a good selector"),
        pytest.param(row(Answered(401, JSON, b""), identity="badproxy"), id="a known CA's certificate"),
    ],
)
def test_nothing_else_may_diverge(recorded: Row) -> None:
    assert of(recorded) == []


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=lambda each: each.name)
def test_every_divergence_has_a_row_in_the_table(divergence: Divergence) -> None:
    found = [line for line in table().splitlines() if line.startswith(f"| `{divergence.name}` |")]
    assert len(found) == 1
    assert len(re.findall(r"(?<!\\)\|", found[0])) == 6
    assert divergence.because in found[0]
