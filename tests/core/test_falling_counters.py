"""Counters that fall again and again are reported with the fault of their workload."""

from builders import counts, history, job, tick


def fault_of(*periods):
    """The fault of a job after ten ticks. periods: ticks after which the counter of each stage begins anew."""
    ticks = [
        tick(
            15.0 * number,
            job(**counts()),
            *(job(stage=f"stage-{period}", processed_records=1000.0 * (number % period)) for period in periods),
        )
        for number in range(10)
    ]
    return history(ticks)[-1].fault


def test_a_counter_that_falls_at_every_other_tick_is_reported():
    assert fault_of(2).startswith("its counters fell 4 times in 120 s: ")


def test_of_several_stages_the_counter_that_falls_most_often_is_reported():
    assert fault_of(2, 3).startswith("its counters fell 4 times in 120 s: ")


def test_a_single_restart_is_not_reported():
    assert fault_of(9) == ""
