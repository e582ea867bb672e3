"""What the HPA does with the number, in the words of `explain`; its arithmetic has tests of its own."""

from builders import book, tick
from records_made import growing, record_of

from adapter.core.decisions import Reason
from adapter.operations.enactment import enacted
from adapter.operations.reading import read


def told(record):
    """What is told of each tolerance, and the rows behind it."""
    rows = enacted(read(record)).rows
    assert [row.name.split(",")[0] for row in rows[:2]] == ["tolerance 10 %", 'tolerance "0"']
    return [f"{row.value}: {row.note}" for row in rows[:2]], [f"{row.name}: {row.note}" for row in rows[2:]]


def test_a_larger_number_is_taken_by_either_tolerance():
    asked = f"{growing().decision.required_workers:.0f}"
    taken = f"10 -> {asked}: at once, or in steps as its `behavior` says"
    assert told(growing()) == ([taken, taken], [])


def test_x_07_a_change_within_the_default_tolerance_is_ignored_and_with_tolerance_0_taken():
    (default, ours), _ = told(growing(max_workers=11))
    assert default.startswith("10 -> 10: it ignores 11")
    assert "required_workers_padded" in default
    assert ours == "10 -> 11: at once, or in steps as its `behavior` says"


def test_a_held_number_stays():
    assert told(growing({"running": 0.0})) == (["10 -> 10: it stays"] * 2, [])


def test_a_smaller_number_waits_for_the_hpas_own_window():
    assert told(growing(max_workers=5)) == (["10 -> 5: once its stabilization window allows"] * 2, [])


def test_where_there_is_no_number_the_hpa_freezes():
    (only,) = enacted(read(record_of([tick(0)], book()))).rows
    assert (only.name, only.value) == ("no metric", "503: it keeps its size, and shows the sentence above")


def test_a_target_that_nobody_enacts_says_where_to_look_without_guessing_the_hpas_name():
    late = growing(not_enacted_after_s=60.0)
    assert late.decision.reason is Reason.NOT_ENACTED
    _, (where, limits, *_) = told(late)
    assert where.startswith("not enacted for ")
    assert where.endswith("kubectl -n shop describe hpa: find the HPA that names it")
    assert limits == "ScalingLimited there: its minReplicas, maxReplicas or behavior keep it"
