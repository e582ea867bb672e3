"""Decisions as people read them."""

import pytest
from ui_decisions import AT_S, decision, snapshot

from adapter.core.decisions import Bound, Decision, Reason
from adapter.serving.ui import view
from adapter.serving.ui.view import Urgency


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0.0, "0"),
        (0.04, "0.0"),
        (3.0, "3"),
        (3.26, "3.3"),
        (10.4, "10"),
        (1234.5, "1 234"),
        (1e7, "10 000 000"),
    ],
)
def test_counts(value: float | None, text: str) -> None:
    assert view.count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (0.0, "0 s"),
        (6.13, "6.1 s"),
        (119.0, "119 s"),
        (600.0, "10 min"),
        (9000.0, "2.5 h"),
        (86_400.0, "over a day"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert view.duration(seconds) == text


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(decision(required_workers=None, reason=Reason.EXPIRED), Urgency.NO_NUMBER, id="no number"),
        pytest.param(decision(reason=Reason.STALE), Urgency.ATTENTION, id="a held target"),
        pytest.param(decision(reason=Reason.STUCK, backlog_time_s=86_400.0), Urgency.ATTENTION, id="stuck"),
        pytest.param(decision(reason=Reason.NOT_ENACTED), Urgency.ATTENTION, id="not enacted"),
        pytest.param(decision(reason=Reason.EXCLUDED), Urgency.CALM, id="a pause that was planned"),
        pytest.param(decision(reason=Reason.EXCLUDED, backlog_time_s=61.0), Urgency.BEHIND, id="planned, and behind"),
        pytest.param(decision(reason=Reason.UP, backlog_time_s=61.0), Urgency.BEHIND, id="over its target"),
        pytest.param(decision(reason=Reason.UP, backlog_time_s=60.0), Urgency.MOVING, id="at its target, on its way"),
        pytest.param(decision(), Urgency.CALM, id="nothing to do"),
        pytest.param(
            decision(backlog_time_s=None), Urgency.CALM, id="an unknown backlog time is not trouble by itself"
        ),
        pytest.param(decision(backlog_time_s=5.0, backlog_time_target_s=None), Urgency.CALM, id="no target"),
    ],
)
def test_urgency(one: Decision, expected: Urgency) -> None:
    assert view.urgency(one) is expected


def test_the_most_urgent_come_first_then_the_alphabet() -> None:
    shown = snapshot(
        decision("a/calm"),
        decision("b/moving", reason=Reason.DOWN),
        decision("c/late", backlog_time_s=90.0),
        decision("d/later", backlog_time_s=900.0),
        decision("e/lost", required_workers=None, reason=Reason.NO_DATA),
        decision("f/late", backlog_time_s=91.0),
    )

    names = [entry.decision.workload for entry in view.urgent_first(shown.entries)]

    assert names == ["e/lost", "d/later", "c/late", "f/late", "b/moving", "a/calm"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("", ["shop/cart", "shop/orders"]),
        ("ORD", ["shop/orders"]),
        ("team=a", ["shop/cart", "shop/orders"]),
        ("scaleup team=a", ["shop/orders"]),
        ("moving", ["shop/orders"]),
        ("shop nothing", []),
    ],
)
def test_every_word_of_a_filter_must_occur(wanted: str, found: list[str]) -> None:
    shown = snapshot(decision("shop/cart"), decision("shop/orders", reason=Reason.UP), labels={"team": "a"})

    assert [entry.decision.workload for entry in view.matching(shown.entries, wanted)] == found


def test_an_unknown_number_is_shown_as_unknown_never_0() -> None:
    line = view.workload_row(Decision(workload="demo/lost", at_s=AT_S, policy="dataflow", reason=Reason.NO_DATA))

    numbers = (line.input_rate, line.throughput, line.backlog, line.backlog_time, line.required, line.current)
    assert set(numbers) == {"unknown"}
    assert "No sample of demo/lost yet" in line.sentence


@pytest.mark.parametrize(
    ("spec", "ready", "text"),
    [
        (4.0, 4.0, "4"),
        (6.0, 4.0, "4 of 6"),
        (6.0, None, "6"),
        (None, 3.0, "3"),
        (None, None, "unknown"),
        (0.0, 0.0, "0"),
    ],
)
def test_current_workers(spec: float | None, ready: float | None, text: str) -> None:
    assert view.workload_row(decision(spec_workers=spec, ready_workers=ready)).current == text


def test_a_bound_that_applies_is_named() -> None:
    assert view.workload_row(decision(bound=Bound.MAX)).bound == "at max"
    assert view.workload_row(decision(bound=Bound.HOT)).bound == "at hot partition"
    assert view.workload_row(decision(bound=Bound.STEP)).bound == ""


@pytest.mark.parametrize(
    ("age_s", "state", "text"),
    [
        (3.0, "fresh", "decided 3 s ago"),
        (-0.5, "fresh", "decided 0 s ago"),
        (46.0, "late", "the pipeline is late"),
        (181.0, "stale", "the API answers 503"),
        (-3600.0, "stale", "the last tick is 60 min in the future: compare clocks"),
    ],
)
def test_freshness_follows_the_age_of_the_snapshot(age_s: float, state: str, text: str) -> None:
    seen, notice = view.freshness(snapshot(decision()), AT_S + age_s)

    assert seen == state
    assert text in notice


def test_freshness_has_a_sentence_before_the_first_snapshot() -> None:
    assert view.freshness(None, AT_S)[0] == "waiting"
