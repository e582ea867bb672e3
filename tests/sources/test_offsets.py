from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_rows import Row, rows_of

from adapter.sources.kafka_plan import GroupPattern, GroupRead, ReadPlan
from adapter.sources.offsets import (
    SIGNALS,
    Offsets,
    Partition,
    add_counts,
    discovered_reads,
    matching_groups,
    within_limit,
)
from adapter.sources.sample_table import FAULT, SampleTable

OF_SEVERAL_TICKS = {"stuck_backlog_records", "hottest_partition_ratio"}
ORDERS = GroupRead("shop/orders", (("orders", "orders"),))
SEEN = Offsets(
    committed={"orders": {("orders", 0): 40, ("orders", 1): 70}},
    partitions={"orders": 2},
    earliest={("orders", 0): 0, ("orders", 1): 0},
    latest={("orders", 0): 100, ("orders", 1): 70},
)


def rows(read: GroupRead, offsets: Offsets, at_s: int, offset_reset: str = "latest") -> list[Row]:
    table = SampleTable()
    add_counts(table, read, replace(offsets, at_s=at_s), ReadPlan(offset_reset=offset_reset))
    return rows_of(table.finish())


def numbers(read: GroupRead, offsets: Offsets) -> dict[str, float]:
    return {row.signal: row.value for row in rows(read, offsets, 15) if row.signal != FAULT}


def fault(read: GroupRead, offsets: Offsets) -> str:
    [row] = rows(read, offsets, 15)
    assert row == Row(15, read.workload, "", FAULT, 0.0, row.text)
    return row.text


def test_the_sums_of_a_group_on_one_topic() -> None:
    assert numbers(ORDERS, SEEN) == {
        "processed_records": 110.0,
        "appended_records": 170.0,
        "backlog_records": 60.0,
        "highest_partition_backlog_records": 60.0,
        "partitions": 2.0,
        "uncommitted_partitions": 0.0,
    }


UNCOMMITTED = replace(SEEN, committed={"orders": {("orders", 0): 40}}, earliest={("orders", 0): 0, ("orders", 1): 30})


@pytest.mark.parametrize(
    ("offset_reset", "backlog", "sentence"),
    [
        ("latest", 60.0, "1 partition has no committed offset, no backlog assumed (offset_reset: latest)"),
        (
            "earliest",
            60.0 + 40.0,
            "1 partition has no committed offset, all retained records counted as backlog (offset_reset: earliest)",
        ),
    ],
)
def test_offset_reset_decides_the_backlog_of_a_partition_without_a_commit(
    offset_reset: str, backlog: float, sentence: str
) -> None:
    found = {row.signal: row.text or row.value for row in rows(ORDERS, UNCOMMITTED, 15, offset_reset)}
    assert (found["backlog_records"], found["uncommitted_partitions"], found[FAULT]) == (backlog, 1.0, sentence)


def test_an_empty_partition_without_a_commit_needs_no_assumption() -> None:
    offsets = replace(UNCOMMITTED, earliest={("orders", 0): 0, ("orders", 1): 70})
    assert FAULT not in {row.signal for row in rows(ORDERS, offsets, 15)}


@pytest.mark.parametrize("offset_reset", ["latest", "earliest"])
def test_the_counters_leave_out_a_partition_without_a_commit(offset_reset: str) -> None:
    later = replace(
        UNCOMMITTED, earliest={("orders", 0): 0, ("orders", 1): 60}, latest={("orders", 0): 100, ("orders", 1): 90}
    )
    for offsets in (UNCOMMITTED, later):
        found = {row.signal: row.value for row in rows(ORDERS, offsets, 15, offset_reset)}
        assert (found["processed_records"], found["appended_records"]) == (40.0, 100.0)


def test_s4_38_the_highest_backlog_of_a_partition_is_a_signal() -> None:
    both = replace(ORDERS, inputs=(("orders", "orders"), ("audit", "orders")))
    offsets = replace(SEEN, committed={**SEEN.committed, "audit": {("orders", 0): 10, ("orders", 1): 69}})
    assert numbers(both, offsets)["backlog_records"] == 60.0 + 91.0
    assert numbers(both, offsets)["highest_partition_backlog_records"] == 90.0


