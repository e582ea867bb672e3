"""The metrics API over HTTP: paths, methods, parameters, discovery and documents (cases 1 to 43 and 66 to 72)."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from flask import Flask
from serving_builders import AT_S, decision, entry, get, local_app, snapshot

from adapter.apiserver.negotiation import AGGREGATED
from adapter.core.decisions import Decision, StageSignals
from adapter.core.metrics import METRICS, OBJECT_KINDS, Metric
from adapter.serving.routes import Readiness
from adapter.serving.snapshots.snapshot import Entry
from adapter.serving.snapshots.store import SnapshotStore
from conformance import openapi

E = "/apis/external.metrics.k8s.io/v1beta1"
N = f"{E}/namespaces"
METRIC = f"{N}/shop/required_workers"
JSON = "application/json"
V2BETA1 = AGGREGATED.replace("v=v2", "v=v2beta1")  # before Kubernetes 1.30
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"
C = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps"


def app_of(*entries: Entry, **more: Any) -> Flask:
    store = SnapshotStore(lambda: AT_S + 1)
    store.put(snapshot(*(entries or (entry("shop/job-0", {"team": "red"}),))))
    return local_app(store, **more)


def answer(uri: str, method: str = "GET", workloads: int = 1, **headers: str) -> tuple[int, Any]:
    app = app_of(*(entry(f"shop/job-{number}", {"team": "red"}) for number in range(workloads)))
    response = get(app, uri, method, **headers)
    return response.status_code, response.get_json(silent=True)


@pytest.mark.parametrize(
    ("uri", "kind"),
    [("/apis", "APIGroupList"), ("/apis/external.metrics.k8s.io", "APIGroup"), (E, "APIResourceList")],
    ids=["case 1", "case 2", "case 3"],
)
def test_discovery_answers_with_a_trailing_slash_and_without(uri: str, kind: str) -> None:
    assert answer(uri) == answer(f"{uri}/")
    code, document = answer(uri)
    assert (code, document["kind"]) == (200, kind)


def test_case_7_discovery_does_not_grow_with_the_fleet() -> None:
    names = [resource["name"] for resource in answer(E, workloads=2_000)[1]["resources"]]
    assert names == list(METRICS)


SIGNALS = (field.name for field in fields(Decision) if field.default is None and not field.name.endswith("_age_s"))
FULL = Entry(decision=replace(decision(), **dict.fromkeys(SIGNALS, 1.0)), error_after_s=180.0, window_s=60.0)


def test_every_metric_that_discovery_lists_is_answered() -> None:
    app = app_of(FULL)
    external = [each["name"] for each in get(app, E).get_json()["resources"]]
    custom = [each["name"] for each in get(app, "/apis/custom.metrics.k8s.io/v1beta1").get_json()["resources"]]
    assert len(custom) == len(OBJECT_KINDS) * len(METRICS)
    objects = [name.replace("/", "/orders/") for name in custom]
    found = {name: get(app, f"{N}/shop/{name}").status_code for name in external}
    for version in ("v1beta1", "v1beta2"):
        root = f"/apis/custom.metrics.k8s.io/{version}/namespaces/shop"
        found |= {f"{root}/{name}": get(app, f"{root}/{name}").status_code for name in objects}
    assert {name: code for name, code in found.items() if code != 200} == {}


@pytest.mark.parametrize(
    ("stages", "selector", "expected"),
    [
        ((0.35, 0.98), "", "500m"),
        ((0.35, 0.98), "?labelSelector=stage%3Ds0", "350m"),
        ((), "", "500m"),
    ],
    ids=["the workload", "the selector's stage", "no stages"],
)
def test_a_stage_in_the_selector_selects_its_utilization(
    stages: tuple[float, ...], selector: str, expected: str
) -> None:
    """The decision has the utilization of the hottest stage: tests/core/test_sink_bound.py."""
    shown = tuple(
        StageSignals(workload="shop/orders", stage=f"s{number}", utilization_ratio=ratio)
        for number, ratio in enumerate(stages)
    )
    made = Entry(decision=decision(utilization_ratio=0.5), error_after_s=180.0, window_s=60.0, stages=shown)
    found = get(app_of(made), f"{N}/shop/utilization{selector}").get_json()
    assert [item["value"] for item in found["items"]] == [expected]


@pytest.mark.parametrize(
    ("uri", "accept", "content_type"),
    [
        pytest.param(E, "", JSON, id="aggregator, availability"),
        pytest.param("/apis", f"{AGGREGATED},{V2BETA1},{JSON}", AGGREGATED, id="aggregator"),
        pytest.param("/openapi/v2", JSON, JSON, id="aggregator, OpenAPI"),
        pytest.param(METRIC, "application/vnd.kubernetes.protobuf, */*", JSON, id="HPA controller"),
        pytest.param(METRIC, f"{JSON}, */*", JSON, id="kubectl get --raw"),
        pytest.param(METRIC, f"{TABLE},{JSON}", JSON, id="kubectl get METRIC.GROUP"),
    ],
)
def test_each_client_of_decision_45_gets_the_json_that_it_accepts(uri: str, accept: str, content_type: str) -> None:
    response = get(app_of(), uri, **({"Accept": accept} if accept else {}))
    assert (response.status_code, response.content_type) == (200, content_type)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (f"{AGGREGATED},application/json", AGGREGATED),
        (f"{AGGREGATED},{V2BETA1},application/json", AGGREGATED),
        (f"{V2BETA1},application/json", JSON),
        ("application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io;profile=nopeer", AGGREGATED),
        (JSON, JSON),
        (f"{JSON},{AGGREGATED}", JSON),
        ("", JSON),
    ],
)
def test_case_4_the_root_is_aggregated_for_clients_that_prefer_it(accept: str, content_type: str) -> None:
    response = get(app_of(), "/apis", Accept=accept)
    assert (response.status_code, response.content_type) == (200, content_type)
    if "as=" in content_type:
        custom, external = response.get_json()["items"]
        assert [each["resource"] for each in external["versions"][0]["resources"]] == list(METRICS)
        assert [each["version"] for each in custom["versions"]] == ["v1beta2", "v1beta1"]
        assert {each["resource"] for each in custom["versions"][0]["resources"]} == set(OBJECT_KINDS)
        assert all(version["freshness"] == "Current" for version in custom["versions"])


def test_case_5_aggregated_discovery_and_openapi_are_sent_once() -> None:
    for uri, accept in (("/apis", AGGREGATED), ("/openapi/v2", "application/json")):
        etag = get(app_of(), uri, Accept=accept).headers["Etag"]
        again = get(app_of(), uri, Accept=accept, If_None_Match=etag)
        assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize("uri", [METRIC, E, "/apis", "/openapi/v2", f"{C}/job-0/required_workers"])
@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("", 200),
        ("*/*", 200),
        ("application/*", 200),
        ("application/vnd.kubernetes.protobuf, */*", 200),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/json;charset=utf-8", 200),
        ("text/html,application/xhtml+xml,*/*;q=0.8", 200),
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/yaml", 406),
        ("text/html", 406),
        (TABLE, 406),
        (V2BETA1, 406),
        (f"{TABLE},{JSON}", 200),
        (";q=x,,", 406),
    ],
)
def test_cases_40_to_43_a_client_that_does_not_accept_json_gets_a_406(uri: str, accept: str, code: int) -> None:
    assert answer(uri, Accept=accept)[0] == code


def test_case_9_an_item_has_its_keys_in_order() -> None:
    (item,) = answer(METRIC)[1]["items"]
    assert list(item.items()) == [
        ("metricName", "required_workers"),
        ("metricLabels", {"team": "red", "workload": "job-0"}),
        ("timestamp", "2026-01-02T03:04:05Z"),
        ("value", "3"),
    ]


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_rates_alone_have_a_window_and_it_is_that_of_their_workload(metric: Metric) -> None:
    full = [
        replace(FULL, decision=replace(FULL.decision, workload=f"shop/of-{window_s}"), window_s=window_s)
        for window_s in (60, 600)
    ]
    for window_s in (60, 600):
        external = f"{N}/shop/{metric.name}?labelSelector=workload%3Dof-{window_s}"
        found = [
            get(app_of(*full), uri).get_json()["items"][0] for uri in (external, f"{C}/of-{window_s}/{metric.name}")
        ]
        expected = window_s if metric.unit == "records/s" else None
        assert [found[0].get("window"), found[1].get("windowSeconds")] == [expected, expected]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_case_66_a_value_describes_its_object_in_the_form_of_the_version(version: str) -> None:
    uri = f"{C}/job-0/required_workers?metricLabelSelector=team%3Dred".replace("v1beta2", version)
    selector = {"matchLabels": {"team": "red"}}
    described = {"kind": "Deployment", "namespace": "shop", "name": "job-0", "apiVersion": "apps/v1"}
    at = {"describedObject": described, "timestamp": "2026-01-02T03:04:05Z", "value": "3"}
    code, document = answer(uri)
    assert (code, document["apiVersion"]) == (200, f"custom.metrics.k8s.io/{version}")
    assert document["items"] == [
        at | {"metricName": "required_workers", "selector": selector}
        if version == "v1beta1"
        else at | {"metric": {"name": "required_workers", "selector": selector}}
    ]


def test_case_68_a_selector_picks_among_objects() -> None:
    code, document = answer(f"{C}/*/required_workers?labelSelector=workload%3Djob-1", workloads=3)
    assert (code, [item["describedObject"]["name"] for item in document["items"]]) == (200, ["job-1"])


@pytest.mark.parametrize(
    "uri",
    [
        "/apis/external.metrics.k8s.io/v1beta9",
        f"{N}/foo",
        f"{N}/foo/a/b",
        f"{N}/a%2Fb",
        f"{N}//required_workers",
        f"{E}/m",
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/metrics/required_workers",
        "/apis/custom.metrics.k8s.io/v1beta2/nodes/n/required_workers",
        f"{C.replace('deployments.apps', 'pods')}/*/utilization",
        "/apis/apps/v1",
        "/nothing",
        "/livez/nothing",
        "/openapi/v3",
        "/version",
        "/",
    ],
)
def test_cases_8_37_69_an_unknown_path_is_a_404(uri: str) -> None:
    code, document = answer(uri)
    assert (code, document["kind"], document["reason"]) == (404, "Status", "NotFound")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("uri", [METRIC, E, "/apis", "/openapi/v2", f"{C}/job-0/required_workers"])
def test_case_39_other_methods_are_a_405(uri: str, method: str) -> None:
    code, document = answer(uri, method)
    assert (code, document["reason"], document["details"]) == (405, "MethodNotAllowed", {})


def test_case_39_head_is_a_405_too() -> None:
    assert answer(METRIC, "HEAD")[0] == 405


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("labelSelector=workload%3D%3D%3Djob", 400, "labelSelector: expected a term such as app=web"),
        ("fieldSelector=metadata.name%3Dx", 400, "field selectors are not supported"),
        ("watch=true&limit=x&timeout=x&resourceVersionMatch=Exact&unknown=1", 200, ""),
        ("labelSelector=workload%3Djob-0&labelSelector=%24", 200, ""),
        ("labelSelector=", 200, ""),
        ("labelSelector=%20workload%20in%20(job-0,job-1)%20", 200, ""),
        ("&".join(["a=b"] * 101), 400, "at most 100 parameters"),
        (f"labelSelector={'a' * 16_385}", 400, "at most 16384 characters"),
    ],
)
def test_cases_10_to_34_parameters_are_checked(query: str, code: int, words: str) -> None:
    found, document = answer(f"{METRIC}?{query}")
    assert found == code
    assert words in document.get("message", "")


@pytest.mark.parametrize("text", ["a%3D%3D%3Db", "a%3E1"])
def test_case_72_a_bad_metric_selector_is_a_400(text: str) -> None:
    assert answer(f"{C}/job-0/required_workers?metricLabelSelector={text}")[0] == 400


@pytest.mark.parametrize("name", ["UPPER", "a%3Ab", "a%7Cb", "%C3%A9", "%ff", "%00", "*"])
def test_case_38_strange_names_are_a_404(name: str) -> None:
    code, document = answer(f"{N}/shop/{name}")
    assert (code, document["reason"]) == (404, "NotFound")


def test_case_50_no_error_has_a_retry_after_header() -> None:
    """An HPA controller would block one of its workers for it."""
    store = SnapshotStore(lambda: AT_S)
    response = get(local_app(store), METRIC)
    assert response.status_code == 503
    assert "Retry-After" not in response.headers


def test_case_76_an_unforeseen_error_is_a_500_without_its_cause() -> None:
    def boom(request: object) -> Any:
        raise RuntimeError("the inside")

    app = app_of()
    app.view_functions["/apis"] = boom
    response = get(app, "/apis")
    assert (response.status_code, response.get_json()["reason"]) == (500, "InternalError")
    assert b"inside" not in response.data


def test_monitoring_answers_beside_the_api() -> None:
    readiness = Readiness(lambda: True)
    app = app_of(readiness=readiness)
    assert [get(app, path).data for path in ("/healthz", "/livez", "/readyz", "/livez/ping")] == [b"ok"] * 4
    assert b"backlog_adapter_snapshot_age_seconds" in get(app, "/metrics").data
    assert (
        get(app, "/readyz?verbose").data == b"[+]ping ok\n[+]first-snapshot ok\n[+]shutdown ok\nreadyz check passed\n"
    )
    readiness.stop()
    assert get(app, "/readyz").status_code == 500
    assert b"[-]shutdown failed: reason withheld" in get(app, "/readyz").data
    assert get(app, "/livez").status_code == 200


def test_without_a_snapshot_a_server_becomes_ready_after_a_while() -> None:
    now_s = [0.0]
    readiness = Readiness(lambda: False, clock=lambda: now_s[0])
    app = app_of(readiness=readiness)
    assert get(app, "/readyz/first-snapshot").status_code == 500
    now_s[0] = 119.0
    assert get(app, "/readyz").status_code == 500
    now_s[0] = 120.0
    assert get(app, "/readyz").status_code == 200


def test_a_server_without_its_certificate_is_not_ready() -> None:
    issued = [False]
    app = app_of(readiness=Readiness(lambda: True, more={"certificate": lambda: issued[0]}))
    assert get(app, "/readyz").status_code == get(app, "/readyz/certificate").status_code == 500
    assert get(app, "/livez").status_code == 200
    issued[0] = True
    assert get(app, "/readyz").status_code == 200


def test_the_committed_openapi_document_is_the_generated_one() -> None:
    """Run `python -m conformance.openapi` after a change of the types."""
    assert json.loads(openapi.FILE.read_bytes()) == openapi.document()
    assert get(app_of(), "/openapi/v2").get_json() == openapi.document()


@pytest.mark.parametrize("uri", [METRIC, f"{C}/job-0/required_workers", f"{C}/*/required_workers"])
def test_the_openapi_document_describes_the_responses(uri: str) -> None:
    document = openapi.document()
    kind = answer(uri)[1]
    schemas = {
        (each["group"], each["kind"]): schema
        for schema in document["definitions"].values()
        for each in schema.get("x-kubernetes-group-version-kind", ())
        if each["version"] == kind["apiVersion"].partition("/")[2]
    }
    schema = schemas[kind["apiVersion"].partition("/")[0], kind["kind"]]
    item = document["definitions"][schema["properties"]["items"]["items"]["$ref"].rpartition("/")[2]]
    assert set(kind) == set(schema["properties"])
    assert set(kind["items"][0]) <= set(item["properties"])
    assert set(item["required"]) <= set(kind["items"][0])
