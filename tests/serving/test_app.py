"""The Flask applications: what a thread answers, and the pipeline's publishing side."""

import gc
import gzip
import weakref
from pathlib import Path

import pytest
from flask import Blueprint, request
from flask.testing import FlaskClient
from serving_builders import AT_S, entry, local_api, snapshot

from adapter.serving.api.external import GROUP_VERSION
from adapter.serving.api.probes import Probes, Readiness
from adapter.serving.api.request import Request
from adapter.serving.app import create_app, create_metrics_app, create_publisher_app
from adapter.serving.snapshots.snapshot import decode
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry

METRIC = f"/apis/{GROUP_VERSION}/namespaces/shop/required_workers"


def filled() -> SnapshotStore:
    store = SnapshotStore(lambda: AT_S + 1)
    store.put(snapshot(entry("shop/orders"), entry("shop/payments", required_workers=None)))
    return store


def publisher(store: SnapshotStore, token_file: Path | None = None, probes: Probes | None = None) -> FlaskClient:
    return create_publisher_app(
        store,
        token_file=None if token_file is None else str(token_file),
        probes=probes or Probes.of(Readiness(lambda: True)),
        telemetry=Telemetry(store, workloads=True, clock=lambda: AT_S + 7),
    ).test_client()


def test_a_pipeline_that_publishes_nothing_for_long_is_not_alive() -> None:
    alive = [True]
    client = publisher(filled(), probes=Probes.of(Readiness(lambda: True), {"publishing": lambda: alive[0]}))
    assert client.get("/livez").text == "ok"
    alive[0] = False
    response = client.get("/livez")
    assert response.status_code == 500
    assert "[-]publishing failed" in response.text


@pytest.mark.parametrize("path", ["/readyz", "/version", f"{METRIC}?labelSelector=workload=orders", "/nowhere", "/"])
def test_what_a_thread_answers_is_what_the_api_answers(path: str) -> None:
    api = local_api(filled())
    response = create_app(api).test_client().get(path)
    expected = api.respond(Request.of("GET", path))
    assert (response.status_code, response.data) == (expected.code, expected.body)
    assert response.content_type == dict(expected.headers)[b"content-type"].decode()


def test_nothing_of_a_request_waits_for_the_garbage_collector() -> None:
    seen, watching = list[weakref.ref[object]](), Blueprint("watching", __name__)
    watching.before_app_request(lambda: seen.append(weakref.ref(request.headers)))
    client = create_app(local_api(filled()), watching).test_client()
    gc.disable()
    try:
        status = client.get(f"{METRIC}?labelSelector=workload=orders").status_code
        left = [each() for each in seen]
    finally:
        gc.enable()
    assert (status, left) == (200, [None])


def test_a_route_of_flask_s_own_that_crashes_is_a_500_that_tells_nothing_of_it() -> None:
    app = create_app(local_api(filled()))

    @app.get("/crash")
    def crash() -> str:
        raise RuntimeError("the password is swordfish")

    response = app.test_client().get("/crash")
    assert response.status_code == 500
    assert response.get_json()["reason"] == "InternalError"
    assert "swordfish" not in response.text


def test_another_method_on_a_route_of_flask_s_own_is_a_status() -> None:
    assert publisher(filled()).post("/v1/snapshot").get_json()["kind"] == "Status"


def test_two_slashes_are_not_one() -> None:
    assert publisher(filled()).get("/v1//snapshot").status_code == 404


def test_the_pipeline_shows_every_known_number_of_every_workload() -> None:
    text = publisher(filled()).get("/metrics").text
    assert 'backlog_adapter_required_workers{namespace="shop",workload="orders"} 3.0' in text
    assert "backlog_adapter_snapshot_age_seconds 7.0" in text
    assert "backlog_adapter_workloads 2.0" in text
    assert 'reason="Hold"' in text


def test_an_unknown_number_has_no_series() -> None:
    text = publisher(filled()).get("/metrics").text
    assert 'backlog_adapter_required_workers{namespace="shop",workload="payments"}' not in text


def test_the_metrics_port_has_probes_and_metrics_only() -> None:
    telemetry = Telemetry(filled(), workloads=False)
    client = create_metrics_app(probes=Probes.of(Readiness(lambda: True)), telemetry=telemetry).test_client()
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


@pytest.mark.parametrize("known", ["{etag}", 'W/{etag}, "another"', "*"], ids=["strong", "one of two, weak", "any"])
def test_a_snapshot_that_is_known_is_not_sent_again(known: str) -> None:
    client = publisher(filled())
    etag = client.get("/v1/snapshot").headers["ETag"]
    again = client.get("/v1/snapshot", headers={"If-None-Match": known.format(etag=etag)})
    assert (again.status_code, again.data) == (304, b"")


def test_a_snapshot_that_is_another_is_sent() -> None:
    assert publisher(filled()).get("/v1/snapshot", headers={"If-None-Match": '"another"'}).status_code == 200


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
