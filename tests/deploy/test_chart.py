"""charts/backlog-adapter: what helm renders fits together, and fits the program."""

import base64
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from adapter.config import Config

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "backlog-adapter"
NAME = "orders-backlog-adapter"
Render = Callable[..., dict[tuple[str, str], dict[str, Any]]]


def config(objects: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    return yaml.safe_load(objects["ConfigMap", NAME]["data"]["config.yaml"])


def pod(objects: dict[tuple[str, str], dict[str, Any]], name: str) -> dict[str, Any]:
    return objects["Deployment", name]["spec"]["template"]["spec"]


def secrets(objects: dict[tuple[str, str], dict[str, Any]], name: str) -> dict[str, str]:
    """The Secret of each volume of a deployment that has one."""
    return {
        volume["name"]: volume["secret"]["secretName"] for volume in pod(objects, name)["volumes"] if "secret" in volume
    }


def container(objects: dict[tuple[str, str], dict[str, Any]], name: str) -> dict[str, Any]:
    return pod(objects, name)["containers"][0]


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
    volumes = pod(objects, f"{NAME}-pipeline")["volumes"]
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


@pytest.mark.parametrize("name", [NAME, f"{NAME}-pipeline"])
def test_pods_run_as_the_user_that_the_images_know_by_name(render: Render, name: str) -> None:
    """Hadoop, inside Spark, does not start for a user without an entry in /etc/passwd."""
    stages = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    final = [stage for stage in stages if re.match(r"\S+ AS (serve|pipeline)\n", stage)]
    security = pod(render(), name)["securityContext"]
    user, group = security["runAsUser"], security["runAsGroup"]
    assert len(final) == 2
    for stage in final:
        assert f"\nRUN useradd --uid {user} " in stage
        assert f"\nUSER {user}:{group}\n" in stage


@pytest.mark.parametrize("name", [NAME, f"{NAME}-pipeline"])
def test_a_pod_is_ready_by_readyz_and_alive_by_livez(render: Render, name: str) -> None:
    probes = {key: value for key, value in container(render(), name).items() if key.endswith("Probe")}
    assert probes.pop("readinessProbe")["httpGet"]["path"] == "/readyz"
    assert {probe["httpGet"]["path"] for probe in probes.values()} == {"/livez"}


def test_a_server_that_goes_is_missed_by_nobody(render: Render) -> None:
    """It is seen to be unready during its farewell of 5 s, and has its 10 s more for the last answers."""
    readiness = container(render(), NAME)["readinessProbe"]
    assert readiness["periodSeconds"] * readiness["failureThreshold"] < 5
    assert pod(render(), NAME)["terminationGracePeriodSeconds"] > 15


def test_secrets_that_exist_are_used_and_none_is_made(render: Render) -> None:
    ca = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()
    objects = render("tls.existingSecret=own-tls", f"tls.caBundle={ca}", "token.existingSecret=own-token")
    assert not [name for kind, name in objects if kind == "Secret"]
    assert objects["APIService", "v1beta1.external.metrics.k8s.io"]["spec"]["caBundle"] == ca
    for name in (NAME, f"{NAME}-pipeline"):
        assert secrets(objects, name) == {"tls": "own-tls", "token": "own-token"}


def test_a_chart_with_its_secrets_given_renders_the_same_each_time(render: Render) -> None:
    given = ("tls.existingSecret=own-tls", "tls.caBundle=LS0tLS1CRUdJTiA=", "token.existingSecret=own-token")
    assert render(*given) == render(*given)


def test_an_api_service_of_another_owner_needs_no_ca(render: Render) -> None:
    objects = render("tls.existingSecret=own-tls", "apiService.create=false")
    assert secrets(objects, NAME)["tls"] == "own-tls"


def test_serving_has_no_right_that_it_does_not_use(render: Render) -> None:
    bound = {item["roleRef"]["name"] for (kind, _), item in render().items() if kind.endswith("RoleBinding")}
    assert "system:auth-delegator" not in bound


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        pytest.param("serve.replicas=0", "/serve/replicas", id="no server"),
        pytest.param("serve.replica=2", "'replica' not allowed", id="a value that does not exist"),
        pytest.param("config.sources=null", "'sources'", id="no source"),
        pytest.param("tls.existingSecret=own", "tls.caBundle is required", id="a certificate without its CA"),
        pytest.param("tls.caBundle=LS0tLS1CRUdJTiA=", "/tls/existingSecret", id="a CA without its certificate"),
        pytest.param("tls.caBundle=-----BEGIN", "/tls/caBundle", id="a CA that is not in base64"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_installed(
    helm: Callable[..., subprocess.CompletedProcess[str]], value: str, complaint: str
) -> None:
    done = helm("template", "orders", str(CHART), "--set", value)
    assert done.returncode != 0
    assert complaint in done.stderr
