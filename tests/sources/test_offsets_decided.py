"""What the core decides from Kafka's offsets: a dead group, and a partition without a commit."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adapter.core.decisions import Decision, Reason
from adapter.core.engine import replay
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import POLICIES, Rules
from adapter.sources.kafka_plan import GroupRead, ReadPlan
from adapter.sources.offsets import Offsets, add_counts
from adapter.sources.sample_table import SampleTable, samples_of

ORDERS = GroupRead("shop/orders", (("orders", "orders"),))
MARKED = replace(ORDERS, transactional=frozenset(ORDERS.inputs))
WAITING = replace(ORDERS, read_committed=frozenset(ORDERS.inputs))
PARTITIONS = range(8)
RATE = 100  # records a second and partition
RETAINED_S = 60


def decisions(
    offsets_at: Callable[[int], Offsets],
    workers: float,
    offset_reset: str = "latest",
    read: GroupRead = ORDERS,
    policy: str = "drain",
) -> list[Decision]:
    """The decisions of twenty minutes, without a try of fewer workers."""
    book = RuleBook(by_workload={"shop/orders": Rules(policy=policy, max_workers=12, probe_ratio=0.0)}, by_fleet=())
    ticks = []
    history = None
    for at_s in range(15, 1215, 15):
        table = SampleTable()
        offsets = replace(offsets_at(at_s), at_s=at_s)
        history = add_counts(table, read, offsets, ReadPlan(offset_reset=offset_reset), history)
        table.add(at_s, "shop/orders", dict.fromkeys(("spec_workers", "workers", "ready_workers"), workers))
        ticks.append(samples_of(at_s, table.finish()))
    return [each for _, found in replay(ticks, book) for each in rows(found)]


def decided(offsets_at: Callable[[int], Offsets], workers: float, **settings: Any) -> Decision:
    """The last decision of twenty minutes."""
    return decisions(offsets_at, workers, **settings)[-1]


def test_a_dead_group_whose_backlog_retention_deletes_is_stuck_and_not_scaled_up() -> None:
    def offsets(at_s: int) -> Offsets:
        first = max(0, at_s - RETAINED_S) * RATE
        return Offsets(
            committed={"orders": {("orders", number): 100 for number in PARTITIONS}},
            partitions={"orders": len(PARTITIONS)},
            earliest={("orders", number): first for number in PARTITIONS},
            latest={("orders", number): at_s * RATE for number in PARTITIONS},
        )

    found = decided(offsets, workers=4)
    assert (found.reason, found.required_workers) == (Reason.STUCK, 4)
    assert found.confidence == "none"


def one_never_committed(at_s: int) -> Offsets:
    committed = {("orders", number): at_s * RATE - 50 for number in PARTITIONS[:-1]}
    return Offsets(
        committed={"orders": committed},
        partitions={"orders": len(PARTITIONS)},
        earliest={("orders", number): 0 for number in PARTITIONS},
        latest={("orders", number): 5_000_000 if number == 7 else at_s * RATE for number in PARTITIONS},
    )


def test_an_idle_partition_without_a_commit_causes_no_scale_up_by_default() -> None:
    found = decided(one_never_committed, workers=3)
    assert (found.required_workers, found.backlog_records) == (3, 7 * 50)
    assert found.fault == "1 partition has no committed offset, no backlog assumed (offset_reset: latest)"


def test_with_offset_reset_earliest_its_retained_log_is_backlog() -> None:
    found = decided(one_never_committed, workers=3, offset_reset="earliest")
    assert found.backlog_records == 7 * 50 + 5_000_000
    assert found.required_workers is not None
    assert found.required_workers > 3


@pytest.mark.parametrize("offset_reset", ["latest", "earliest"])
def test_the_first_commit_of_a_partition_is_no_throughput(offset_reset: str) -> None:
    def offsets(at_s: int) -> Offsets:
        seen = one_never_committed(at_s)
        if at_s < 1200:
            return seen
        last = {("orders", 7): 4_999_990}
        return replace(seen, committed={"orders": {**seen.committed["orders"], **last}})

    found = decided(offsets, workers=3, offset_reset=offset_reset)
    assert found.throughput_records_per_s == pytest.approx(7 * RATE)


def one_stuck(at_s: int) -> Offsets:
    """Partition 7 has a record that the consumer cannot process; the others keep up."""
    seen = one_never_committed(at_s)
    committed = {**seen.committed["orders"], ("orders", 7): 400}
    return replace(seen, committed={"orders": committed}, latest={**seen.latest, ("orders", 7): at_s * RATE})


def test_a_stuck_partition_is_named_and_causes_no_scale_up() -> None:
    found = decided(one_stuck, workers=3)
    assert found.stuck_backlog_records == 1200 * RATE - 400
    assert found.required_workers == 3


def one_unread_in_each(at_s: int) -> Offsets:
    end = min(at_s, 600) * RATE
    return Offsets(
        committed={"orders": {("orders", number): end - 1 for number in PARTITIONS}},
        partitions={"orders": len(PARTITIONS)},
        earliest={("orders", number): 0 for number in PARTITIONS},
        latest={("orders", number): end for number in PARTITIONS},
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_a_record_in_each_partition_that_takes_long_is_backlog(policy: str) -> None:
    found = decided(one_unread_in_each, workers=8, policy=policy)
    assert (found.backlog_records, found.highest_partition_backlog_records) == (8, 1)
    assert found.required_workers == 8
    assert found.fault == ""


def test_the_markers_of_transactions_are_neither_backlog_nor_a_stuck_group() -> None:
    found = decided(one_unread_in_each, workers=3, read=MARKED)
    assert (found.backlog_records, found.highest_partition_backlog_records) == (0, 0)
    assert found.reason is not Reason.STUCK
    assert found.fault == (
        "8 partitions have a lag of 1 that does not change, counted as the end of a transaction and not as backlog"
    )


def transactions(length_s: int, lag_s: int, is_read_committed: bool) -> Callable[[int], Offsets]:
    """A transaction is always open, and the group has read what was written lag_s ago, as far as it can read that."""

    def offsets(at_s: int) -> Offsets:
        begin, end = at_s // length_s * length_s * RATE, at_s * RATE
        read = min(end - lag_s * RATE, begin if is_read_committed else end)
        return Offsets(
            committed={"orders": {("orders", number): max(0, read) for number in PARTITIONS}},
            partitions={"orders": len(PARTITIONS)},
            earliest={("orders", number): 0 for number in PARTITIONS},
            latest={("orders", number): end for number in PARTITIONS},
            stable={("orders", number): begin for number in PARTITIONS},
        )

    return offsets


def test_the_backlog_of_a_group_behind_an_open_transaction_does_not_end_at_its_first_record() -> None:
    offsets = transactions(length_s=60, lag_s=70, is_read_committed=False)
    found = decisions(offsets, workers=3, read=MARKED)
    assert [each.backlog_records for each in found[-8:]] == [70 * 8 * RATE] * 8


@pytest.mark.parametrize(
    ("length_s", "lag_s"),
    [
        pytest.param(10_000, 0, id="a hanging transaction"),
        pytest.param(300, 0, id="transactions of 300 s"),
        pytest.param(300, 200, id="a group behind them"),
    ],
)
def test_open_transactions_change_neither_the_input_nor_the_size_of_a_read_committed_group(
    length_s: int, lag_s: int
) -> None:
    found = decisions(transactions(length_s, lag_s, is_read_committed=True), workers=3, read=WAITING)
    assert [each.fault for each in found if "check that all three count the same records" in each.fault] == []
    assert {round(each.input_rate_records_per_s) for each in found[4:]} == {8 * RATE}
    assert {each.required_workers for each in found[4:]} <= {3, 4}


def test_a_group_that_has_read_all_but_an_open_transaction_is_not_stuck() -> None:
    found = decided(transactions(length_s=350, lag_s=0, is_read_committed=True), workers=3, read=WAITING)
    assert found.backlog_records == 0
    assert found.fault.startswith(f"{150 * 8 * RATE} records after the last stable offset are not counted")
    assert found.reason is not Reason.STUCK
