"""An input that is neither processed nor waits is a fault; it changes no decision."""

import pytest
from builders import counts, history, job, tick

FAULT = (
    "its input is 5 000/s and its throughput 1 000/s, but its backlog does not grow by the difference: check that all "
    "three count the same records, in the same unit"
)


def faults(appended, backlog, missing=()):
    """The faults of a job that processes 1 000 records/s. appended, backlog: records a second since the start."""

    def rows(at_s):
        counters = {"processed_records": 1000 * at_s, "appended_records": appended * at_s}
        return job(**counts(), **counters, backlog_records=None if at_s in missing else backlog * at_s)

    return [decision.fault for decision in history([tick(at_s, rows(at_s)) for at_s in map(float, range(0, 181, 15))])]


@pytest.mark.parametrize(
    ("appended", "backlog", "fault"),
    [
        pytest.param(5000, 0, FAULT, id="an input in bytes"),
        pytest.param(5000, 4000, "", id="a backlog that grows by the difference"),
        pytest.param(1500, 0, "", id="less than twice the throughput"),
        pytest.param(500, 0, "", id="less than the throughput"),
    ],
)
def test_an_input_that_neither_passes_nor_waits_for_over_a_rate_window(appended, backlog, fault):
    assert faults(appended, backlog) == [""] * 6 + [fault] * 7


def test_a_missing_backlog_does_not_interrupt_the_sentence():
    assert set(faults(5000, 0, missing=(120.0, 180.0))[6:]) == {FAULT}


@pytest.mark.parametrize(("every_s", "phase_s"), [(30, 0), (30, 12), (45, 25), (60, 5)])
def test_a_step_of_the_input_between_commits_is_no_contradiction(every_s, phase_s):
    """The commits show the step later than the end of the log does."""

    def seen(at_s):
        appended, done = (500 * each + 4500 * max(0, each - 390) for each in (at_s, committed_s(at_s)))
        return tick(
            at_s, job(**counts(6), processed_records=done, appended_records=appended, backlog_records=appended - done)
        )

    def committed_s(at_s):
        return max(0, (at_s - phase_s) // every_s * every_s + phase_s)

    assert {decision.fault for decision in history([seen(at_s) for at_s in range(0, 600, 15)])} == {""}


@pytest.mark.parametrize("pause_s", [0, 15, 20, 60])
def test_a_counter_that_restarts_from_0_is_no_contradiction(pause_s):
    def seen(at_s):
        done, stopped = at_s if at_s < 300 else max(0, at_s - 300 - pause_s), 300 <= at_s < 300 + pause_s
        load = {"processed_records": None if stopped else 950 * done, "backlog_records": 950 * min(at_s, pause_s)}
        return tick(at_s, job(**counts(10), appended_records=950 * at_s, **load))

    assert {decision.fault for decision in history([seen(at_s) for at_s in range(0, 600, 15)])} == {""}
