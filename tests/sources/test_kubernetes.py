"""The reader on answers that a real API server gave; data/kubernetes/*.json are its answers by path."""

import copy
import json
import logging
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import urllib3
from hostile_server import Answer, Form, http_server, send
from pod_environment import unused_proxy
from sample_rows import rows_of

from adapter.config import KubernetesSource
from adapter.errors import SourceError
from adapter.sources.kubernetes import KubernetesReader, RefusedError
from adapter.sources.sample_table import FAULT
from conformance.cluster import kubeconfig

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "kubernetes" / "a_tick.json").read_text())["answers"]
HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
CLICKS_SCALE = "/apis/flink.example.org/v1beta1/namespaces/shop/flinkdeployments/clicks/scale"
# The only version in the recording, which has no group.
RECORDED["/apis/flink.example.org"] = {"preferredVersion": {"groupVersion": "flink.example.org/v1beta1"}}
for item in RECORDED[HPAS]["items"]:  # these were recorded with the targets of others, which is a fault of its own
    if item["metadata"]["name"] in ("twice-a", "twice-b", "badpause"):
        item["spec"]["scaleTargetRef"]["name"] = item["metadata"]["name"]
SETTINGS = KubernetesSource(kind="kubernetes")
NOW_S = 1_795_284_869


class ApiServer:
    """Answers with recorded JSON, and records the paths of the requests."""

    def __init__(self, answers: Mapping[str, Any] = RECORDED) -> None:
        self.answers = copy.deepcopy(dict(answers))
        self.requests: list[str] = []
        self.timeouts_s: list[float] = []

    def get(self, path: str, query: Mapping[str, str], timeout_s: float) -> Any:
        self.requests.append(path)
        self.timeouts_s.append(timeout_s)
        answer = self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        if "status" in answer and "reason" in answer:
            raise RefusedError(answer["status"], path, answer["reason"])
        return answer


def reader(server: ApiServer, now_s: float = NOW_S) -> KubernetesReader:
    return KubernetesReader("kubernetes", SETTINGS, lambda: now_s, server.get)


def seen(source: KubernetesReader) -> dict[tuple[str, str], float | str]:
    return {(row.workload, row.signal): row.text or row.value for row in rows_of(source.samples(NOW_S, NOW_S, 15))}


def of(found: dict[tuple[str, str], float | str], workload: str) -> dict[str, float | str]:
    return {signal: value for (name, signal), value in found.items() if name == workload}


def test_a_deployment_of_a_real_cluster() -> None:
    assert of(seen(reader(ApiServer())), "shop/orders") == {
        "min_workers": 2.0,
        "max_workers": 12.0,
        "spec_workers": 3.0,
        "workers": 3.0,
        "ready_workers": 0.0,
        "pause_up": 1.0,
        "pause_down": 0.0,
        "bad_annotations": 0.0,
        "failover": 0.0,
    }


def test_any_kind_with_a_scale_subresource_is_a_target_whose_workers_are_unknown_until_it_reports_some() -> None:
    server = ApiServer()
    source = reader(server)
    status = server.answers[CLICKS_SCALE]["status"]
    found = []
    for replicas in (0, 3, 0):
        status["replicas"] = replicas
        clicks = of(seen(source), "shop/clicks")
        found.append((clicks["spec_workers"], clicks.get("workers"), clicks.get("ready_workers")))
    assert found == [(4.0, None, None), (4.0, 3.0, 3.0), (4.0, 0.0, 0.0)]


@pytest.mark.parametrize(
    ("workload", "sentence"),
    [
        pytest.param(
            "shop/gone", "HPA shop/gone: its scale target Deployment shop/gone does not exist", id="no target"
        ),
        pytest.param(
            "shop/oddkind",
            "HPA shop/oddkind: its scale target Nothing shop/oddkind (flink.example.org/v1beta1) does not exist or "
            "cannot be scaled",
            id="a kind that is not there",
        ),
        pytest.param(
            "shop/twice",
            "HPAs shop/twice-a and shop/twice-b scale workload shop/twice: write all their metrics into one HPA",
            id="two HPAs",
        ),
    ],
)
def test_an_unknown_scale_is_a_fault_of_its_workload_alone(workload: str, sentence: str) -> None:
    found = seen(reader(ApiServer()))
    assert found[(workload, FAULT)] == sentence
    assert ("shop/orders", FAULT) not in found


