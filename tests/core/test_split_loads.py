"""A throughput and a backlog of different stages are reported: neither sizes the job."""

import pytest
from builders import counts, history, job, tick

PASSES, WAITS = {"throughput_records_per_s": 100.0}, {"backlog_records": 5.0}
FAULT = (
    "the throughput is of stage q1 and the backlog of the job as a whole; write both queries into one entry of `read`, "
    "so that they have the same stage"
)


@pytest.mark.parametrize(
    ("jobs", "fault"),
    [
        pytest.param((job(stage="q1", **PASSES), job(**WAITS)), FAULT, id="two entries, one of them without a stage"),
        pytest.param((job(stage="q1", **PASSES, **WAITS),), "", id="one stage has both"),
        pytest.param((job(stage="q1", **PASSES, **WAITS), job(stage="map", **PASSES)), "", id="a later stage"),
        pytest.param((job(stage="q1", **PASSES),), "", id="no backlog at all"),
    ],
)
def test_a_load_that_no_stage_has_whole(jobs, fault):
    assert history([tick(15.0 * number, job(**counts()), *jobs) for number in range(3)])[-1].fault == fault


@pytest.mark.parametrize("missing", [job(**WAITS), job(stage="q1", **PASSES)], ids=["backlog", "throughput"])
def test_a_missing_sample_does_not_interrupt_the_sentence(missing):
    both = [*job(stage="q1", **PASSES), *job(**WAITS)]
    ticks = [
        tick(15.0 * number, job(**counts()), [row for row in both if number < 2 or row not in missing])
        for number in range(12)
    ]
    assert [decision.fault for decision in history(ticks)] == [FAULT] * 10 + [""] * 2


def test_a_missing_sample_of_a_job_whose_stage_had_both_is_no_fault():
    both, later = job(stage="q1", **PASSES, **WAITS), job(stage="map", **PASSES)
    ticks = [tick(0.0, job(**counts()), both, later), tick(15.0, job(**counts()), job(stage="q1", **WAITS), later)]
    assert history(ticks)[-1].fault == ""
