"""The presets of cAdvisor, Beam and Flink's sinks on answers of a real Prometheus."""

import json
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
from resource_fleet import ANSWERS, CONFIG
from sample_rows import Row, rows_of
from streamed_answers import StreamedTransport

from adapter.config import PrometheusSource
from adapter.sources.prometheus import PrometheusReader, queries

RECORDED = json.loads((Path(__file__).parents[1] / "data/prometheus" / ANSWERS).read_text())
AT_S = int(RECORDED[0]["form"]["time"])


def replay(request: httpx.Request) -> httpx.Response:
    """The recorded answer; a query that was not recorded needs `record_prometheus.py ... resource_fleet` again."""
    form = {key: values[0] for key, values in parse_qs(request.content.decode()).items()}
    [entry] = [each for each in RECORDED if each["path"] == "query" and each["form"]["query"] == form["query"]]
    return httpx.Response(entry["status"], json=entry["answer"])


@pytest.fixture(scope="module")
def tick() -> list[Row]:
    source = CONFIG.sources["main"]
    assert isinstance(source, PrometheusSource)
    reader = PrometheusReader("main", source, queries(CONFIG, "main"), StreamedTransport(replay))
    return rows_of(reader.samples(AT_S, AT_S, 15))


def values(tick: list[Row], workload: str) -> dict[str, float]:
    return {row.signal: row.value for row in tick if row.workload == workload and row.signal not in ("fault", "fleet")}


def test_the_cpu_of_a_deployment_is_the_mean_of_its_present_pods_in_their_fullest_container(tick: list[Row]) -> None:
    assert values(tick, "shop/orders") == pytest.approx({"cpu_ratio": 0.7, "memory_ratio": 0.5}, rel=0.05)


def test_a_deployment_whose_name_begins_alike_has_pods_of_its_own(tick: list[Row]) -> None:
    assert values(tick, "shop/orders-eu") == pytest.approx({"cpu_ratio": 0.1, "memory_ratio": 0.1}, rel=0.05)


def test_the_pods_of_a_stateful_set_count_and_a_resource_without_a_limit_is_unknown(tick: list[Row]) -> None:
    assert values(tick, "shop/clicks") == pytest.approx({"cpu_ratio": 0.6}, rel=0.05)
    assert values(tick, "shop/free") == {}


def test_s0_05_the_backlog_of_a_beam_job_is_that_of_its_sources(tick: list[Row]) -> None:
    found = values(tick, "beam/known")
    assert found["backlog_records"] == 5000
    assert found["throughput_records_per_s"] == pytest.approx(200, rel=0.05)


def test_s0_25_a_source_that_does_not_know_its_backlog_leaves_it_unknown(tick: list[Row]) -> None:
    assert "backlog_records" not in values(tick, "beam/unknown")


def test_a_sink_that_loses_records_is_unhealthy_and_old_errors_do_not_count(tick: list[Row]) -> None:
    assert values(tick, "flink-sink/failing") == {"sink_healthy": 0}
    assert values(tick, "flink-sink/fine") == {"sink_healthy": 1}