def test_hpas_of_other_metrics_and_by_expressions_are_ignored() -> None:
    assert {workload for workload, _ in seen(reader(ApiServer()))} == {
        f"shop/{name}" for name in ("orders", "ledger", "clicks", "gone", "oddkind", "twice", "badpause")
    }


def test_targets_are_listed_by_namespace_and_kind_and_not_one_by_one() -> None:
    server = ApiServer()
    seen(reader(server))
    assert [path for path in server.requests if "/apps/v1/" in path] == [
        "/apis/apps/v1/namespaces/shop/deployments",
        "/apis/apps/v1/namespaces/shop/statefulsets",
    ]


def test_discovery_is_requested_once() -> None:
    server = ApiServer()
    source = reader(server)
    del server.answers[HPAS]["items"][:]
    server.answers[HPAS]["items"] += [item for item in RECORDED[HPAS]["items"] if item["metadata"]["name"] == "clicks"]
    seen(source)
    seen(source)
    assert server.requests.count("/apis/flink.example.org/v1beta1") == 1


def test_a_target_is_read_in_the_version_that_its_group_prefers() -> None:
    """As the HPA controller reads it, which ignores the version in an HPA."""
    server = ApiServer()
    source = reader(server)
    assert of(seen(source), "shop/clicks")["spec_workers"] == 4.0
    for path in (CLICKS_SCALE, "/apis/flink.example.org/v1beta1"):
        server.answers[path.replace("v1beta1", "v1")] = server.answers[path]
        server.answers[path] = {"status": 404, "reason": "Not Found"}
    server.answers["/apis/flink.example.org"] = {"preferredVersion": {"groupVersion": "flink.example.org/v1"}}
    assert "does not exist" in str(of(seen(source), "shop/clicks")[FAULT])
    assert of(seen(source), "shop/clicks")["spec_workers"] == 4.0


def test_a_kind_that_the_preferred_version_lacks_is_read_in_the_version_of_its_hpa() -> None:
    server = ApiServer()
    server.answers["/apis/flink.example.org"] = {"preferredVersion": {"groupVersion": "flink.example.org/v1"}}
    server.answers["/apis/flink.example.org/v1"] = {"resources": [{"name": "sessions", "kind": "Session"}]}
    assert of(seen(reader(server)), "shop/clicks")["spec_workers"] == 4.0


def hpas_of(server: ApiServer, targets: list[dict[str, str]]) -> None:
    """Let the server have one HPA for each scale target, and no other."""
    [clicks] = [item for item in RECORDED[HPAS]["items"] if item["metadata"]["name"] == "clicks"]
    many = [copy.deepcopy(clicks) for _ in targets]
    for item, target in zip(many, targets, strict=True):
        item["metadata"]["name"], item["spec"]["scaleTargetRef"] = target["name"], target
    server.answers[HPAS] = {"metadata": {}, "items": many}


def test_a_missing_target_costs_one_discovery_of_its_kind_in_a_tick() -> None:
    server = ApiServer()
    [clicks] = [item for item in RECORDED[HPAS]["items"] if item["metadata"]["name"] == "clicks"]
    target = clicks["spec"]["scaleTargetRef"]
    hpas_of(server, [{**target, "name": f"clicks-{number}"} for number in range(40)])
    for number in range(40):
        server.answers[CLICKS_SCALE.replace("clicks", f"clicks-{number}")] = {"status": 404, "reason": "Not Found"}
    source = reader(server)
    for _ in range(3):
        server.requests.clear()
        seen(source)
        assert sum(path.endswith("/scale") for path in server.requests) == 40
        assert server.requests.count("/apis/flink.example.org") == 1
        assert server.requests.count("/apis/flink.example.org/v1beta1") == 1


def test_a_target_of_the_core_api_group() -> None:
    server = ApiServer()
    hpas_of(server, [{"apiVersion": "v1", "kind": "ReplicationController", "name": "clicks"}])
    server.answers["/api/v1"] = {"resources": [{"name": "replicationcontrollers", "kind": "ReplicationController"}]}
    server.answers["/api/v1/namespaces/shop/replicationcontrollers/clicks/scale"] = server.answers[CLICKS_SCALE]
    assert of(seen(reader(server)), "shop/clicks")["spec_workers"] == 4.0


