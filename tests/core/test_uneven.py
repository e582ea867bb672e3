"""The sum hides one partition that lags. Its own backlog counts while it does not catch up (S4-38)."""

import pytest
from builders import book, counts, flow, job, last, tick

from adapter.core.messages import sentence

# 91 % busy: more workers would have fewer partitions each.
BUSY = {"policy": "drain", "worker_capacity_records_per_s": 110.0, "max_workers": 20}
QUIET = (0,) * 20


def lagging(*records, stuck=None, partitions=20):
    """Ten workers keep pace with 1 000/s. records: the backlog of the worst partition at each tick."""
    return last(
        [
            tick(
                15.0 * number,
                job(
                    **flow(15.0 * number),
                    **counts(10, partitions=partitions),
                    highest_partition_backlog_records=waiting,
                    stuck_backlog_records=stuck,
                ),
            )
            for number, waiting in enumerate(records)
        ],
        book(**BUSY),
    )


@pytest.mark.parametrize(
    ("records", "more"),
    [
        pytest.param((*QUIET, *range(2900, 3001, 10)), False, id="60 s of a partition's share: in time"),
        pytest.param((*QUIET, *range(2950, 3100, 10)), True, id="more than 60 s for a window, and growing: late"),
        pytest.param(tuple(range(5000, 3000, -100)), False, id="it catches up by itself"),
        pytest.param((*QUIET, *(0, 1500, 3000, 4500) * 5), False, id="a saw of commits, each time gone again: in time"),
        pytest.param((*QUIET, 3100, 3110, 3120, *(None,) * 8), False, id="no longer reported"),
    ],
)
def test_s4_38_a_partition_that_falls_behind_needs_more_workers(records, more):
    decided = lagging(*records)
    assert (decided.required_workers > 10) == more


def test_a_stuck_partition_needs_no_workers():
    assert lagging(*QUIET, *range(3100, 3200, 10), stuck=3200.0).required_workers == 10


def test_without_a_count_of_partitions_the_worst_one_is_unknown():
    assert lagging(*QUIET, *range(3100, 3200, 10), partitions=None).required_workers == 10


def test_the_sentence_names_the_worst_partition_if_the_sum_hides_it():
    assert "backlog time 0.0 s (61 s in the worst partition), input 1 000/s" in sentence(
        lagging(*QUIET, *range(2950, 3060, 10))
    )
    assert "worst" not in sentence(lagging(*QUIET, 1000, 1050))
