"""`backlog-adapter check-api` against an API server of the test on loopback."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hostile_server import Form, http_server, send

from adapter import cli
from conformance.cluster import kubeconfig

EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
OF_ORDERS = f"{EXTERNAL}/namespaces/shop/required_workers?labelSelector=workload%3Dorders"
OF_THE_DEPLOYMENT = f"{CUSTOM}/namespaces/shop/deployments.apps/orders/required_workers"
LISTED = {"kind": "APIResourceList", "resources": [{"name": "required_workers"}]}
LISTED_CUSTOM = {"kind": "APIResourceList", "resources": [{"name": "deployments.apps/required_workers"}]}
FOUR = {"kind": "ExternalMetricValueList", "items": [{"value": "4"}]}
Answers = dict[str, tuple[int, Any]]


@dataclass(frozen=True)
class Cluster:
    """An API server. answers: path -> status with a document, or with a text."""

    kubeconfig: Path
    answers: Answers = field(default_factory=dict)

    def answer(self, request: BaseHTTPRequestHandler, form: Form) -> None:
        status, document = self.answers.get(request.path, (404, {"kind": "Status", "message": "not found"}))
        body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
        send(request, body, status=status)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "kubeconfig")
    with http_server(cluster.answer) as url:
        cluster.kubeconfig.write_text(kubeconfig(url))
        yield cluster


def run(cluster: Cluster, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["check-api", "--kubeconfig", str(cluster.kubeconfig), "--workload", "shop/orders", *options])
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_check_api_prints_the_number_that_the_hpa_controller_would_read(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers.update({EXTERNAL: (200, LISTED), OF_ORDERS: (200, FOUR)})
    code, out, _ = run(cluster, capsys)
    assert (code, out.splitlines()[-1]) == (0, "required_workers of shop/orders is 4")


def test_both_apis_can_be_checked(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    custom = {CUSTOM: (200, LISTED_CUSTOM), OF_THE_DEPLOYMENT: (200, FOUR)}
    cluster.answers.update({EXTERNAL: (200, LISTED), OF_ORDERS: (200, FOUR), **custom})
    code, out, _ = run(cluster, capsys, "--api", "external", "--api", "custom")
    assert (code, out.count("required_workers of shop/orders is 4")) == (0, 2)


def test_a_workload_without_a_number_passes_with_the_adapters_reason(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    status = {"kind": "Status", "message": "shop/orders: WarmingUp for 20 s"}
    cluster.answers.update({EXTERNAL: (200, LISTED), OF_ORDERS: (503, status)})
    code, out, _ = run(cluster, capsys)
    assert code == 0
    assert out.splitlines()[-1].endswith("has no number yet: shop/orders: WarmingUp for 20 s")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        pytest.param({}, "no APIService serves it", id="no APIService"),
        pytest.param({EXTERNAL: (503, "service unavailable\n")}, "503 service unavailable; read the", id="no server"),
        pytest.param(
            {EXTERNAL: (200, {"resources": [{"name": "s0-kafka"}]})}, "another adapter answers", id="another adapter"
        ),
        pytest.param(
            {EXTERNAL: (200, LISTED), OF_ORDERS: (403, {"kind": "Status", "message": "cannot list"})},
            "403 cannot list",
            id="forbidden",
        ),
        pytest.param(
            {EXTERNAL: (200, LISTED), OF_ORDERS: (503, "error trying to reach service")},
            "503 error trying to reach service",
            id="the server went away",
        ),
        pytest.param({EXTERNAL: (200, {"resources": None})}, "another adapter answers", id="a null list"),
        pytest.param({EXTERNAL: (200, {"resources": ["a", {"name": []}]})}, "another adapter", id="a list of texts"),
        pytest.param({EXTERNAL: (200, ["a"])}, "another adapter answers", id="a list as document"),
        pytest.param(
            {EXTERNAL: (200, LISTED), OF_ORDERS: (200, {"items": None})}, "orders: 200 without a message", id="no items"
        ),
        pytest.param({EXTERNAL: (502, "\x1b[2J" + "a" * 70_000)}, "502 \\x1b[2Jaaa", id="a long text with codes"),
    ],
)
def test_check_api_fails_where_the_adapter_does_not_answer(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], answers: Answers, message: str
) -> None:
    cluster.answers.update(answers)
    code, _, err = run(cluster, capsys)
    assert code == 2
    assert message in err
    assert len(err) < 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kubeconfig", "/nofile"], "a kubeconfig in /nofile: the file is missing or empty; set --kubeconfig"),
        ([], "the service account of a pod: Service host/port is not set; set --kubeconfig,"),
    ],
)
def test_a_missing_kubeconfig_or_service_account_is_named(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SystemExit):
        cli.main(["check-api", *options])
    assert message in capsys.readouterr().err


def test_an_unknown_api_is_refused(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(cluster, capsys, "--api", "metrics")
    assert (code, err) == (2, "backlog-adapter: --api: expected external or custom, got 'metrics'\n")
