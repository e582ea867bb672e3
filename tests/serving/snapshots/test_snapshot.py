"""A snapshot on its way: what another release wrote is told as that, whatever else it says."""

from dataclasses import dataclass, fields
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import entry, snapshot

from adapter.core.decisions import Bound, Decision, Reason
from adapter.serving.snapshots.snapshot import VERSION, Entry, decode, encode

BODY = encode(snapshot(entry(reason=Reason.HOLD, bound=Bound.MAX)))
SIGNALS = [field.name for field in fields(Decision) if field.default is None]


def changed(old: bytes, new: bytes) -> bytes:
    """The body with one thing in it replaced."""
    assert old in BODY
    return BODY.replace(old, new)


def of_version(version: int, body: bytes = BODY) -> bytes:
    return body.replace(b'"version":%d' % VERSION, b'"version":%d' % version)


def test_what_was_encoded_is_decoded() -> None:
    assert decode(BODY) == snapshot(entry(reason=Reason.HOLD, bound=Bound.MAX))


@dataclass
class Earlier:
    """A snapshot as releases before this one read it: each entry at once, what is not there by its default."""

    version: int
    at_s: float
    tick_s: float
    window_s: float
    error_after_s: float
    entries: tuple[Entry, ...]


@given(
    st.dictionaries(st.sampled_from(SIGNALS), st.none() | st.floats(allow_nan=False, allow_infinity=False)),
    st.dictionaries(st.text(), st.text(), max_size=3),
    st.lists(st.text(), max_size=3).map(tuple),
    st.sampled_from(Bound),
)
def test_earlier_releases_and_this_one_read_what_the_other_writes(
    signals: dict[str, Any], labels: dict[str, str], stages: tuple[str, ...], bound: Bound
) -> None:
    """While a cluster is upgraded both are there. Earlier ones wrote null for whatever is unknown."""
    made = snapshot(entry("shop/orders", labels, stages, bound=bound, **signals), entry("web/clicks"))
    assert decode(encode(made)) == made
    assert decode(msgspec.json.encode(made)) == made
    assert msgspec.json.decode(encode(made), type=Earlier).entries == made.entries


def test_what_is_unknown_is_not_written() -> None:
    assert b"null" not in BODY
    assert b'"required_workers":3.0' in BODY
    assert len(BODY) < len(msgspec.json.encode(snapshot(entry()))) / 3


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
        of_version(7).replace(b":7", b':"7"'),
        b'{"version":%d,"at_s":' % VERSION + b"[" * 100_000,
        changed(b'"tick_s":15.0', b'"tick_s":NaN'),
        changed(b'"tick_s":15.0', b'"tick_s":1e999'),
        changed(b'"required_workers":3.0', b'"required_workers":NaN'),
    ],
    ids=[
        "empty",
        "a list",
        "no version",
        "truncated",
        "a version that is no number",
        "nested too deep",
        "not a number",
        "infinite",
        "not a number within an entry",
    ],
)
def test_what_is_no_snapshot_of_this_version_is_told_as_such(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a snapshot"):
        decode(body)


@pytest.mark.parametrize(
    "body",
    [
        changed(b'"Hold"', b'"Foreseen"'),
        changed(b'"required_workers":3.0', b'"required_workers":"3"'),
        changed(b',"error_after_s":180.0}', b"}"),
        changed(b'"Hold"', b'"\xff"'),
    ],
    ids=["an unknown reason", "a number that is a word", "a field too few", "no text"],
)
def test_an_entry_that_is_none_is_told_when_it_is_looked_at(body: bytes) -> None:
    entries = decode(body).entries
    assert len(entries) == 1
    with pytest.raises(ValueError, match="not an entry of a snapshot"):
        list(entries)
