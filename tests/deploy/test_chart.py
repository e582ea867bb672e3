"""charts/backlog-adapter: what helm renders fits together, and fits the program."""

import base64
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from adapter.config import Config

CHART = Path(__file__).parents[2] / "charts" / "backlog-adapter"
NAME = "orders-backlog-adapter"
Render = Callable[..., dict[tuple[str, str], dict[str, Any]]]


def config(objects: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    return yaml.safe_load(objects["ConfigMap", NAME]["data"]["config.yaml"])


def container(objects: dict[tuple[str, str], dict[str, Any]], name: str) -> dict[str, Any]:
    return objects["Deployment", name]["spec"]["template"]["spec"]["containers"][0]


def test_the_chart_passes_helms_own_lint(helm: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rendered_configuration_is_one_the_program_takes(render: Render) -> None:
    found = Config.model_validate(config(render()))
    assert found.serving.snapshot_url == f"https://{NAME}-pipeline.streaming.svc:8443"


def test_the_users_configuration_stays_as_it_is_beside_what_the_chart_adds(render: Render) -> None:
    found = config(render("config.timing.tick_s=5", "config.pipeline.cores=4"))
    assert found["timing"] == {"tick_s": 5}
    assert found["pipeline"]["cores"] == 4
    assert found["pipeline"]["port"] == 8443


@pytest.mark.parametrize("role", ["pipeline", "serving"])
def test_every_file_the_configuration_names_is_mounted(render: Render, role: str) -> None:
    objects = render()
    mounted = [mount["mountPath"] for mount in container(objects, f"{NAME}-pipeline")["volumeMounts"]]
    files = {key: path for key, path in config(objects)[role].items() if key.endswith("_file")}
    assert files
    assert [key for key, path in files.items() if not any(path.startswith(f"{folder}/") for folder in mounted)] == []


@pytest.mark.parametrize(("name", "role"), [(NAME, "serve"), (f"{NAME}-pipeline", "pipeline")])
def test_each_role_is_started_with_its_configuration(render: Render, name: str, role: str) -> None:
    assert container(render(), name)["args"] == [role, "--config", "/etc/backlog-adapter/config.yaml"]


def test_the_certificate_names_both_services_and_the_api_service_trusts_its_ca(render: Render) -> None:
    objects = render()
    secret = objects["Secret", f"{NAME}-tls"]["data"]
    leaf = x509.load_pem_x509_certificate(base64.b64decode(secret["tls.crt"]))
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    expected = [f"{NAME}.streaming.svc", f"{NAME}-pipeline.streaming.svc"]
    assert names.get_values_for_type(x509.DNSName) == expected
    assert objects["APIService", "v1beta1.external.metrics.k8s.io"]["spec"]["caBundle"] == secret["ca.crt"]


def test_each_service_selects_the_pods_of_its_deployment(render: Render) -> None:
    objects = render()
    for name in (NAME, f"{NAME}-pipeline"):
        labels = objects["Deployment", name]["spec"]["template"]["metadata"]["labels"]
        assert objects["Service", name]["spec"]["selector"].items() <= labels.items()


def test_the_api_service_can_be_left_to_another_owner(render: Render) -> None:
    assert not [name for kind, name in render("apiService.create=false") if kind == "APIService"]


def test_the_checkpoint_is_on_a_claim_when_asked_for(render: Render) -> None:
    objects = render("pipeline.persistence.enabled=true")
    volumes = objects["Deployment", f"{NAME}-pipeline"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "checkpoint", "persistentVolumeClaim": {"claimName": f"{NAME}-checkpoint"}} in volumes
    assert ("PersistentVolumeClaim", f"{NAME}-checkpoint") in objects


def test_nothing_of_ours_may_write_to_the_cluster(render: Render) -> None:
    verbs = {
        verb
        for (kind, _), item in render().items()
        if kind == "ClusterRole"
        for rule in item["rules"]
        for verb in rule["verbs"]
    }
    assert verbs <= {"get", "list", "watch"}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        pytest.param("serve.replicas=0", "/serve/replicas", id="no server"),
        pytest.param("serve.replica=2", "'replica' not allowed", id="a value that does not exist"),
        pytest.param("config.sources=null", "'sources'", id="no source"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_installed(
    helm: Callable[..., subprocess.CompletedProcess[str]], value: str, complaint: str
) -> None:
    done = helm("template", "orders", str(CHART), "--set", value)
    assert done.returncode != 0
    assert complaint in done.stderr
