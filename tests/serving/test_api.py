import gzip
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from serving_builders import AT_S, entry, snapshot

from adapter.serving import external
from adapter.serving.app import create_app, create_metrics_app, create_publisher_app
from adapter.serving.probes import FIRST_SNAPSHOT_S, Readiness
from adapter.serving.snapshot import decode
from adapter.serving.store import SnapshotStore
from adapter.serving.telemetry import Telemetry

METRIC = f"/apis/{external.GROUP_VERSION}/namespaces/shop/required_workers"


def filled() -> SnapshotStore:
    store = SnapshotStore()
    store.put(snapshot(entry("shop/orders"), entry("shop/payments", required_workers=None)))
    return store


def api(store: SnapshotStore, readiness: Readiness | None = None) -> FlaskClient:
    return create_app(
        store,
        authenticate=None,
        readiness=readiness or Readiness(lambda: True),
        telemetry=Telemetry(store, workloads=False),
        clock=lambda: AT_S + 1,
    ).test_client()


def publisher(store: SnapshotStore, token_file: Path | None = None) -> FlaskClient:
    return create_publisher_app(
        store,
        token_file=None if token_file is None else str(token_file),
        readiness=Readiness(lambda: True),
        telemetry=Telemetry(store, workloads=True, clock=lambda: AT_S + 7),
    ).test_client()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/"])
def test_probes_answer_ok(path: str) -> None:
    response = api(filled()).get(path)
    assert (response.status_code, response.text) == (200, "ok")


def test_a_pipeline_that_publishes_nothing_for_long_is_not_alive() -> None:
    store = filled()
    alive = {"publishing": True}
    client = create_publisher_app(
        store,
        token_file=None,
        readiness=Readiness(lambda: True),
        telemetry=Telemetry(store, workloads=True),
        alive=lambda: alive,
    ).test_client()
    assert client.get("/livez").status_code == 200
    alive["publishing"] = False
    response = client.get("/livez")
    assert response.status_code == 500
    assert "[-]publishing failed" in response.text


def test_a_server_without_snapshot_waits_for_the_first_but_not_for_ever() -> None:
    now = [0.0]
    client = api(SnapshotStore(), Readiness(lambda: False, clock=lambda: now[0]))
    assert client.get("/readyz").status_code == 500
    assert "[-]first-snapshot failed" in client.get("/readyz").text
    now[0] = FIRST_SNAPSHOT_S
    assert client.get("/readyz").text == "ok"


def test_a_server_that_stops_is_unready_and_still_answers() -> None:
    readiness = Readiness(lambda: True)
    client = api(filled(), readiness)
    readiness.stop()
    assert client.get("/readyz").status_code == 500
    assert client.get("/livez").status_code == 200
    assert client.get(f"{METRIC}?labelSelector=workload=orders").status_code == 200


def test_verbose_lists_the_checks() -> None:
    text = "[+]ping ok\n[+]first-snapshot ok\n[+]shutdown ok\nreadyz check passed\n"
    assert api(filled()).get("/readyz?verbose").text == text


def test_an_error_inside_is_a_500_that_tells_nothing_of_it() -> None:
    def broken() -> float:
        raise RuntimeError("the password is swordfish")

    store = filled()
    app = create_app(
        store,
        authenticate=None,
        readiness=Readiness(lambda: True),
        telemetry=Telemetry(store, workloads=False),
        clock=broken,
    )
    response = app.test_client().get(METRIC)
    assert response.status_code == 500
    assert response.get_json()["reason"] == "InternalError"
    assert "swordfish" not in response.text


@pytest.mark.parametrize("selector", ["workload=orders", "workload=payments", "workload=x", "", "a b"])
def test_no_answer_asks_to_be_asked_later(selector: str) -> None:
    assert "Retry-After" not in api(filled()).get(METRIC, query_string={"labelSelector": selector}).headers


def test_the_first_of_repeated_selectors_counts() -> None:
    response = api(filled()).get(f"{METRIC}?labelSelector=workload=orders&labelSelector=workload=nope")
    assert response.get_json()["items"][0]["metricLabels"] == {"workload": "orders"}


