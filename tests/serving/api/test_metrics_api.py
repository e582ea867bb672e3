"""The metrics API over our own signals: what an HPA, a person and an API server get."""

import json
from typing import Any

import pytest
from serving_builders import AT_S, entry, local_api, snapshot

from adapter.serving.api.external import GROUP_VERSION
from adapter.serving.api.metrics_api import Answered
from adapter.serving.api.probes import FIRST_SNAPSHOT_S, Readiness
from adapter.serving.api.rendering import Response
from adapter.serving.api.request import Request
from adapter.serving.api.routes import ExternalRoute, ObjectRoute
from adapter.serving.api.status import Answer
from adapter.serving.snapshots.store import SnapshotStore

METRIC = f"/apis/{GROUP_VERSION}/namespaces/shop/required_workers"
CUSTOM = "/apis/custom.metrics.k8s.io"
NO_HINT = b"retry-after"


def filled() -> SnapshotStore:
    store = SnapshotStore(lambda: AT_S + 1)
    store.put(snapshot(entry("shop/orders"), entry("shop/payments", required_workers=None)))
    return store


def get(uri: str, store: SnapshotStore | None = None, **more: Any) -> Response:
    return local_api(store or filled(), **more).respond(Request.of("GET", uri))


def document(response: Response) -> Any:
    return json.loads(response.body)


def test_an_external_metric_is_one_item() -> None:
    (item,) = document(get(f"{METRIC}?labelSelector=workload%3Dorders"))["items"]
    assert (item["value"], item["metricLabels"]) == ("3", {"workload": "orders"})


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_the_same_number_is_had_as_a_metric_of_the_deployment(version: str) -> None:
    (item,) = document(get(f"{CUSTOM}/{version}/namespaces/shop/deployments.apps/orders/required_workers"))["items"]
    assert (item["value"], item["describedObject"]["kind"]) == ("3", "Deployment")


@pytest.mark.parametrize("selector", ["workload=orders", "workload=payments", "workload=x", "", "a b"])
def test_no_answer_asks_to_be_asked_later(selector: str) -> None:
    response = get(f"{METRIC}?labelSelector={selector}".replace(" ", "%20"))
    assert NO_HINT not in dict(response.headers)


@pytest.mark.parametrize("name", ["UPPER", "a:b", "a|b", "%C3%A9", "%00", "%ff", "..%2f..", "a" * 5000])
def test_any_name_is_looked_for(name: str) -> None:
    """case 38"""
    assert get(f"/apis/{GROUP_VERSION}/namespaces/shop/{name}").code == 404


def test_a_server_without_snapshot_waits_for_the_first_but_not_for_ever() -> None:
    now = [0.0]
    readiness = Readiness(lambda: False, clock=lambda: now[0])
    waiting = get("/readyz", SnapshotStore(), readiness=readiness)
    assert (waiting.code, b"[-]first-snapshot failed" in waiting.body) == (500, True)
    now[0] = FIRST_SNAPSHOT_S
    assert get("/readyz", SnapshotStore(), readiness=readiness).body == b"ok"


def test_a_server_that_stops_is_unready_and_still_answers() -> None:
    readiness = Readiness(lambda: True)
    readiness.stop()
    assert get("/readyz", readiness=readiness).code == 500
    assert get("/livez", readiness=readiness).code == 200
    assert get(f"{METRIC}?labelSelector=workload=orders", readiness=readiness).code == 200


def test_case_73_discovery_answers_while_nothing_was_published() -> None:
    assert get(f"/apis/{GROUP_VERSION}", SnapshotStore()).code == 200
    assert get(METRIC, SnapshotStore()).code == 503


def test_an_error_inside_is_a_500_that_tells_nothing_of_it() -> None:
    def broken() -> float:
        raise RuntimeError("the password is swordfish")

    response = get(METRIC, SnapshotStore(broken))
    assert response.code == 500
    assert document(response)["reason"] == "InternalError"
    assert b"swordfish" not in response.body


def test_every_answer_is_accounted_for_with_what_was_asked() -> None:
    told: list[Answered] = []
    for uri in (METRIC, f"{CUSTOM}/v1beta2/namespaces/shop/pods/*/utilization", "/apis?timeout=x"):
        get(uri, account=lambda answered, took_s: told.append(answered))
    assert [answered.response.code for answered in told] == [400, 404, 400]
    assert [type(answered.route) for answered in told] == [ExternalRoute, ObjectRoute, type(None)]
    assert [answered.identity is None for answered in told] == [False, False, True]


def test_a_serving_replica_shows_itself_and_not_the_workloads() -> None:
    text = get("/metrics").body.decode()
    assert "backlog_adapter_snapshot_age_seconds" in text
    assert 'workload="orders"' not in text


def test_metrics_that_are_not_ours_are_asked_of_who_has_them() -> None:
    asked: list[str] = []

    def forward(request: Request) -> Answer:
        asked.append(request.uri)
        return Answer(200, body=b"{}", headers={"Content-Type": "application/json"})

    there = {"external.metrics.k8s.io": forward, "custom.metrics.k8s.io": forward}
    theirs = METRIC.replace("required_workers", "s0-kafka-orders")
    assert get(theirs, elsewhere=there).code == 200
    assert get(f"{CUSTOM}/v1beta1/namespaces/shop/pods/a/requests", elsewhere=there).code == 200
    assert get(f"{METRIC}?labelSelector=workload%3Dorders", elsewhere=there).code == 200
    assert asked == [theirs, f"{CUSTOM}/v1beta1/namespaces/shop/pods/a/requests"]
