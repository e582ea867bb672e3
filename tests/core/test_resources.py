"""Utilization is the largest of the resources that a workload reports."""

import pytest
from builders import JOB, Fluid, book, counts, flow, history, job, last, steady, tick

from adapter.core.formatting import RESOURCES


@pytest.mark.parametrize(
    ("reported", "utilization"),
    [
        ({"cpu_ratio": 0.6}, 0.6),
        ({"cpu_ratio": 0.6, "memory_ratio": 0.8}, 0.8),
        ({"utilization_ratio": 0.7, "cpu_ratio": 0.6}, 0.7),
        ({"utilization_ratio": 0.2, "network_ratio": 0.9}, 0.9),
    ],
    ids=str,
)
def test_the_largest_resource_is_the_utilization(reported, utilization):
    decision = last(steady(120, **reported))
    assert decision.utilization_ratio == utilization
    assert {name: getattr(decision, name) for name in reported if name in RESOURCES}.items() <= reported.items()


def test_a_resource_that_is_not_reported_is_unknown_and_never_0():
    decision = last(steady(120, cpu_ratio=0.6))
    assert (decision.memory_ratio, decision.network_ratio) == (None, None)


def test_s0_10_a_full_cpu_scales_a_job_up_whose_source_reports_no_busy_time():
    assert last(steady(120, cpu_ratio=0.95), book(policy="varga")).required_workers == 14


def test_the_containers_of_a_job_with_stages_count_for_all_of_them():
    def at(at_s):
        source = job(stage="source", **flow(at_s), utilization_ratio=0.3)
        return tick(at_s, source, job(**counts()), job(cpu_ratio=0.8))

    decision = last([at(at_s) for at_s in range(0, 121, 15)], workload=JOB)
    assert (decision.utilization_ratio, decision.stage) == (0.8, "source")


@pytest.mark.parametrize(
    ("missing", "utilization"),
    [
        ({"cpu_ratio": None}, 0.9),
        ({"cpu_ratio": None, "utilization_ratio": 0.95}, 0.95),
        ({"utilization_ratio": None}, 0.9),
        ({"cpu_ratio": None, "network_ratio": 0.1}, 0.9),
    ],
    ids=[
        "the largest",
        "the largest, while another rises above it",
        "a smaller one",
        "the largest, while another begins",
    ],
)
def test_a_resource_that_is_missing_for_a_tick_does_not_lower_the_utilization(missing, utilization):
    reported = {"utilization_ratio": 0.3, "cpu_ratio": 0.9}
    ticks = [*steady(120, **reported), *steady(135, from_s=135, **reported | missing)]
    assert last(ticks).utilization_ratio == utilization
    assert last([*ticks, *steady(150, from_s=150, utilization_ratio=0.3, cpu_ratio=0.4)]).utilization_ratio == 0.4


@pytest.mark.parametrize("throughput", [300, 1100], ids=["while the load falls", "while the load rises"])
def test_a_utilization_of_earlier_ticks_is_no_measure_of_the_capacity(throughput):
    rules = book(policy="drain", error_after_s=300)
    measured = steady(600, throughput=1000, utilization_ratio=0.5, cpu_ratio=0.9)
    records = 1000 * 600
    after = [
        tick(
            at_s,
            job(**counts(), processed_records=done, appended_records=done, backlog_records=0, utilization_ratio=0.2),
        )
        for at_s in range(615, 781, 15)
        for done in [records + throughput * (at_s - 600)]
    ]
    assert last([*measured, *after], rules).worker_capacity_records_per_s == pytest.approx(1000 / 0.9 / 10, rel=0.01)


def test_the_capacity_follows_from_the_mean_utilization_of_the_rate_window():
    """A job that works in bursts is busy at some ticks and idle at others."""
    ticks = [steady(at_s, from_s=at_s, utilization_ratio=0.9 if at_s % 60 else 0.1)[0] for at_s in range(0, 901, 15)]
    assert last(ticks, book(policy="drain")).worker_capacity_records_per_s == pytest.approx(1000 / 0.7 / 10, rel=0.1)


def test_a_source_of_rates_reports_the_utilization_of_the_same_time():
    """Spark reports both of the last batch, and every other one has much to do."""
    ticks = [
        tick(
            at_s,
            job(
                **counts(),
                throughput_records_per_s=rate,
                input_rate_records_per_s=rate,
                backlog_records=0,
                utilization_ratio=rate / 1000,
            ),
        )
        for at_s in range(0, 1801, 15)
        for rate in [900.0 if at_s % 30 else 200.0]
    ]
    known = [found.worker_capacity_records_per_s for found in history(ticks, book(policy="drain"))]
    assert {round(capacity) for capacity in known if capacity is not None} == {100}


def test_a_utilization_that_is_missing_since_the_load_rose_is_no_measure_of_the_capacity():
    rises_s = 1500.0
    running = Fluid(
        lambda at_s: 300.0 if at_s < rises_s else 900.0,
        missing=lambda at_s: ["utilization_ratio"] if at_s > rises_s else [],
    )
    ticks = []
    for at_s in range(0, 1801, 15):
        ticks.append(tick(at_s, running.rows()))
        running.run()
    rules = book(policy="drain", rate_window_s=300.0, error_after_s=600)
    assert last(ticks, rules).worker_capacity_records_per_s == pytest.approx(100, rel=0.02)


def test_the_utilization_after_a_backlog_is_no_measure_of_the_capacity_while_it_drained():
    """12 workers of 100/s drain a backlog at 1200/s; then the input is 330/s, while the window still shows more."""
    running = Fluid(lambda at_s: 900.0 if at_s < 595 else 9000.0 if at_s < 600 else 330.0, workers=12)
    ticks = []
    for at_s in range(0, 901, 15):
        ticks.append(tick(at_s, running.rows()))
        running.run()
    known = [found.capacity_records_per_s for found in history(ticks, book(policy="drain"))]
    assert max(capacity for capacity in known if capacity is not None) <= 1200


def test_a_resource_that_ended_no_longer_counts_after_error_after_s():
    ticks = [*steady(120, utilization_ratio=0.3, cpu_ratio=0.9), *steady(480, from_s=135, utilization_ratio=0.3)]
    assert last(ticks, book(error_after_s=300)).utilization_ratio == 0.3
    assert last(ticks, book(error_after_s=600)).utilization_ratio == 0.9


def test_containers_that_are_missing_for_a_tick_do_not_lower_the_utilization_of_the_stages():
    def at(at_s):
        containers = job(cpu_ratio=0.8) if at_s < 120 else []
        return tick(at_s, job(stage="source", **flow(at_s), utilization_ratio=0.3), job(**counts()), containers)

    assert last([at(at_s) for at_s in range(0, 121, 15)], workload=JOB).utilization_ratio == 0.8