def test_many_namespaces_are_one_list_of_the_cluster() -> None:
    server = ApiServer()
    [orders] = [item for item in RECORDED[HPAS]["items"] if item["metadata"]["name"] == "orders"]
    many = [copy.deepcopy(orders) for _ in range(21)]
    for number, item in enumerate(many):
        item["metadata"]["namespace"] = f"team-{number}"
    server.answers = {HPAS: {"metadata": {}, "items": many}, "/apis/apps/v1/deployments": {"metadata": {}, "items": []}}
    assert len({workload for workload, _ in seen(reader(server))}) == 21
    assert server.requests == [HPAS, "/apis/apps/v1/deployments"]


def test_a_long_list_is_read_in_pages() -> None:
    server = ApiServer()
    items = RECORDED[HPAS]["items"]
    pages = [{"metadata": {"continue": "next"}, "items": items[:3]}, {"metadata": {"continue": ""}, "items": items[3:]}]
    queries: list[Mapping[str, str]] = []

    def get(path: str, query: Mapping[str, str], timeout_s: float) -> Any:
        if path != HPAS:
            return server.get(path, query, timeout_s)
        queries.append(query)
        return pages[len(queries) - 1]

    assert seen(KubernetesReader("kubernetes", SETTINGS, lambda: NOW_S, get)) == seen(reader(ApiServer()))
    assert queries == [{"limit": "500"}, {"limit": "500", "continue": "next"}]


def test_every_request_has_the_remaining_time_as_its_timeout() -> None:
    server = ApiServer()
    seen(reader(server))
    assert all(0 < timeout_s <= SETTINGS.deadline_s for timeout_s in server.timeouts_s)
    listed = server.timeouts_s[:3]  # scale subresources are requested at the same time
    assert listed == sorted(listed, reverse=True)
    assert max(server.timeouts_s[3:]) < listed[-1]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        pytest.param(
            {"status": 403, "reason": "Forbidden"},
            f"kubernetes: {HPAS}: 403 Forbidden: allow list on it in the adapter's ClusterRole",
            id="forbidden",
        ),
        pytest.param(
            {"status": 401, "reason": "Unauthorized"},
            f"kubernetes: {HPAS}: 401 Unauthorized: the credentials are not accepted; renew the kubeconfig or the "
            "token of the service account",
            id="an old token",
        ),
        pytest.param(
            {"status": 503, "reason": "Service Unavailable"}, f"kubernetes: {HPAS}: 503 Service Unavailable", id="503"
        ),
        pytest.param(
            urllib3.exceptions.ProtocolError("Connection aborted"),
            "kubernetes: no answer from the API server within 5 s: Connection aborted",
            id="no connection",
        ),
    ],
)
def test_an_api_server_that_refuses_is_an_error_of_the_source(answer: Any, sentence: str) -> None:
    server = ApiServer({HPAS: answer})
    with pytest.raises(SourceError) as raised:
        seen(reader(server))
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    "scale", [[], "a page", {"spec": []}, {"status": {"replicas": None}}, {"spec": {"replicas": -1}}]
)
def test_a_scale_of_another_form_is_a_fault_of_its_workload_alone(scale: Any) -> None:
    server = ApiServer()
    server.answers[CLICKS_SCALE] = scale
    found = seen(reader(server))
    assert "scale: 200 not an answer of the Kubernetes API: Expected" in str(found[("shop/clicks", FAULT)])
    assert found[("shop/orders", "workers")] == 3.0


def test_a_forbidden_scale_is_a_fault_of_its_workload_alone() -> None:
    server = ApiServer()
    server.answers[CLICKS_SCALE] = {"status": 403, "reason": "Forbidden"}
    found = seen(reader(server))
    assert found[("shop/clicks", FAULT)] == (
        f"HPA shop/clicks: {CLICKS_SCALE}: 403 Forbidden: allow get on it: "
        "add GROUP/RESOURCE to rbac.extraScaleTargets of the chart"
    )
    assert found[("shop/orders", "workers")] == 3.0


