import math
import random

import numpy as np
import pyarrow as pa
from builders import assemble
from hypothesis import given
from hypothesis import strategies as st
from sample_rows import Row, table_of

from adapter.config import parse
from adapter.core.decisions import NUMBERS, STAGE_NUMBERS, Decisions
from adapter.core.samples import EVERY, STAGE_SIGNALS, WORKLOAD_SIGNALS, Samples
from adapter.pipeline.packing import number_columns, pack, pack_decisions, unpack, unpack_decisions, unpack_shard
from adapter.pipeline.shards import SHARD_KEYS, shard_of
from adapter.sources.precedence import with_source
from adapter.sources.sample_table import FAULT

TICKS = range(100, 131, 15)
NAMES = [f"shop/{letter}" for letter in "abcdefgh"]

CONFIG = parse(
    """
sources: {prom: {kind: prometheus, url: "http://prom"}}
workloads: []
pipeline: {checkpoint: /unused}
""",
    "the test",
)

valued = st.builds(
    Row,
    at_s=st.sampled_from(list(TICKS)),
    workload=st.sampled_from(NAMES),
    stage=st.sampled_from(["", "map", "sink"]),
    signal=st.sampled_from([*STAGE_SIGNALS, *WORKLOAD_SIGNALS]),
    value=st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0),
)
faulty = st.builds(
    Row,
    at_s=st.sampled_from(list(TICKS)),
    workload=st.sampled_from([*NAMES, EVERY]),
    stage=st.just(""),
    signal=st.just(FAULT),
    value=st.just(0.0),
    text=st.text(max_size=20),
)


def read(rows: list[Row]) -> pa.Table:
    """The rows as the samples of one source."""
    return with_source(table_of(rows), CONFIG, "prom")


def by_tick(rows: list[Row], shard: int) -> list[Samples]:
    """The samples that a shard must get."""
    own = [row for row in rows if row.workload == EVERY or shard_of(row.workload) == shard]
    return [
        assemble(
            at_s,
            [(r.workload, r.stage, r.signal, r.value) for r in own if r.at_s == at_s and r.signal != FAULT],
            [(r.workload, r.text) for r in own if r.at_s == at_s and r.signal == FAULT],
        )
        for at_s in TICKS
    ]


@given(st.lists(st.one_of(valued, faulty), max_size=40), st.randoms(use_true_random=False))
def test_every_shard_and_tick_gets_its_rows_in_any_order_of_sources(
    given_rows: list[Row], chance: random.Random
) -> None:
    half = len(given_rows) // 2
    packed = [
        *pack(read(given_rows[:half]), TICKS, all_shards=True),
        *pack(read(given_rows[half:]), TICKS, all_shards=False),
    ]
    chance.shuffle(packed)
    for shard in SHARD_KEYS:
        found = list(unpack((at_s, stream) for key, at_s, stream in packed if key == shard))
        for actual, expected in zip(found, by_tick(given_rows, shard), strict=True):
            np.testing.assert_equal(actual.by_stage, expected.by_stage)
            np.testing.assert_equal(actual.by_workload, expected.by_workload)
            assert (actual.at_s, actual.workloads, actual.stages) == (
                expected.at_s,
                expected.workloads,
                expected.stages,
            )
            assert actual.faults == expected.faults


def test_all_shards_get_a_row_in_every_tick() -> None:
    found = [(shard, at_s) for shard, at_s, _ in pack(read([]), TICKS, all_shards=True)]
    assert sorted(found) == sorted((shard, at_s) for shard in SHARD_KEYS for at_s in TICKS)
    assert list(pack(read([]), TICKS, all_shards=False)) == []


def test_rows_of_other_ticks_and_values_that_are_not_finite_are_left_out() -> None:
    """X-06: a value that is not finite is unknown."""
    odd = [Row(99, "a/b", "", "backlog_records", 1.0)]
    odd += [Row(100, "a/b", "", "backlog_records", value) for value in (math.nan, math.inf, -math.inf)]
    assert list(pack(read(odd), TICKS, all_shards=False)) == []


numbers = st.floats(width=64)
RECORDED = ("policy_input.workers", "rules.max_workers")


@given(st.data())
def test_unpacked_decisions_are_equal_and_sorted_over_shards(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(NAMES), unique=True))
    parts = [_decided([name], data) for name in names] or [_decided([], data)]
    for part in parts:
        again = unpack_shard(100, pack_decisions(part))
        np.testing.assert_equal((again.text, again.numbers), (part.text, part.numbers))
        np.testing.assert_equal((again.stages, again.stage_numbers), (part.stages, part.stage_numbers))
        np.testing.assert_equal(again.record, part.record)
    merged = unpack_decisions(pack_decisions(part) for part in parts)
    assert merged.workloads.column("workload").to_pylist() == sorted(names)
    by_name = {part.text["workload"]: part for part in parts}
    for name, column in number_columns(merged.workloads).items():
        np.testing.assert_equal(column.tolist(), [by_name[each,].numbers[name][0] for each in sorted(names)])
    found = zip(merged.stages.column("workload").to_pylist(), merged.stages.column("stage").to_pylist(), strict=True)
    assert list(found) == [(name, stage) for name in sorted(names) for stage in ("map", "sink")]


def _decided(names: list[str], data: st.DataObject) -> Decisions:
    stages = tuple((name, stage) for name in names for stage in ("sink", "map"))

    def column(count: int) -> np.ndarray:
        return np.array(data.draw(st.lists(numbers, min_size=count, max_size=count)), dtype=np.float64)

    return Decisions(
        at_s=100,
        text={
            "workload": tuple(names),
            "policy": ("dataflow",) * len(names),
            "reason": ("Hold",) * len(names),
            "bound": ("max",) * len(names),
            "confidence": ("none",) * len(names),
            "fault": tuple(data.draw(st.text(max_size=5)) for _ in names),
            "stage": ("",) * len(names),
        },
        numbers={name: column(len(names)) for name in NUMBERS},
        stages=stages,
        stage_numbers={name: column(len(stages)) for name in STAGE_NUMBERS},
        record={name: column(len(names)) for name in RECORDED},
    )
