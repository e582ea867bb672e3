"""The presets of Kafka's other exporters and of kube-state-metrics on answers of a real Prometheus."""

import pytest
from exporter_fleet import ANSWERS, CONFIG
from recorded_tick import read_tick, values
from sample_rows import Row

LIKE_KAFKA_EXPORTER = ("kafka-lag-exporter", "klag")


@pytest.fixture(scope="module")
def tick() -> list[Row]:
    return read_tick(CONFIG, ANSWERS)


@pytest.mark.parametrize("exporter", LIKE_KAFKA_EXPORTER)
def test_an_exporter_with_the_form_of_kafka_exporter_has_its_signals(tick: list[Row], exporter: str) -> None:
    found = values(tick, f"{exporter}/orders")
    assert found["appended_records"] - found["processed_records"] == found["backlog_records"]
    assert found["backlog_records"] == found["highest_partition_backlog_records"] + 500
    assert found["hottest_partition_ratio"] == pytest.approx(110 / 105)
    assert (found["stuck_backlog_records"], found["partitions"]) == (0, 2)


@pytest.mark.parametrize("exporter", LIKE_KAFKA_EXPORTER)
def test_their_stuck_partitions_are_visible(tick: list[Row], exporter: str) -> None:
    found = values(tick, f"{exporter}/uneven")
    assert found["stuck_backlog_records"] == found["highest_partition_backlog_records"] > 700


def test_the_sums_of_kafka_lag_exporter_are_unknown_while_an_offset_is_nan(tick: list[Row]) -> None:
    assert values(tick, "kafka-lag-exporter/joining") == {"partitions": 2}


@pytest.mark.parametrize("exporter", ["klag", "kminion"])
def test_an_exporter_without_series_of_uncommitted_partitions_counts_the_others(tick: list[Row], exporter: str) -> None:
    assert values(tick, f"{exporter}/joining")["backlog_records"] == 500


def test_kminion_has_offsets_and_lag_and_no_single_partitions(tick: list[Row]) -> None:
    found = values(tick, "kminion/orders")
    assert found.keys() == {
        "processed_records",
        "appended_records",
        "backlog_records",
        "highest_partition_backlog_records",
        "partitions",
    }
    assert found["appended_records"] - found["processed_records"] == found["backlog_records"]
    assert found["processed_records"] == values(tick, "klag/orders")["processed_records"]


def test_the_first_commit_of_a_partition_is_no_throughput_in_kminion(tick: list[Row]) -> None:
    assert values(tick, "kminion/sprouting") == {"partitions": 2}


def test_a_partition_that_kminion_cannot_read_is_no_smaller_backlog(tick: list[Row]) -> None:
    assert values(tick, "kminion/hidden") == {"partitions": 1}


def test_kube_state_metrics_counts_the_replicas_of_a_deployment_and_the_limits_of_its_hpa(tick: list[Row]) -> None:
    counted = {"spec_workers": 5, "workers": 4, "ready_workers": 3, "min_workers": 2, "max_workers": 12}
    assert values(tick, "shop/orders") == counted


def test_kube_state_metrics_counts_the_replicas_of_a_stateful_set(tick: list[Row]) -> None:
    assert values(tick, "shop/clicks") == {"spec_workers": 2, "workers": 2, "ready_workers": 1}