def test_no_right_is_proposed_for_a_kind_that_no_hpa_can_scale() -> None:
    server = ApiServer()
    version = "sparkoperator.k8s.io/v1beta2"
    clicks = next(item for item in server.answers[HPAS]["items"] if item["metadata"]["name"] == "clicks")
    clicks["spec"]["scaleTargetRef"] |= {"apiVersion": version, "kind": "SparkApplication"}
    server.answers["/apis/sparkoperator.k8s.io"] = {"preferredVersion": {"groupVersion": version}}
    server.answers[f"/apis/{version}"] = {"resources": [{"name": "sparkapplications", "kind": "SparkApplication"}]}
    scale = f"/apis/{version}/namespaces/shop/sparkapplications/clicks/scale"
    server.answers[scale] = {"status": 403, "reason": "Forbidden"}
    assert seen(reader(server))[("shop/clicks", FAULT)] == (
        "HPA shop/clicks: no HPA can scale SparkApplication shop/clicks: sparkoperator.k8s.io/v1beta2 has no scalable "
        "kind SparkApplication; correct apiVersion or kind, or scale what runs its workers, such as a Deployment"
    )


def test_a_forbidden_discovery_names_the_role_that_allows_it() -> None:
    server = ApiServer()
    server.answers["/apis/flink.example.org"] = {"status": 403, "reason": "Forbidden"}
    expected = "/apis/flink.example.org: 403 Forbidden: grant system:discovery to the adapter"
    assert seen(reader(server))[("shop/clicks", FAULT)] == f"HPA shop/clicks: {expected}"


def test_a_scale_that_hangs_is_a_fault_of_its_workload_alone() -> None:
    server = ApiServer()
    server.answers[CLICKS_SCALE] = urllib3.exceptions.TimeoutError("Read timed out.")
    found = seen(reader(server))
    assert found[("shop/clicks", FAULT)] == (
        "HPA shop/clicks: its scale target FlinkDeployment shop/clicks: "
        "no answer from the API server within 5 s: Read timed out."
    )
    assert (found[("shop/clicks", "max_workers")], found[("shop/orders", "workers")]) == (12.0, 3.0)


def test_scales_are_read_at_the_same_time() -> None:
    server = ApiServer()
    [clicks] = [item for item in RECORDED[HPAS]["items"] if item["metadata"]["name"] == "clicks"]
    two = [copy.deepcopy(clicks) for _ in range(2)]
    for item, name in zip(two, ("left", "right"), strict=True):
        item["spec"]["scaleTargetRef"]["name"] = item["metadata"]["name"] = name
        for metric in item["spec"]["metrics"]:
            metric["external"]["metric"]["selector"]["matchLabels"]["workload"] = name
    server.answers[HPAS]["items"] = two
    both = threading.Barrier(2, timeout=10)

    def get(path: str, query: Mapping[str, str], timeout_s: float) -> Any:
        if path.endswith("/scale"):
            both.wait()
            return RECORDED[CLICKS_SCALE]
        return server.get(path, query, timeout_s)

    found = seen(KubernetesReader("kubernetes", SETTINGS, lambda: NOW_S, get))
    assert (found[("shop/left", "spec_workers")], found[("shop/right", "spec_workers")]) == (4.0, 4.0)


def test_after_the_deadline_no_scale_is_requested() -> None:
    server = ApiServer()

    def get(path: str, query: Mapping[str, str], timeout_s: float) -> Any:
        if "/apps/v1/" in path:
            time.sleep(max(0, timeout_s))
        return server.get(path, query, timeout_s)

    settings = SETTINGS.model_copy(update={"deadline_s": 0.05})
    found = seen(KubernetesReader("kubernetes", settings, lambda: NOW_S, get))
    assert str(found[("shop/clicks", FAULT)]).endswith(
        "within 0.05 s: the requests before that of FlinkDeployment shop/clicks took too long"
    )
    assert CLICKS_SCALE not in server.requests


def test_an_invalid_pause_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    source = reader(ApiServer())
    with caplog.at_level(logging.WARNING):
        seen(source)
        seen(source)
    assert [record.getMessage() for record in caplog.records] == [
        "HPA shop/badpause: annotation backlog-adapter/pause is 'sideways', expected up, down or both: "
        "both directions are paused until it is corrected"
    ]


