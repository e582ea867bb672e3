"""charts/backlog-adapter: the rendered objects agree with each other and with the program."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.config import Config

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "backlog-adapter"
NAME = "orders-backlog-adapter"
EXTERNAL = "v1beta1.external.metrics.k8s.io"
CUSTOM = ["v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"]
Render = Callable[..., dict[tuple[str, str], dict[str, Any]]]


def config(objects: dict[tuple[str, str], dict[str, Any]]) -> dict[str, Any]:
    return yaml.safe_load(objects["ConfigMap", NAME]["data"]["config.yaml"])


def pod(objects: dict[tuple[str, str], dict[str, Any]], name: str) -> dict[str, Any]:
    return objects["Deployment", name]["spec"]["template"]["spec"]


def api_services(objects: dict[tuple[str, str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: item for (kind, name), item in objects.items() if kind == "APIService"}


def bound_to(objects: dict[tuple[str, str], dict[str, Any]], subject: str) -> set[str]:
    """The roles that a subject is bound to."""
    bindings = [item for (kind, _), item in objects.items() if kind.endswith("RoleBinding")]
    return {item["roleRef"]["name"] for item in bindings if subject in [named["name"] for named in item["subjects"]]}


def container(objects: dict[tuple[str, str], dict[str, Any]], name: str) -> dict[str, Any]:
    return pod(objects, name)["containers"][0]


def test_the_chart_passes_helms_own_lint(helm: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rendered_configuration_is_valid(render: Render) -> None:
    found = Config.model_validate(config(render()))
    assert found.serving.snapshot_url == f"https://{NAME}-pipeline.streaming.svc:8443"


def test_the_chart_adds_to_the_users_configuration_and_changes_nothing(render: Render) -> None:
    found = config(render("config.timing.tick_s=5", "config.pipeline.cores=4"))
    assert found["timing"] == {"tick_s": 5}
    assert found["pipeline"]["cores"] == 4
    assert found["pipeline"]["port"] == 8443


@pytest.mark.parametrize("role", ["pipeline", "serving"])
def test_every_file_in_the_configuration_is_mounted(render: Render, role: str) -> None:
    objects = render()
    deployment = {"pipeline": f"{NAME}-pipeline", "serving": NAME}[role]
    mounted = [mount["mountPath"] for mount in container(objects, deployment)["volumeMounts"]]
    files = {key: path for key, path in config(objects)[role].items() if key.endswith("_file")}
    assert files
    assert [key for key, path in files.items() if not any(path.startswith(f"{folder}/") for folder in mounted)] == []


@pytest.mark.parametrize(("name", "role"), [(NAME, "serve"), (f"{NAME}-pipeline", "pipeline")])
def test_each_role_is_started_with_its_configuration(render: Render, name: str, role: str) -> None:
    assert container(render(), name)["args"] == [role, "--config", "/etc/backlog-adapter/config.yaml"]


@pytest.mark.parametrize(("name", "key"), [(NAME, "serving.yaml"), (f"{NAME}-pipeline", "config.yaml")])
def test_each_role_gets_its_part_of_the_configuration(render: Render, name: str, key: str) -> None:
    objects = render()
    data = objects["ConfigMap", NAME]["data"]
    (volume,) = [each for each in pod(objects, name)["volumes"] if each["name"] == "config"]
    assert volume["configMap"] == {"name": NAME, "items": [{"key": key, "path": "config.yaml"}]}
    assert yaml.safe_load(data["serving.yaml"]) == {"serving": config(objects)["serving"]}


def test_each_service_selects_the_pods_of_its_deployment(render: Render) -> None:
    objects = render()
    for name in (NAME, f"{NAME}-pipeline"):
        labels = objects["Deployment", name]["spec"]["template"]["metadata"]["labels"]
        assert objects["Service", name]["spec"]["selector"].items() <= labels.items()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([], [EXTERNAL], id="default: custom metrics stay with their owner"),
        pytest.param(["apiService.custom.create=true"], [EXTERNAL, *CUSTOM], id="both groups"),
        pytest.param(["apiService.external.create=false", "apiService.custom.create=true"], CUSTOM, id="beside KEDA"),
        pytest.param(["apiService.external.create=false"], [], id="none"),
    ],
)
def test_each_api_group_has_a_switch(render: Render, values: list[str], expected: list[str]) -> None:
    assert sorted(api_services(render(*values))) == sorted(expected)


def test_an_api_service_is_named_by_version_and_group_and_leads_to_the_servers(render: Render) -> None:
    for name, item in api_services(render("apiService.custom.create=true")).items():
        spec = item["spec"]
        assert name == f"{spec['version']}.{spec['group']}"
        assert spec["service"] == {"name": NAME, "namespace": "streaming", "port": 443}
        assert "insecureSkipTLSVerify" not in spec


def test_the_newer_of_two_versions_is_preferred(render: Render) -> None:
    found = api_services(render("apiService.custom.create=true"))
    older, newer = (found[name]["spec"]["versionPriority"] for name in CUSTOM)
    assert newer > older


def test_persistence_puts_the_checkpoint_on_a_volume_claim(render: Render) -> None:
    objects = render("pipeline.persistence.enabled=true")
    volumes = pod(objects, f"{NAME}-pipeline")["volumes"]
    assert {"name": "checkpoint", "persistentVolumeClaim": {"claimName": f"{NAME}-checkpoint"}} in volumes
    assert ("PersistentVolumeClaim", f"{NAME}-checkpoint") in objects


@pytest.mark.parametrize("name", [NAME, f"{NAME}-pipeline"])
def test_pods_run_as_the_user_of_the_images(render: Render, name: str) -> None:
    stages = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    final = [stage for stage in stages if re.match(r"\S+ AS (serve|pipeline)\n", stage)]
    security = pod(render(), name)["securityContext"]
    user, group = security["runAsUser"], security["runAsGroup"]
    assert len(final) == 2
    for stage in final:
        assert f"\nUSER {user}:{group}\n" in stage


@pytest.mark.parametrize("name", [NAME, f"{NAME}-pipeline"])
def test_probes_use_readyz_and_livez(render: Render, name: str) -> None:
    probes = {key: value for key, value in container(render(), name).items() if key.endswith("Probe")}
    assert probes.pop("readinessProbe")["httpGet"]["path"] == "/readyz"
    assert {probe["httpGet"]["path"] for probe in probes.values()} == {"/livez"}


def test_a_server_becomes_unready_before_it_stops(render: Render) -> None:
    """Its probes fail within the shutdown delay of 5 s, and the last answers have 10 s more."""
    readiness = container(render(), NAME)["readinessProbe"]
    assert readiness["periodSeconds"] * readiness["failureThreshold"] < 5
    assert pod(render(), NAME)["terminationGracePeriodSeconds"] > 15


@pytest.mark.parametrize(("name", "role"), [(NAME, "serve"), (f"{NAME}-pipeline", "pipeline")])
def test_each_role_is_scheduled_by_its_own_values(render: Render, name: str, role: str) -> None:
    values = ["priorityClassName=first", "nodeSelector.zone=a", "tolerations[0].key=b", "podLabels.team=c"]
    objects = render(*(f"{role}.{each}" for each in (*values, "podAnnotations.d=e")))
    template = objects["Deployment", name]["spec"]["template"]
    assert template["spec"]["priorityClassName"] == "first"
    assert template["spec"]["nodeSelector"] == {"zone": "a"}
    assert template["spec"]["tolerations"] == [{"key": "b"}]
    assert template["metadata"]["labels"]["team"] == "c"
    assert template["metadata"]["annotations"]["d"] == "e"
    (other,) = {NAME, f"{NAME}-pipeline"} - {name}
    assert not {"priorityClassName", "nodeSelector", "tolerations"} & pod(objects, other).keys()


def test_the_pod_of_helm_test_runs_where_the_servers_run(render: Render) -> None:
    values = ["serve.nodeSelector.zone=a", "serve.tolerations[0].key=b"]
    (tester,) = [item["spec"] for (kind, _), item in render(*values).items() if kind == "Pod"]
    assert (tester["nodeSelector"], tester["tolerations"]) == ({"zone": "a"}, [{"key": "b"}])


def test_both_images_use_the_pull_secrets(render: Render) -> None:
    objects = render("images.pullSecrets={first,second}")
    for name in (NAME, f"{NAME}-pipeline"):
        assert pod(objects, name)["imagePullSecrets"] == [{"name": "first"}, {"name": "second"}]


@pytest.mark.parametrize("size", ["10Gi", "1.5Gi", "500M", "1e+10", "10737418240"])
def test_a_size_is_any_quantity_of_kubernetes(render: Render, size: str) -> None:
    claim = render("pipeline.persistence.enabled=true", f"pipeline.persistence.size={size}")
    requested = claim["PersistentVolumeClaim", f"{NAME}-checkpoint"]["spec"]["resources"]["requests"]["storage"]
    assert str(requested) == size


@pytest.mark.parametrize("groups", [("external",), ("custom",), ("external", "custom")])
def test_the_hpa_controller_can_read_every_metric_of_the_groups_of_the_chart(
    render: Render, groups: tuple[str, ...]
) -> None:
    objects = render(*(f"apiService.{api}.create={str(api in groups).lower()}" for api in ("external", "custom")))
    reader = f"streaming:{NAME}-metrics-reader"
    assert objects["ClusterRole", reader]["rules"] == [
        {"apiGroups": [f"{api}.metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]} for api in groups
    ]
    for account in ("horizontal-pod-autoscaler", "system:kube-controller-manager"):
        assert bound_to(objects, account) == {reader}


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("tls.mode=cert-manager", "networkPolicy.enabled=true", "pipeline.persistence.enabled=true"),
        ("dashboards.enabled=true", "podMonitor.enabled=true", "prometheusRule.enabled=true"),
    ],
    ids=["by default", "cert-manager, policies, a claim", "monitoring"],
)
def test_each_object_names_its_namespace(render: Render, values: tuple[str, ...]) -> None:
    """`kubectl apply` of a rendering puts an object without one into the namespace of its context."""
    of_the_cluster = {"APIService", "ClusterRole", "ClusterRoleBinding"}
    named = {(kind in of_the_cluster, item["metadata"].get("namespace")) for (kind, _), item in render(*values).items()}
    assert named == {(True, None), (False, "streaming"), (False, "kube-system")}


def test_no_two_releases_share_the_name_of_an_object_outside_a_namespace(
    helm: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    def names(release: str, namespace: str) -> set[tuple[str, str]]:
        done = helm("template", release, str(CHART), "--namespace", namespace)
        assert done.returncode == 0, done.stderr
        found = [each for each in yaml.safe_load_all(done.stdout) if each and each["kind"].startswith("ClusterRole")]
        return {(each["kind"], each["metadata"]["name"]) for each in found}

    first, second = names("backlog-adapter", "team-x"), names("x", "team")
    assert first
    assert second
    assert not first & second


def test_without_a_group_the_chart_has_no_role_for_readers(render: Render) -> None:
    names = {name for _, name in render("apiService.external.create=false")}
    assert not names & {f"streaming:{NAME}-{suffix}" for suffix in ("metrics-reader", "hpa-controller")}


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_a_user_who_can_view_a_namespace_can_read_its_metrics(render: Render, role: str) -> None:
    labels = render()["ClusterRole", f"streaming:{NAME}-metrics-reader"]["metadata"]["labels"]
    assert labels[f"rbac.authorization.k8s.io/aggregate-to-{role}"] == "true"


def test_the_default_has_no_network_policy(render: Render) -> None:
    assert not [name for kind, name in render() if kind == "NetworkPolicy"]


def test_a_network_policy_admits_the_api_server_to_serve_and_serve_to_the_pipeline(render: Render) -> None:
    peer = "networkPolicy.serveFrom[0].ipBlock.cidr=10.0.0.0/28"
    objects = render("networkPolicy.enabled=true", peer)
    policies = {name: objects["NetworkPolicy", name]["spec"] for name in (NAME, f"{NAME}-pipeline")}
    for name, policy in policies.items():
        labels = objects["Deployment", name]["spec"]["template"]["metadata"]["labels"]
        assert policy["podSelector"]["matchLabels"].items() <= labels.items()
        assert policy["policyTypes"] == ["Ingress"]
        assert policy["ingress"][0]["ports"] == [{"port": container(objects, name)["ports"][0]["name"]}]
    assert policies[NAME]["ingress"][0]["from"] == [{"ipBlock": {"cidr": "10.0.0.0/28"}}]
    assert policies[f"{NAME}-pipeline"]["ingress"][0]["from"] == [{"podSelector": policies[NAME]["podSelector"]}]


def test_a_network_policy_without_peers_admits_every_client_to_the_servers(render: Render) -> None:
    (rule,) = render("networkPolicy.enabled=true")["NetworkPolicy", NAME]["spec"]["ingress"]
    assert "from" not in rule
