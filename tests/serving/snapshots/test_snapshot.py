"""A snapshot on its way: what another release wrote is told as that, whatever else it says."""

import pytest
from serving_builders import entry, snapshot

from adapter.core.decisions import Bound, Reason
from adapter.serving.snapshots.snapshot import VERSION, decode, encode

BODY = encode(snapshot(entry(reason=Reason.HOLD, bound=Bound.MAX)))


def changed(old: bytes, new: bytes) -> bytes:
    """The body with one thing in it replaced."""
    assert old in BODY
    return BODY.replace(old, new)


def of_version(version: int, body: bytes = BODY) -> bytes:
    return body.replace(b'"version":%d' % VERSION, b'"version":%d' % version)


def test_what_was_encoded_is_decoded() -> None:
    assert decode(BODY) == snapshot(entry(reason=Reason.HOLD, bound=Bound.MAX))


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        changed(b'"Hold"', b'"Foreseen"'),
        changed(b'"bound":"max"', b'"bound":"moon"'),
        changed(b'"required_workers"', b'"wanted"').replace(b'"decision"', b'"verdict"'),
        b'{"version":%d}' % VERSION,
    ],
    ids=["nothing else", "a reason", "a bound", "a field", "all of it"],
)
@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_of_another_release_the_version_is_the_fault_whatever_else_differs(body: bytes, version: int) -> None:
    told = f"snapshot of version {version}, expected {VERSION}: run one release of pipeline and serve"
    with pytest.raises(ValueError, match=told):
        decode(of_version(version, body))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        BODY[:-20],
        changed(b'"Hold"', b'"Foreseen"'),
        of_version(7).replace(b":7", b':"7"'),
        b'{"version":%d,"at_s":' % VERSION + b"[" * 100_000,
        changed(b'"tick_s":15.0', b'"tick_s":NaN'),
        changed(b'"tick_s":15.0', b'"tick_s":1e999'),
    ],
    ids=[
        "empty",
        "a list",
        "no version",
        "truncated",
        "an unknown reason",
        "a version that is no number",
        "nested too deep",
        "not a number",
        "infinite",
    ],
)
def test_what_is_no_snapshot_of_this_version_is_told_as_such(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a snapshot"):
        decode(body)