def test_records_that_retention_deleted_are_no_backlog_x_04() -> None:
    offsets = replace(SEEN, earliest={("orders", 0): 90, ("orders", 1): 0})
    assert numbers(ORDERS, offsets) == {
        "processed_records": 110.0,
        "appended_records": 170.0,
        "backlog_records": 10.0,
        "highest_partition_backlog_records": 10.0,
        "partitions": 2.0,
        "uncommitted_partitions": 0.0,
    }


OPEN = replace(SEEN, latest={("orders", 0): 100, ("orders", 1): 90}, stable={("orders", 0): 45, ("orders", 1): 70})
WAITING = replace(ORDERS, read_committed=frozenset(ORDERS.inputs))
MARKED = replace(ORDERS, transactional=frozenset(ORDERS.inputs))
LEFT_OUT = "not counted: the group waits for open transactions to end (isolation_level: read_committed)"


@pytest.mark.parametrize(
    ("read", "backlog"),
    [
        pytest.param(ORDERS, 60 + 20, id="they are backlog by default"),
        pytest.param(MARKED, 60 + 20, id="they are backlog where only the markers are none"),
        pytest.param(WAITING, 5 + 0, id="they are no backlog of a read_committed group"),
    ],
)
def test_the_records_of_open_transactions_are_input(read: GroupRead, backlog: float) -> None:
    found = numbers(read, OPEN)
    assert (found["backlog_records"], found["appended_records"]) == (backlog, 190)


@pytest.mark.parametrize(
    ("open_records", "sentences"),
    [
        pytest.param(0, [], id="none"),
        pytest.param(1, [f"1 record after the last stable offset is {LEFT_OUT}"], id="one"),
        pytest.param(55, [f"55 records after the last stable offset are {LEFT_OUT}"], id="many"),
    ],
)
def test_the_decision_says_how_many_records_a_read_committed_group_waits_for(
    open_records: int, sentences: list[str]
) -> None:
    offsets = replace(SEEN, stable={("orders", 0): 100 - open_records, ("orders", 1): 70})
    assert [row.text for row in rows(WAITING, offsets, 15) if row.signal == FAULT] == sentences


def test_a_commit_after_the_last_stable_offset_contradicts_read_committed() -> None:
    offsets = replace(OPEN, stable={("orders", 0): 45, ("orders", 1): 69})
    assert fault(WAITING, offsets) == (
        "group orders has committed 70 on partition 1 of topic orders, after the last stable offset 69: its offsets "
        "were reset during a transaction, or it does not wait for transactions; in that case set isolation_level: "
        "read_uncommitted"
    )


def test_a_missing_last_stable_offset_is_a_fault_and_no_number() -> None:
    offsets = replace(OPEN, stable={("orders", 0): 45, ("orders", 1): -1001})
    assert fault(WAITING, offsets) == (
        "the last stable offset of partition 1 of topic orders is missing in the brokers' answer"
    )


