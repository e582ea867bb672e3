"""What an explanation says of partitions that nobody tells any more."""

import pytest
from builders import book, counts, flow, job, tick
from records_made import record_of

from adapter.core.decisions import Reason
from adapter.core.samples import Samples
from adapter.operations.explain import Explanation, explain, lines

TOLD_UNTIL_S = 60


def explained(until_s: int, policy: str, *, loaded: bool = False) -> Explanation:
    """Of a job whose segments were last counted at TOLD_UNTIL_S."""

    def seen(at_s: int) -> Samples:
        told = {"partitions": 7.0 if at_s <= TOLD_UNTIL_S else None}
        return tick(at_s, job(**counts(5), **told, **(flow(at_s) if loaded else {})))

    return explain(record_of([seen(at_s) for at_s in range(0, until_s + 1, 15)], book(policy=policy)))


def test_a_bound_of_partitions_that_are_not_told_any_more_says_since_when() -> None:
    told = "\n".join(lines(explained(360, "drain", loaded=True)))
    assert "min_workers to the partitions; partitions last counted 300 s ago" in told


@pytest.mark.parametrize(
    ("until_s", "by"),
    [
        pytest.param(60, "partitions", id="told"),
        pytest.param(120, Reason.STALE, id="held"),
        pytest.param(360, Reason.EXPIRED, id="too old"),
    ],
)
def test_a_target_that_follows_segments_alone_is_explained_by_their_count_or_by_its_age(until_s: int, by: str) -> None:
    assert explained(until_s, "segments").decided_by == by
