"""The metrics that Prometheus scrapes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from serving_builders import AT_S, entry, get, snapshot

from adapter import __version__
from adapter.apiserver.app import create_app
from adapter.apiserver.server import Server
from adapter.serving.routes import Readiness, monitoring_routes
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry, build_info, certificate_gauges, server_gauges

DAY_S = 86_400.0


def shown(telemetry: Telemetry, name: str) -> dict[tuple[str, ...], float]:
    """The samples of that name by the values of their labels, which are sorted by name."""
    families = text_string_to_metric_families(telemetry.exposition().decode())
    samples = (sample for family in families for sample in family.samples if sample.name == f"backlog_adapter_{name}")
    return {tuple(value for _, value in sorted(sample.labels.items())): sample.value for sample in samples}


def bare() -> Telemetry:
    return Telemetry(SnapshotStore(), workloads=False)


def test_responses_are_counted_by_metric_code_and_group() -> None:
    telemetry = bare()
    telemetry.count_response("required_workers", 200, 0.002, "external")
    telemetry.count_response("required_workers", 200, 0.002, "external")
    telemetry.count_response("required_workers", 200, 0.002, "custom")
    telemetry.count_response("required_workers", 503, 0.002, "external")
    telemetry.count_response("", 200, 0.0, "other")
    assert shown(telemetry, "requests_total") == {
        ("200", "external", "required_workers"): 2,
        ("200", "custom", "required_workers"): 1,
        ("503", "external", "required_workers"): 1,
        ("200", "other", ""): 1,
    }


def test_a_counter_has_no_second_series_with_the_time_of_its_first_value() -> None:
    telemetry = bare()
    telemetry.count_response("backlog", 200, 0.002, "external")
    assert "_created" not in telemetry.exposition().decode()


def test_unknown_metrics_share_one_series() -> None:
    telemetry = bare()
    for number in range(1_000):
        telemetry.count_response(f"metric-{number}", 404, 0.001, "external")
    assert shown(telemetry, "requests_total") == {("404", "external", "other"): 1_000}


def test_response_times_are_counted_by_metric_and_code_class() -> None:
    telemetry = bare()
    telemetry.count_response("backlog", 200, 0.002, "external")
    telemetry.count_response("backlog", 404, 0.002, "external")
    telemetry.count_response("backlog", 400, 0.3, "custom")
    assert shown(telemetry, "request_seconds_count") == {("2xx", "backlog"): 1, ("4xx", "backlog"): 2}
    assert shown(telemetry, "request_seconds_sum")[("4xx", "backlog")] == pytest.approx(0.302)
    assert shown(telemetry, "request_seconds_bucket")[("4xx", "0.0025", "backlog")] == 1


def test_the_age_of_the_snapshot_grows_although_the_clock_is_set_back() -> None:
    now_s, up_s = [AT_S + 5], [0.0]
    store = SnapshotStore(clock=lambda: now_s[0], monotonic=lambda: up_s[0])
    telemetry = Telemetry(store, workloads=False)
    assert shown(telemetry, "snapshot_age_seconds") == {}
    store.put(snapshot(entry()))
    assert shown(telemetry, "snapshot_age_seconds") == {(): 5}
    now_s[0], up_s[0] = AT_S - 3600, 60.0
    assert shown(telemetry, "snapshot_age_seconds") == {(): 60}


@pytest.mark.parametrize(
    ("ends_s", "days"), [(AT_S + 30 * DAY_S, 30.0), (AT_S - DAY_S / 2, -0.5)], ids=["valid", "expired"]
)
def test_the_days_until_the_certificate_expires_are_shown(ends_s: float, days: float) -> None:
    telemetry = bare()
    telemetry.add(certificate_gauges(lambda: ends_s, clock=lambda: AT_S))
    assert shown(telemetry, "certificate_days_left") == {(): days}


def test_added_gauges_are_read_at_each_scrape() -> None:
    values = iter([1.0, 2.0])

    def gauges() -> Iterator[Metric]:
        yield GaugeMetricFamily("backlog_adapter_added", "for this test", value=next(values))

    telemetry = bare()
    telemetry.add(gauges)
    assert [shown(telemetry, "added"), shown(telemetry, "added")] == [{(): 1.0}, {(): 2.0}]


def test_the_series_of_workloads_follow_the_newest_snapshot() -> None:
    store = SnapshotStore(clock=lambda: AT_S + 20)
    telemetry = Telemetry(store, workloads=True)
    assert shown(telemetry, "required_workers") == {}
    for at_s, workers in ((AT_S, 3.0), (AT_S + 15, 4.0)):
        store.put(snapshot(entry(at_s=at_s, required_workers=workers), at_s=at_s))
        first, again = (shown(telemetry, "required_workers") for _ in range(2))
        assert first == again
        assert list(first.values()) == [workers]


@pytest.mark.parametrize(
    ("clock_s", "expected"),
    [(AT_S + 180, {("shop", "orders"): 3}), (AT_S + 181, {})],
    ids=["the limit", "too old"],
)
def test_a_snapshot_that_the_api_refuses_has_no_series_of_workloads(
    clock_s: float, expected: dict[object, float]
) -> None:
    now_s = [AT_S]
    store = SnapshotStore(clock=lambda: now_s[0])
    telemetry = Telemetry(store, workloads=True)
    store.put(snapshot(entry(required_workers=3.0)))
    assert list(shown(telemetry, "required_workers").values()) == [3]
    now_s[0] = clock_s
    assert shown(telemetry, "required_workers") == expected
    assert shown(telemetry, "workloads") == {(): 1}


def test_a_workload_that_the_api_refuses_has_no_series() -> None:
    """An alert or a query must not go on with a number that the API has ended."""
    now_s = [AT_S]
    store = SnapshotStore(clock=lambda: now_s[0])
    telemetry = Telemetry(store, workloads=True)
    store.put(snapshot(entry("shop/lax", error_after_s=600.0), entry("shop/strict", error_after_s=30.0)))
    for age_s, names in ((30.0, {"lax", "strict"}), (31.0, {"lax"}), (600.0, {"lax"}), (601.0, set[str]())):
        now_s[0] = AT_S + age_s
        assert {name for _, name in shown(telemetry, "required_workers")} == names


@pytest.mark.parametrize("name", ['quoted "orders"', "back\\slash", "two\nlines", "naïve"])
def test_any_name_of_a_workload_is_read_back(name: str) -> None:
    store = SnapshotStore(clock=lambda: AT_S)
    store.put(snapshot(entry(f"shop/{name}", backlog_records=1_234_567.5)))
    telemetry = Telemetry(store, workloads=True)
    assert shown(telemetry, "backlog") == {("shop", name): 1_234_567.5}


def test_the_age_of_a_sample_grows_between_snapshots() -> None:
    now_s = [AT_S + 2]
    store = SnapshotStore(clock=lambda: now_s[0])
    telemetry = Telemetry(store, workloads=True)
    store.put(snapshot(entry(sample_age_s=15.0), entry("shop/returns")))
    assert shown(telemetry, "sample_age_seconds") == {("shop", "orders"): 17}
    now_s[0] += 60
    assert shown(telemetry, "sample_age_seconds") == {("shop", "orders"): 77}


def test_the_bounds_and_faults_of_a_workload_are_shown() -> None:
    store = SnapshotStore(clock=lambda: AT_S + 1)
    telemetry = Telemetry(store, workloads=True)
    bounds = {"min_workers": 2.0, "max_workers": 12.0, "spec_workers": 5.0, "workers": 4.0}
    healthy = entry(
        **bounds, capacity_records_per_s=900.0, fault="1 partition has no committed offset", source_failed=0.0
    )
    store.put(snapshot(healthy, entry("shop/returns", fault="no answer", source_failed=1.0)))
    orders, returns = ("shop", "orders"), ("shop", "returns")
    names = ("min_workers", "max_workers", "spec_workers", "current_workers", "capacity", "source_fault")
    assert {name: shown(telemetry, name) for name in names} == {
        "min_workers": {orders: 2},
        "max_workers": {orders: 12},
        "spec_workers": {orders: 5},
        "current_workers": {orders: 4},
        "capacity": {orders: 900},
        "source_fault": {orders: 0, returns: 1},
    }


def test_running_workers_are_not_desired_ones() -> None:
    store = SnapshotStore(clock=lambda: AT_S + 1)
    telemetry = Telemetry(store, workloads=True)
    store.put(snapshot(entry(spec_workers=None, workers=4.0)))
    assert shown(telemetry, "current_workers") == {("shop", "orders"): 4}
    assert shown(telemetry, "spec_workers") == {}


def test_connections_that_the_server_ended_are_counted_by_cause() -> None:
    server = Server(lambda environ, start: [], "127.0.0.1", 0)
    counters = server.counters
    counters.closed_for_room, counters.closed_for_time, counters.closed_for_certificate = 1, 2, 3
    telemetry = bare()
    telemetry.add(server_gauges(server))
    assert shown(telemetry, "connections_closed_total") == {("limit",): 1, ("deadline",): 2, ("certificate",): 3}


def test_the_version_and_role_of_a_process_are_shown() -> None:
    telemetry = bare()
    telemetry.add(build_info("serve"))
    assert shown(telemetry, "build_info") == {("serve", __version__): 1}


@pytest.mark.parametrize(
    ("path", "authorization", "code"),
    [
        ("/metrics", "", 401),
        ("/metrics", "Bearer wrong", 401),
        ("/metrics", "Bearer secret", 200),
        ("/readyz", "", 200),
    ],
)
def test_metrics_of_workloads_require_the_token_and_probes_do_not(
    tmp_path: Path, path: str, authorization: str, code: int
) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    routes = monitoring_routes(Telemetry(SnapshotStore(), workloads=True), Readiness(lambda: True), None, str(token))
    assert get(create_app(routes), path, Authorization=authorization).status_code == code
