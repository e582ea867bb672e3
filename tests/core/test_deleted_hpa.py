"""The limits, pauses and overrides of an HPA end soon after the HPA was deleted or stopped using our metrics."""

from dataclasses import replace

import numpy as np
import pytest
from builders import JOB, TICK_S, book, counts, flow, history, job, last, tick

from adapter.core.decisions import Reason
from adapter.core.samples import EVERY

PAUSED = {"min_workers": 2, "max_workers": 12, "pause_up": 1, "pause_down": 1}


def decided(hpa, until_s=600, read_until_s=120, faults=(), assumed=()):
    """The decisions of a job whose HPA is read until read_until_s.

    faults: of the later ticks. assumed: the workloads whose faults are assumptions alone.
    """
    ticks = [
        tick(
            at_s,
            job(**counts() | flow(at_s) | (hpa if at_s <= read_until_s else {})),
            faults=() if at_s <= read_until_s else faults,
        )
        for at_s in np.arange(0, until_s + 1, TICK_S).tolist()
    ]
    ticks = [replace(each, assumed=frozenset(assumed)) for each in ticks]
    return {decision.at_s: decision for decision in history(ticks, book())}


def test_a_pause_ends_when_its_hpa_is_no_longer_read():
    found = decided(PAUSED)
    assert {found[at_s].reason for at_s in (120, 150, 300)} == {Reason.PAUSED}
    assert found[315].reason != Reason.PAUSED


def test_the_limits_end_with_the_hpa():
    found = decided(PAUSED)
    assert (found[120].min_workers, found[120].max_workers) == (2, 12)
    assert (found[315].min_workers, found[315].max_workers) == (1, 100)


def test_a_large_job_whose_hpa_is_not_read_keeps_its_workers():
    limits = {at_s: {"max_workers": 600} if at_s <= 120 else {} for at_s in range(0, 601, TICK_S)}
    found = last([tick(at_s, job(**counts(500) | flow(at_s) | known)) for at_s, known in limits.items()], book())
    assert (found.required_workers, found.max_workers, found.max_by_default) == (500, 500, 1)


def test_a_crash_lowers_no_target_of_a_large_job_without_a_known_maximum():
    """Without spec.replicas, a third of the workers is missing from 375 s on."""
    ticks = [
        tick(
            at_s, job(**flow(at_s, 15_000), partitions=1000.0, workers=left, ready_workers=left, utilization_ratio=0.7)
        )
        for at_s in range(0, 601, 15)
        for left in [150.0 if at_s < 375 else 110.0]
    ]
    assert {each.required_workers for each in history(ticks, book(policy="drain")) if each.at_s > 60} == {150}


def test_an_override_ends_with_the_hpa():
    found = decided({"max_workers": 50, "rule.max_workers": 20})
    assert (found[120].max_workers, found[330].max_workers) == (20, 100)


@pytest.mark.parametrize("of", [EVERY, JOB])
def test_a_pause_stays_while_a_source_fails(of):
    assert decided(PAUSED, faults=[(of, "kubernetes: connection refused")])[600].reason == Reason.PAUSED


def test_a_pause_ends_although_a_source_states_an_assumption():
    note = "1 partition has no committed offset: no backlog assumed"
    assert decided(PAUSED, faults=[(JOB, note)], assumed=[JOB])[600].reason != Reason.PAUSED


def test_a_pause_that_is_read_again_is_active_again():
    ticks = [
        tick(at_s, job(**counts() | flow(at_s) | (PAUSED if at_s >= 400 or at_s <= 60 else {})))
        for at_s in np.arange(0, 600, TICK_S).tolist()
    ]
    found = {decision.at_s: decision.reason for decision in history(ticks, book())}
    assert (found[60], found[300] == Reason.PAUSED, found[585]) == (Reason.PAUSED, False, Reason.PAUSED)
