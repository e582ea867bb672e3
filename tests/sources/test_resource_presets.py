"""The presets of cAdvisor, Beam and Flink's sinks on answers of a real Prometheus."""

import pytest
from recorded_tick import read_tick, values
from resource_fleet import ANSWERS, CONFIG
from sample_rows import Row


@pytest.fixture(scope="module")
def tick() -> list[Row]:
    return read_tick(CONFIG, ANSWERS)


def test_the_cpu_of_a_deployment_is_the_mean_of_its_present_pods_in_their_fullest_container(tick: list[Row]) -> None:
    assert values(tick, "shop/orders") == pytest.approx({"cpu_ratio": 0.7, "memory_ratio": 0.5}, rel=0.05)


def test_a_deployment_whose_name_begins_alike_has_pods_of_its_own(tick: list[Row]) -> None:
    assert values(tick, "shop/orders-eu") == pytest.approx({"cpu_ratio": 0.1, "memory_ratio": 0.1}, rel=0.05)


def test_the_pods_of_a_stateful_set_count_and_a_resource_without_a_limit_is_unknown(tick: list[Row]) -> None:
    assert values(tick, "shop/clicks") == pytest.approx({"cpu_ratio": 0.6}, rel=0.05)
    assert values(tick, "shop/free") == {}


def test_where_prometheus_drops_the_limits_of_cadvisor_those_of_kube_state_metrics_count(tick: list[Row]) -> None:
    assert values(tick, "shop/batch") == pytest.approx({"cpu_ratio": 0.8, "memory_ratio": 0.3}, rel=0.05)


def test_s0_05_the_backlog_of_a_beam_job_is_that_of_its_sources(tick: list[Row]) -> None:
    found = values(tick, "beam/known")
    assert found["backlog_records"] == 5000
    assert found["throughput_records_per_s"] == pytest.approx(200, rel=0.05)


def test_s0_25_a_source_that_does_not_know_its_backlog_leaves_it_unknown(tick: list[Row]) -> None:
    assert "backlog_records" not in values(tick, "beam/unknown")


def test_a_sink_that_loses_records_is_unhealthy_and_old_errors_do_not_count(tick: list[Row]) -> None:
    assert values(tick, "flink-sink/failing") == {"sink_healthy": 0}
    assert values(tick, "flink-sink/fine") == {"sink_healthy": 1}