def test_a_topic_read_by_two_groups_of_a_workload_counts_its_partitions_once() -> None:
    both = replace(ORDERS, inputs=(("orders", "orders"), ("audit", "orders")))
    offsets = replace(SEEN, committed={**SEEN.committed, "audit": {("orders", 0): 100, ("orders", 1): 69}})
    assert numbers(both, offsets)["backlog_records"] == 61.0
    assert numbers(both, offsets)["partitions"] == 2.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        pytest.param(
            {"committed": {"orders": {}}},
            "group orders has no committed offset on topic orders: it has not run yet, its offsets have expired "
            "(offsets.retention.minutes), or it does not commit to Kafka (Flink commits on checkpoints, Spark never)",
            id="a group without any commit",
        ),
        pytest.param(
            {"committed": {"orders": {("orders", 0): -1001, ("orders", 1): -1001}}},
            "group orders has no committed offset on topic orders",
            id="commits with a negative offset",
        ),
        pytest.param(
            {"committed": {"orders": {("clicks", 0): 5}}},
            "group orders has no committed offset on topic orders",
            id="commits on another topic only",
        ),
        pytest.param(
            {"committed": {"orders": "group orders: Local: Timed out"}},
            "group orders: Local: Timed out",
            id="no answer",
        ),
        pytest.param(
            {"latest": {("orders", 0): 100, ("orders", 1): 69}},
            "topic orders was recreated: group orders is at 70 of partition 1, which ends at 69; wait for the group's "
            "next commit, or reset its offsets",
            id="a commit past the end (X-04)",
        ),
        pytest.param(
            {"partitions": {"orders": 1}},
            "topic orders was recreated: group orders has committed on partition 1, but the topic has 1; wait",
            id="a commit on a partition that is gone",
        ),
        pytest.param(
            {"latest": {("orders", 0): 100, ("orders", 1): -1001}},
            "the log end offset of partition 1 of topic orders is missing in the brokers' answer",
            id="an end offset of -1001",
        ),
        pytest.param(
            {"latest": {("orders", 0): 100}},
            "the log end offset of partition 1 of topic orders is missing",
            id="an end offset that is not there",
        ),
        pytest.param(
            {"earliest": {("orders", 0): 0, ("orders", 1): "partition 1 of topic orders: Broker: Not leader"}},
            "partition 1 of topic orders: Broker: Not leader",
            id="a first offset that was refused",
        ),
        pytest.param(
            {"partitions": {"orders": "topic orders does not exist"}}, "topic orders does not exist", id="no topic"
        ),
        pytest.param({"partitions": {}}, "topic orders is missing", id="a topic without an answer"),
    ],
)
def test_a_workload_with_a_missing_offset_is_a_fault_and_no_number(changes: Any, sentence: str) -> None:
    assert fault(ORDERS, replace(SEEN, **changes)).startswith(sentence)


def test_a_missing_topic_gives_no_partial_sum() -> None:
    both = replace(ORDERS, inputs=(("orders", "orders"), ("orders", "clicks")))
    offsets = replace(SEEN, partitions={"orders": 2, "clicks": "topic clicks does not exist"})
    assert fault(both, offsets) == "topic clicks does not exist"


FLEETS = ReadPlan(explicit=(ORDERS,), patterns=(GroupPattern(0, "eu", "eu-.*"), GroupPattern(1, "all", ".*")))


def test_a_fleet_discovers_the_groups_whose_whole_name_matches() -> None:
    found = [(pattern.fleet, group) for pattern, group in matching_groups(FLEETS, ["eu-a", "x-eu-a"])]
    assert found == [(0, "eu-a"), (1, "eu-a"), (1, "x-eu-a")]


def test_a_source_has_at_most_50_000_workloads_of_all_fleets_the_first_by_name() -> None:
    groups = [f"eu-{number:05}" for number in range(25_001)]
    found, faults = within_limit(matching_groups(FLEETS, [*groups, "zoo"]))
    assert (len(found), found[-1][1]) == (50_000, "eu-24999")
    assert faults == [f"fleets[{fleet}]: more than 50000 workloads; narrow groups" for fleet in (0, 1)]
    assert within_limit(found) == (found, [])


def test_a_group_that_two_fleets_of_a_namespace_find_is_a_fault_that_names_both() -> None:
    plan = ReadPlan(patterns=(GroupPattern(0, "shop", "a.*"), GroupPattern(1, "shop", ".*")))
    committed = {group: {("orders", 0): 5} for group in ("ab", "b")}
    both, one = discovered_reads(plan, matching_groups(plan, ["ab", "b"]), committed)
    assert (both.workload, both.fault) == (
        "shop/ab",
        "fleets[0] and fleets[1] both find this workload: change their match, groups or namespace so that one of them "
        "does",
    )
    assert (one.workload, one.fleet, one.fault) == ("shop/b", 1, "")


def test_a_group_of_a_configured_workload_is_not_discovered() -> None:
    assert matching_groups(FLEETS, ["orders"]) == []


def test_a_discovered_group_reads_the_topics_with_its_commits() -> None:
    found = matching_groups(FLEETS, ["team: a"])
    committed = {"team: a": {("clicks", 0): 4, ("orders", 1): 0, ("old", 0): -1001}}
    [read] = discovered_reads(FLEETS, found, committed)
    assert read == GroupRead("all/team--a", (("team: a", "clicks"), ("team: a", "orders")), fleet=1)