@pytest.mark.parametrize("name", ["UPPER", "a:b", "a|b", "é", "%00", "%ff", "..%2f..", "a" * 5000])
def test_any_name_is_looked_for(name: str) -> None:
    assert api(filled()).get(f"/apis/{external.GROUP_VERSION}/namespaces/shop/{name}").status_code == 404


def test_requests_are_counted_by_code_and_metric() -> None:
    client = api(filled())
    client.get(f"{METRIC}?labelSelector=workload=orders")
    client.get(f"{METRIC}?labelSelector=workload=payments")
    client.get(METRIC.replace("required", "reqired"))
    text = client.get("/metrics").text
    assert 'backlog_adapter_requests_total{code="200",metric="required_workers"} 1.0' in text
    assert 'backlog_adapter_requests_total{code="503",metric="required_workers"} 1.0' in text
    assert 'backlog_adapter_requests_total{code="404",metric="other"} 1.0' in text


def test_the_pipeline_shows_every_known_number_of_every_workload() -> None:
    text = publisher(filled()).get("/metrics").text
    assert 'backlog_adapter_required_workers{namespace="shop",workload="orders"} 3.0' in text
    assert "backlog_adapter_snapshot_age_seconds 7.0" in text
    assert "backlog_adapter_workloads 2.0" in text
    assert 'reason="Hold"' in text


def test_an_unknown_number_has_no_series() -> None:
    text = publisher(filled()).get("/metrics").text
    assert 'backlog_adapter_required_workers{namespace="shop",workload="payments"}' not in text


def test_a_serving_replica_shows_itself_and_not_the_workloads() -> None:
    text = api(filled()).get("/metrics").text
    assert "backlog_adapter_snapshot_age_seconds" in text
    assert 'workload="orders"' not in text


def test_the_metrics_port_has_probes_and_metrics_only() -> None:
    store = filled()
    telemetry = Telemetry(store, workloads=False)
    client = create_metrics_app(readiness=Readiness(lambda: True), telemetry=telemetry).test_client()
    assert client.get("/metrics").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert client.get(METRIC).status_code == 404


def test_the_snapshot_is_published_plain_and_compressed() -> None:
    store = filled()
    plain = publisher(store).get("/v1/snapshot")
    packed = publisher(store).get("/v1/snapshot", headers={"Accept-Encoding": "gzip"})
    assert store.current is not None
    assert decode(plain.data) == store.current.snapshot
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data


def test_a_snapshot_that_is_known_is_not_sent_again() -> None:
    client = publisher(filled())
    etag = client.get("/v1/snapshot").headers["ETag"]
    again = client.get("/v1/snapshot", headers={"If-None-Match": etag})
    assert (again.status_code, again.data) == (304, b"")


def test_before_the_first_tick_there_is_nothing_to_publish() -> None:
    assert publisher(SnapshotStore()).get("/v1/snapshot").status_code == 404


@pytest.mark.parametrize(
    ("authorization", "code"),
    [("Bearer secret", 200), ("Bearer wrong", 401), ("secret", 401), ("", 401), ("Bearer ", 401), ("Bearer é", 401)],
)
def test_a_snapshot_costs_the_token(tmp_path: Path, authorization: str, code: int) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    response = publisher(filled(), token).get("/v1/snapshot", headers={"Authorization": authorization})
    assert response.status_code == code


def test_a_rotated_token_holds_at_once_and_a_missing_one_admits_nobody(tmp_path: Path) -> None:
    token = tmp_path / "token"
    client = publisher(filled(), token)
    assert client.get("/v1/snapshot", headers={"Authorization": "Bearer "}).status_code == 401
    token.write_text("new")
    assert client.get("/v1/snapshot", headers={"Authorization": "Bearer new"}).status_code == 200
    token.write_text("")
    assert client.get("/v1/snapshot", headers={"Authorization": "Bearer "}).status_code == 401
