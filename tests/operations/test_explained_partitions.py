"""Explanations of decisions whose count of partitions is old."""

import pytest
from builders import book, counts, flow, job, tick
from records import record_of

from adapter.core.decisions import Reason
from adapter.core.samples import Samples
from adapter.operations.changes import decided_by, nearest_changes
from adapter.operations.explain import explain, lines
from adapter.operations.recorded_decision import replay
from adapter.serving.snapshots.records import Record

COUNTED_UNTIL_S = 60


def record_at(until_s: int, policy: str, *, loaded: bool = False) -> Record:
    """The record of a job whose segments were last counted at COUNTED_UNTIL_S."""

    def sample(at_s: int) -> Samples:
        partitions = {"partitions": 7.0 if at_s <= COUNTED_UNTIL_S else None}
        return tick(at_s, job(**counts(5), **partitions, **(flow(at_s) if loaded else {})))

    return record_of([sample(at_s) for at_s in range(0, until_s + 1, 15)], book(policy=policy))


def test_a_bound_by_an_old_count_of_partitions_shows_its_age() -> None:
    text = "\n".join(lines(explain(record_at(360, "drain", loaded=True))))
    assert "min_workers to the partitions; partitions last counted 300 s ago" in text


@pytest.mark.parametrize(
    ("until_s", "by"),
    [
        pytest.param(60, "partitions", id="counted"),
        pytest.param(120, Reason.STALE, id="held"),
        pytest.param(360, Reason.EXPIRED, id="too old"),
    ],
)
def test_the_count_of_segments_or_its_age_decides_a_target_that_follows_it(until_s: int, by: str) -> None:
    recorded = replay(record_at(until_s, "segments"))
    assert decided_by(recorded, nearest_changes(recorded)) == by
