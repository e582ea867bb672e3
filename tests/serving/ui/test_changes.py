"""Which decisions count as changes."""

from dataclasses import replace

from adapter.core.decisions import Decision, Reason
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.ui.view import Changes

HELD = Decision(workload="shop/orders", at_s=0.0, policy="dataflow", reason=Reason.HOLD, required_workers=4.0)


def snapshot(decision: Decision) -> Snapshot:
    entry = Entry(decision=decision, error_after_s=180.0, window_s=60.0)
    entries = entries_of(decision.at_s, [entry])
    return Snapshot(at_s=decision.at_s, tick_s=15.0, error_after_s=180.0, entries=entries)


def news(*decisions: Decision) -> list[bool]:
    changes = Changes()
    return [bool(changes.since_last(snapshot(decision))) for decision in decisions]


def test_an_unchanged_decision_is_listed_once() -> None:
    assert news(HELD, replace(HELD, at_s=15.0, backlog_records=7.0)) == [True, False]


def test_another_number_or_reason_is_news() -> None:
    assert news(HELD, replace(HELD, required_workers=6.0), replace(HELD, reason=Reason.STALE)) == [True, True, True]


def test_a_new_cause_of_a_missing_number_is_news() -> None:
    silent = replace(HELD, reason=Reason.NO_DATA, required_workers=None)
    assert news(silent, replace(silent, fault="broker: no answer"), replace(silent, fault="broker: down")) == [
        True,
        True,
        False,
    ]
