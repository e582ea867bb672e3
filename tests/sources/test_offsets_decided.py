"""What the core decides from Kafka's offsets: a dead group, and a partition without a commit."""

from collections.abc import Callable

import pytest

from adapter.core.decisions import Decision, Reason
from adapter.core.engine import replay
from adapter.core.report import rows
from adapter.core.rules import RuleBook, Rules
from adapter.sources.offsets import GroupRead, Offsets, add_counts
from adapter.sources.sample_table import SampleTable, samples_of

ORDERS = GroupRead("shop/orders", (("orders", "orders"),))
BOOK = RuleBook(by_workload={"shop/orders": Rules(max_workers=12)}, by_fleet=())
PARTITIONS = range(8)
RATE = 100  # records a second and partition
RETAINED_S = 60


def decided(offsets_at: Callable[[int], Offsets], workers: float, offset_reset: str = "latest") -> Decision:
    """The last decision of twenty minutes."""
    ticks = []
    for at_s in range(15, 1215, 15):
        table = SampleTable()
        add_counts(table, at_s, ORDERS, offsets_at(at_s), offset_reset)
        table.add(at_s, "shop/orders", dict.fromkeys(("spec_workers", "workers", "ready_workers"), workers))
        ticks.append(samples_of(at_s, table.finish()))
    [last] = rows([decisions for _, decisions in replay(ticks, BOOK)][-1])
    return last


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
        return Offsets({"orders": {**seen.committed["orders"], **last}}, seen.partitions, seen.earliest, seen.latest)

    found = decided(offsets, workers=3, offset_reset=offset_reset)
    assert found.throughput_records_per_s == pytest.approx(7 * RATE)