def test_a_fault_that_comes_back_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    server = ApiServer()
    source, faulty = reader(server), server.answers[HPAS]
    for answer in (faulty, {"metadata": {}, "items": []}, faulty):
        server.answers[HPAS] = answer
        seen(source)
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(("late_s", "answers"), [(14.9, True), (15.0, False)])
def test_kubernetes_has_no_past(late_s: float, answers: bool) -> None:
    server = ApiServer()
    assert bool(rows_of(reader(server, NOW_S + late_s).samples(NOW_S - 300, NOW_S, 15))) is answers
    assert bool(server.requests) is answers


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(None, "the file is missing or empty", id="no file"),
        pytest.param("a: [", "no YAML in line 1", id="no YAML"),
        pytest.param("a: !secret", "no YAML in line 1", id="a tag"),
        pytest.param("a: *secret", "no YAML in line 1", id="an alias"),
        pytest.param("{}", "Invalid kube-config file", id="no cluster"),
        pytest.param("1", "TypeError", id="a number"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_an_error_of_the_source(
    tmp_path: Path, text: str | None, cause: str
) -> None:
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SourceError, match=rf"^kubernetes: expected a kubeconfig in {file}: .*{cause}"):
        seen(KubernetesReader("kubernetes", KubernetesSource(kind="kubernetes", kubeconfig=str(file)), lambda: NOW_S))


def test_the_error_of_a_kubeconfig_names_the_setting_and_the_context(tmp_path: Path) -> None:
    settings = KubernetesSource(kind="kubernetes", kubeconfig=str(tmp_path / "absent"), context="prod")
    with pytest.raises(SourceError) as raised:
        seen(KubernetesReader("main", settings, lambda: NOW_S))
    fix = "; set sources.main.kubeconfig to a complete file that has the context prod, or run in a pod"
    assert str(raised.value).endswith(fix)


def test_the_error_of_a_kubeconfig_does_not_contain_its_token(tmp_path: Path) -> None:
    """The client's message has the entry of the user in which it misses a key."""
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig("http://127.0.0.1:1", token="secret").replace('"user": {', '"usr": {'))
    with pytest.raises(SourceError, match="Expected key user in ") as raised:
        seen(KubernetesReader("kubernetes", KubernetesSource(kind="kubernetes", kubeconfig=str(file)), lambda: NOW_S))
    assert "secret" not in str(raised.value)


def test_the_proxy_of_the_environment_is_not_used_in_the_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = KubernetesSource(kind="kubernetes", deadline_s=0.5)
    with unused_proxy(monkeypatch, tmp_path), pytest.raises(SourceError, match="no answer from the API server"):
        seen(KubernetesReader("kubernetes", settings, lambda: NOW_S))


def record_tokens(tokens: list[str]) -> Answer:
    """The answers of an API server without HPAs. tokens: receives the token of each request."""

    def answer(request: BaseHTTPRequestHandler, form: Form) -> None:
        tokens.append(request.headers["authorization"])
        send(request, b'{"metadata": {}, "items": []}', status=401 if tokens[-1] == "Bearer expired" else 200)

    return answer


def test_a_changed_kubeconfig_is_used_in_the_next_tick(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    source = KubernetesReader("kubernetes", KubernetesSource(kind="kubernetes", kubeconfig=str(file)), lambda: NOW_S)
    tokens: list[str] = []
    with http_server(record_tokens(tokens)) as url:
        for token in ("first", "first", "second"):
            file.write_text(kubeconfig(url, token=token))
            seen(source)
    assert tokens == ["Bearer first", "Bearer first", "Bearer second"]


def test_a_token_file_is_read_again_after_its_token_is_refused(tmp_path: Path) -> None:
    file, token = tmp_path / "kubeconfig", tmp_path / "token"
    source = KubernetesReader("kubernetes", KubernetesSource(kind="kubernetes", kubeconfig=str(file)), lambda: NOW_S)
    tokens: list[str] = []
    with http_server(record_tokens(tokens)) as url:
        file.write_text(kubeconfig(url, tokenFile=str(token)))
        token.write_text("expired")
        with pytest.raises(SourceError, match="401 Unauthorized"):
            seen(source)
        token.write_text("renewed")
        seen(source)
    assert tokens == ["Bearer expired", "Bearer renewed"]