@pytest.mark.parametrize("setting", ["transactional", "read_committed"])
def test_a_setting_of_a_fleet_applies_to_all_topics_of_its_groups(setting: str) -> None:
    plan = ReadPlan(patterns=(replace(GroupPattern(0, "shop", ".*"), **{setting: True}),))
    [read] = discovered_reads(plan, matching_groups(plan, ["a"]), {"a": {("clicks", 0): 4, ("orders", 1): 0}})
    inputs = (("a", "clicks"), ("a", "orders"))
    assert read == replace(GroupRead("shop/a", inputs, fleet=0), **{setting: frozenset(inputs)})


def test_a_discovered_workload_has_its_fleet_and_its_fault() -> None:
    [read] = discovered_reads(FLEETS, matching_groups(FLEETS, ["idle"]), {"idle": {}})
    fleet, why = rows(read, Offsets(), 15)
    assert fleet == Row(15, "all/idle", "", "fleet", 1.0)
    assert why.text.startswith("group idle has no committed offset on any topic")


def test_two_groups_with_one_workload_name_are_a_fault_that_names_both() -> None:
    [read] = discovered_reads(FLEETS, matching_groups(FLEETS, ["a b", "a/b"]), {})
    assert read.workload == "all/a-b"
    assert read.fault == "groups a b and a/b have the same workload name: configure each of them as a workload"


@pytest.mark.parametrize("stray", ["bills-", "-bills", "/bills"])
def test_a_stray_group_does_not_freeze_the_workload_of_the_group_with_that_name(stray: str) -> None:
    commits = {("clicks", 0): 4}
    reads = discovered_reads(FLEETS, matching_groups(FLEETS, [stray, "bills"]), {stray: commits, "bills": commits})
    assert reads == [GroupRead("all/bills", (("bills", "clicks"),), fleet=1)]


def test_a_configured_workload_keeps_its_name() -> None:
    plan = ReadPlan(explicit=(replace(ORDERS, workload="all/x"),), patterns=FLEETS.patterns)
    assert discovered_reads(plan, matching_groups(plan, ["x"]), {"x": {("t", 0): 1}}) == []


@st.composite
def one_topic(draw: st.DrawFn) -> Offsets:
    """Any offsets a broker can tell of one topic, wrong and missing ones too."""
    offset = st.one_of(st.integers(-1001, 2**53), st.integers(0, 50))
    count = draw(st.integers(1, 6))
    of_some = st.dictionaries(st.tuples(st.just("orders"), st.integers(0, count)), offset)
    return Offsets(15, {"orders": draw(of_some)}, {"orders": count}, draw(of_some), draw(of_some))


@given(one_topic())
def test_any_offsets_give_consistent_numbers_or_one_fault(offsets: Offsets) -> None:
    found = rows(ORDERS, offsets, 15)
    if found[0].signal == FAULT:
        assert len(found) == 1
        assert found[0].text
        return
    seen = SimpleNamespace(**{row.signal: row.value for row in found})
    assert set(SIGNALS) - OF_SEVERAL_TICKS == {row.signal for row in found} - {FAULT}
    assert seen.backlog_records >= seen.highest_partition_backlog_records >= 0
    assert seen.appended_records - seen.processed_records >= seen.backlog_records


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1), st.randoms())
def test_the_order_of_partitions_does_not_change_the_backlog(parts: list[tuple[int, int, int]], chance: Any) -> None:
    def offsets_of(numbered: list[tuple[int, tuple[int, int, int]]]) -> Offsets:
        def of(value: Any) -> dict[Partition, int]:
            return {("orders", number): value(part) for number, part in numbered}

        first, position = (lambda part: part[0]), (lambda part: part[0] + part[1])
        return Offsets(0, {"orders": of(position)}, {"orders": len(parts)}, of(first), of(sum))

    ordered = list(enumerate(parts))
    shuffled = chance.sample(ordered, len(ordered))
    assert numbers(ORDERS, offsets_of(ordered))["backlog_records"] == sum(ahead for _, _, ahead in parts)
    assert rows(ORDERS, offsets_of(ordered), 15) == rows(ORDERS, offsets_of(shuffled), 15)
