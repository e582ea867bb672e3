"""What `explain` shows of the HPA. The arithmetic of the HPA has its own tests."""

from builders import book, tick
from records import growing, record_of

from adapter.core.decisions import Reason
from adapter.operations.enactment import hpa_section
from adapter.operations.recorded_decision import replay


def shown(record):
    """The text for each tolerance, and of the rows behind it."""
    rows = hpa_section(replay(record)).rows
    assert [row.name.split(",")[0] for row in rows[:2]] == ["tolerance 10 %", 'tolerance "0"']
    return [f"{row.value}: {row.note}" for row in rows[:2]], [f"{row.name}: {row.note}" for row in rows[2:]]


def test_either_tolerance_enacts_a_larger_target():
    target = f"{growing().decision.required_workers:.0f}"
    taken = f"10 -> {target}: at once, or in steps as its `behavior` says"
    assert shown(growing()) == ([taken, taken], [])


def test_x_07_only_tolerance_0_enacts_a_small_change():
    (default, ours), _ = shown(growing(max_workers=11))
    assert default.startswith("10 -> 10: it ignores 11")
    assert "required_workers_padded" in default
    assert ours == "10 -> 11: at once, or in steps as its `behavior` says"


def test_a_held_target_stays():
    assert shown(growing({"running": 0.0})) == (["10 -> 10: it stays"] * 2, [])


def test_a_smaller_target_waits_for_the_stabilization_window():
    assert shown(growing(max_workers=5)) == (["10 -> 5: once its stabilization window allows"] * 2, [])


def test_without_a_target_the_hpa_keeps_its_replicas():
    (only,) = hpa_section(replay(record_of([tick(0)], book()))).rows
    assert (only.name, only.value) == ("no metric", "503: the HPA keeps its replicas and shows the sentence above")


def test_an_hpa_does_nothing_for_a_target_at_0_replicas():
    stopped = growing({"spec_workers": 0.0, "workers": 0.0, "ready_workers": 0.0, "min_workers": 1.0})
    (only,) = hpa_section(replay(stopped)).rows
    assert (only.name, only.value) == ("0 replicas", "the HPA is off: scale the target to 1 to switch it on")


def test_an_hpa_that_scales_to_zero_also_scales_up_from_it():
    stopped = growing({"spec_workers": 0.0, "workers": 0.0, "ready_workers": 0.0, "min_workers": 0.0})
    assert shown(stopped)[0] == ["0 -> 1: at once, or in steps as its `behavior` says"] * 2


def test_a_target_that_is_not_enacted_names_the_commands_to_look_with():
    late = growing(not_enacted_after_s=60.0)
    assert late.decision.reason is Reason.NOT_ENACTED
    _, (where, limits, *_) = shown(late)
    assert where.startswith("not enacted for ")
    assert where.endswith("read its HPA: kubectl --namespace shop describe hpa")
    assert limits == "if ScalingLimited: minReplicas, maxReplicas or behavior of the HPA limit the change"
