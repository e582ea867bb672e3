"""The state as bytes, and damaged bytes."""

import json

import numpy as np
import pytest
from builders import book, counts, flow, job, steady, tick
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.engine import advance
from adapter.core.state import EMPTY, VERSION, align, decode, encode_fast, encode_slow, layout

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def folded(ticks, rules=None, state=EMPTY):
    for one in ticks:
        state, _ = advance(state, one, rules or book())
    return state


def same(one, other):
    return encode_fast(one) == encode_fast(other) and encode_slow(one) == encode_slow(other)


@pytest.mark.parametrize("ticks", [[], steady(throughput=1000)], ids=["empty", "one job"])
def test_a_decoded_state_equals_the_encoded_one(ticks):
    state = folded(ticks)
    assert same(decode(VERSION, encode_fast(state), encode_slow(state)), state)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=4, unique=True))
def test_any_name_survives_encoding(stages):
    workloads = tuple(sorted({workload for workload, _ in stages}))
    state = align(EMPTY, workloads, tuple(sorted(stages)))
    back = decode(VERSION, encode_fast(state), encode_slow(state))
    assert (back.slow.workloads, back.slow.stages) == (workloads, tuple(sorted(stages)))


def test_a_tick_without_slow_changes_leaves_the_slow_bytes_unchanged():
    ticks = steady(throughput=1000)
    assert encode_slow(folded(ticks)) == encode_slow(folded([*ticks, tick(75, job(**counts(), **flow(75)))]))


@pytest.mark.simulation
def test_the_window_does_not_grow():
    hour, minute = folded(steady(3600, throughput=1000)), folded(steady(120, throughput=1000))
    assert len(encode_fast(hour)) == len(encode_fast(minute))


def test_another_version_is_refused():
    state = folded(steady())
    with pytest.raises(ValueError, match=f"state of version 0, expected {VERSION}"):
        decode(0, encode_fast(state), encode_slow(state))


def damaged(change):
    state = folded(steady())
    return [change(encode_fast(state)), encode_slow(state)], [encode_fast(state), change(encode_slow(state))]


DAMAGES = {
    "empty": lambda blob: b"",
    "cut in the head": lambda blob: blob[:20],
    "cut in the numbers": lambda blob: blob[:-8],
    "cut within a number": lambda blob: blob[:-3],
    "longer": lambda blob: blob + b"\0" * 8,
    "no JSON": lambda blob: b"\xff" + blob,
    "another JSON": lambda blob: b"[1, 2]\n",
    "a number as JSON": lambda blob: b"5\n",
    "without an array": lambda blob: renamed(blob),
}


def renamed(blob):
    head, _, body = blob.partition(b"\n")
    header = json.loads(head)
    header["shapes"] = {f"{name}_x": shape for name, shape in header["shapes"].items()}
    return json.dumps(header).encode() + b"\n" + body


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_damaged_bytes_are_refused(change):
    for fast, slow in damaged(change):
        with pytest.raises(ValueError, match=r"\w"):  # some of the words are those of the JSON reader
            decode(VERSION, fast, slow)


def test_aligned_keeps_present_workloads_and_drops_the_others():
    state = folded(
        [tick(0, job("n/a", workers=1, backlog_records=5), job("n/c", workers=3, backlog_records=7))], book("n/a")
    )
    moved = align(state, ("n/b", "n/c"), (("n/b", ""), ("n/c", "")))
    assert np.array_equal(moved.fast.counts.workers, [np.nan, 3], equal_nan=True)
    assert np.array_equal(moved.fast.backlog, [[np.nan, 7]], equal_nan=True)


def test_advance_does_not_modify_its_state():
    state = folded(steady())
    before = encode_fast(state), encode_slow(state)
    advance(state, tick(75, job(**counts(3), **flow(75, 5, 5, 5)), job("n/new", workers=1)), book())
    assert (encode_fast(state), encode_slow(state)) == before


def test_a_changed_layout_has_a_new_version():
    assert (VERSION, layout()) == (31, "30173fd4243687bd"), "raise VERSION and write down the new layout"
