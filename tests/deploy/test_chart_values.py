"""charts/backlog-adapter: the values of a role reach its pods, and its objects alone."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter import config as configuration
from adapter.config.chart_hints import OVERWRITTEN

CHART = Path(__file__).parents[2] / "charts" / "backlog-adapter"
NAME = "orders-backlog-adapter"
PIPELINE = f"{NAME}-pipeline"
DEPLOYMENTS = {"serve": NAME, "pipeline": PIPELINE}
Objects = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Objects]
Helm = Callable[..., subprocess.CompletedProcess[str]]
CA = "LS0tLS1CRUdJTiA="
ROLES = pytest.mark.parametrize("role", ["serve", "pipeline"])


def pod(objects: Objects, role: str) -> dict[str, Any]:
    spec: dict[str, Any] = objects["Deployment", DEPLOYMENTS[role]]["spec"]["template"]["spec"]
    return spec


def container(objects: Objects, role: str) -> dict[str, Any]:
    found: dict[str, Any] = pod(objects, role)["containers"][0]
    return found


@ROLES
def test_a_digest_replaces_the_tag_and_the_registry_precedes_the_name(render: Render, role: str) -> None:
    digest = f"sha256:{'0123456789abcdef' * 4}"
    objects = render("images.registry=registry.example.com/team", f"images.digests.{role}={digest}", "images.tag=1.0.0")
    (other,) = {"serve", "pipeline"} - {role}
    assert container(objects, role)["image"] == f"registry.example.com/team/backlog-adapter-{role}@{digest}"
    assert container(objects, other)["image"] == f"registry.example.com/team/backlog-adapter-{other}:1.0.0"


@ROLES
def test_environment_and_volumes_are_added_to_one_role(render: Render, role: str) -> None:
    values = [
        "extraEnv[0].name=TZ",
        "extraEnv[0].value=Etc/UTC",
        "extraEnvFrom[0].configMapRef.name=cloud",
        "extraVolumes[0].name=cas",
        "extraVolumes[0].configMap.name=company-cas",
        "extraVolumeMounts[0].name=cas",
        "extraVolumeMounts[0].mountPath=/etc/company",
    ]
    objects = render(*(f"{role}.{value}" for value in values))
    found = container(objects, role)
    assert found["env"] == [{"name": "TZ", "value": "Etc/UTC"}]
    assert found["envFrom"] == [{"configMapRef": {"name": "cloud"}}]
    assert {"name": "cas", "mountPath": "/etc/company"} in found["volumeMounts"]
    assert {"name": "cas", "configMap": {"name": "company-cas"}} in pod(objects, role)["volumes"]
    (other,) = {"serve", "pipeline"} - {role}
    assert not {"env", "envFrom"} & container(objects, other).keys()


@ROLES
@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_the_times_of_a_probe_are_values_and_its_path_is_not(render: Render, role: str, probe: str) -> None:
    before = container(render(), role)[probe]
    after = container(render(f"{role}.{probe}.failureThreshold=9"), role)[probe]
    assert after == before | {"failureThreshold": 9}


def test_the_pipeline_may_start_for_two_minutes(render: Render) -> None:
    probe = container(render(), "pipeline")["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 120


def test_every_secret_of_a_source_is_mounted_in_the_pipeline_alone(render: Render) -> None:
    objects = render("pipeline.secretMounts.kafka=/run/secrets/kafka", "pipeline.secretMounts.prom=/run/secrets/prom")
    mounts = {mount["name"]: mount for mount in container(objects, "pipeline")["volumeMounts"]}
    volumes = {volume["name"]: volume.get("secret", {}) for volume in pod(objects, "pipeline")["volumes"]}
    mounted = {
        secret["secretName"]: mounts[name]["mountPath"]
        for name, secret in volumes.items()
        if name.startswith("secret-") and mounts[name]["readOnly"]
    }
    assert mounted == {"kafka": "/run/secrets/kafka", "prom": "/run/secrets/prom"}
    assert not [volume for volume in pod(objects, "serve")["volumes"] if volume["name"].startswith("secret-")]


def test_check_knows_each_setting_that_the_chart_sets(render: Render) -> None:
    config = yaml.safe_load(render()["ConfigMap", NAME]["data"]["config.yaml"])
    parts = {"serving.issuer": config["serving"].pop("issuer"), "serving": config["serving"]}
    parts["pipeline"] = config["pipeline"]
    chosen = {f"{part}.{name}" for part, settings in parts.items() for name in settings}
    assert chosen == {name for names in OVERWRITTEN.values() for name in names.split()}


def test_both_processes_listen_where_the_kubelet_and_the_service_reach_them(render: Render) -> None:
    config = render("config.pipeline.host=127.0.0.1", "config.serving.host=127.0.0.1")["ConfigMap", NAME]["data"]
    chosen = yaml.safe_load(config["config.yaml"])
    assert (chosen["pipeline"]["host"], chosen["serving"]["host"]) == ("::", "::")


@ROLES
def test_only_the_names_of_the_own_volumes_of_a_role_are_refused(helm: Helm, render: Render, role: str) -> None:
    options = ("tls.mode=cert-manager", "token.existingSecret=token", "pipeline.secretMounts.kafka=/run/secrets/kafka")
    of_role = {
        each: {volume["name"] for objects in (render(), render(*options)) for volume in pod(objects, each)["volumes"]}
        for each in ("serve", "pipeline")
    }
    names = sorted(of_role["serve"] | of_role["pipeline"])
    volumes = json.dumps([{"name": name, "emptyDir": {}} for name in names])
    done = helm("template", "orders", str(CHART), "--set-json", f"{role}.extraVolumes={volumes}")
    refused = re.findall(rf"at '/{role}/extraVolumes/(\d+)/name'", done.stderr)
    assert {names[int(number)] for number in refused} == of_role[role]


def test_a_claim_that_exists_holds_the_checkpoint(render: Render) -> None:
    objects = render("pipeline.persistence.enabled=true", "pipeline.persistence.existingClaim=state")
    claim = {"name": "checkpoint", "persistentVolumeClaim": {"claimName": "state"}}
    assert claim in pod(objects, "pipeline")["volumes"]
    assert not [name for kind, name in objects if kind == "PersistentVolumeClaim"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("existingClaim=state", "persistence.enabled is false: set it to true"),
        ("enabled=true,existingClaim=orders-backlog-adapter-checkpoint", "the name of the chart's claim"),
    ],
)
def test_a_claim_that_would_have_no_effect_or_be_deleted_is_refused(helm: Helm, values: str, message: str) -> None:
    options = ",".join(f"pipeline.persistence.{value}" for value in values.split(","))
    done = helm("template", "orders", str(CHART), "--set", options)
    assert done.returncode != 0
    assert message in done.stderr


def test_a_claim_has_the_access_mode_class_and_annotations_of_the_values(render: Render) -> None:
    values = ["enabled=true", "accessModes={ReadWriteOncePod}", "storageClass=fast", r"annotations.helm\.sh/a=keep"]
    objects = render(*(f"pipeline.persistence.{value}" for value in values))
    claim = objects["PersistentVolumeClaim", f"{NAME}-checkpoint"]
    assert (claim["spec"]["accessModes"], claim["spec"]["storageClassName"]) == (["ReadWriteOncePod"], "fast")
    assert claim["metadata"]["annotations"] == {"helm.sh/a": "keep"}


def test_servers_on_the_nodes_network_resolve_services_and_need_no_second_port(render: Render) -> None:
    objects = render("serve.hostNetwork=true", "serve.port=16443")
    spec = pod(objects, "serve")
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert container(objects, "serve")["ports"] == [{"name": "https", "containerPort": 16443}]
    assert "port: 16443" in objects["ConfigMap", NAME]["data"]["config.yaml"]
    assert objects["Deployment", NAME]["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    assert "hostNetwork" not in pod(objects, "pipeline")


def test_servers_spread_over_nodes_by_the_chart_or_as_the_values_say(render: Render) -> None:
    (spread,) = pod(render(), "serve")["topologySpreadConstraints"]
    labels = render()["Deployment", NAME]["spec"]["template"]["metadata"]["labels"]
    assert spread["labelSelector"]["matchLabels"].items() <= labels.items()
    assert spread["matchLabelKeys"] == ["pod-template-hash"]  # else a rollout may leave both on one node
    zone = ["maxSkew=1", "topologyKey=topology.kubernetes.io/zone", "whenUnsatisfiable=DoNotSchedule"]
    (other,) = pod(render(*(f"serve.topologySpreadConstraints[0].{each}" for each in zone)), "serve")[
        "topologySpreadConstraints"
    ]
    assert other["topologyKey"] == "topology.kubernetes.io/zone"
    assert other["labelSelector"] == spread["labelSelector"]


def test_a_selector_of_a_spread_constraint_stays_as_it_is(render: Render) -> None:
    zone = ["maxSkew=1", "topologyKey=zone", "whenUnsatisfiable=DoNotSchedule", "labelSelector.matchLabels.tier=front"]
    objects = render(*(f"serve.topologySpreadConstraints[0].{each}" for each in zone))
    (spread,) = pod(objects, "serve")["topologySpreadConstraints"]
    assert spread["labelSelector"] == {"matchLabels": {"tier": "front"}}


def test_a_drain_evicts_one_server_at_a_time_and_may_evict_the_pipeline(render: Render) -> None:
    objects = render()
    assert objects["PodDisruptionBudget", NAME]["spec"]["maxUnavailable"] == 1
    assert ("PodDisruptionBudget", PIPELINE) not in objects


def test_a_disruption_budget_of_the_pipeline_forbids_its_eviction(render: Render) -> None:
    objects = render("pipeline.podDisruptionBudget.enabled=true", "serve.podDisruptionBudget.enabled=false")
    budget = objects["PodDisruptionBudget", PIPELINE]["spec"]
    labels = objects["Deployment", PIPELINE]["spec"]["template"]["metadata"]["labels"]
    assert budget["maxUnavailable"] == 0
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert ("PodDisruptionBudget", NAME) not in objects


def test_common_labels_and_annotations_are_on_every_object_and_pod_and_in_no_selector(render: Render) -> None:
    values = ["commonLabels.team=data", "commonAnnotations.owner=data", "pipeline.persistence.enabled=true"]
    objects = render(*values, "networkPolicy.enabled=true", "apiService.custom.create=true")
    metadata = {key: item["metadata"] for key, item in objects.items()}
    assert [key for key, each in metadata.items() if each["labels"].get("team") != "data"] == []
    for name in DEPLOYMENTS.values():
        spec = objects["Deployment", name]["spec"]
        assert spec["template"]["metadata"]["labels"]["team"] == "data"
        assert spec["template"]["metadata"]["annotations"]["owner"] == "data"
        assert "team" not in spec["selector"]["matchLabels"]
    # The objects of the certificates are not of this list: they carry the labels alone.
    without = {kind for (kind, _), each in metadata.items() if each.get("annotations", {}).get("owner") != "data"}
    assert without <= {"Secret", "APIService"}


def test_further_objects_may_use_the_names_of_the_release(render: Render) -> None:
    prefix = "extraObjects[0]"
    values = ["apiVersion=v1", "kind=ConfigMap", "metadata.name=note-{{ .Release.Name }}"]
    assert ("ConfigMap", "note-orders") in render(*(f"{prefix}.{value}" for value in values))


def test_the_name_of_the_objects_can_be_replaced(render: Render) -> None:
    objects = render("fullnameOverride=lag")
    assert {"lag", "lag-pipeline"} == {name for kind, name in objects if kind == "Deployment"}
    assert "https://lag-pipeline.streaming.svc:8443" in objects["ConfigMap", "lag"]["data"]["config.yaml"]


@pytest.mark.parametrize(("release", "version"), [("my.release", "1.36.0"), ("2nd", "1.35.0")])
def test_a_release_whose_services_kubernetes_refuses_needs_another_name(release: str, version: str, helm: Helm) -> None:
    done = helm("template", release, str(CHART), "--kube-version", version)
    assert f"a Service cannot be named {release}-backlog-adapter: set fullnameOverride" in done.stderr
    assert helm("template", release, str(CHART), "--set", "fullnameOverride=lag").returncode == 0


def test_openshift_chooses_the_user_where_the_values_name_none(render: Render) -> None:
    empty = ["runAsUser", "runAsGroup", "fsGroup"]
    objects = render(*(f"podSecurityContext.{field}=null" for field in empty))
    for role in DEPLOYMENTS:
        assert pod(objects, role)["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }


def test_egress_is_limited_to_the_rules_dns_and_the_pipeline(render: Render) -> None:
    to = ["networkPolicy.serveTo[0].to[0].ipBlock.cidr=10.0.0.1/32", "networkPolicy.serveTo[0].ports[0].port=443"]
    objects = render("networkPolicy.enabled=true", *to)
    policy = objects["NetworkPolicy", NAME]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    dns, pipeline, cluster = policy["egress"]
    openshift = {(5353, "UDP"), (5353, "TCP")}
    assert {(port["port"], port["protocol"]) for port in dns["ports"]} == {(53, "UDP"), (53, "TCP")} | openshift
    assert pipeline["to"] == [{"podSelector": objects["NetworkPolicy", PIPELINE]["spec"]["podSelector"]}]
    assert cluster == {"to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}], "ports": [{"port": 443}]}
    assert objects["NetworkPolicy", PIPELINE]["spec"]["policyTypes"] == ["Ingress"]


def test_a_network_policy_needs_the_addresses_of_servers_on_the_nodes_network(helm: Helm, render: Render) -> None:
    values = ("networkPolicy.enabled=true", "serve.hostNetwork=true")
    done = helm("template", "orders", str(CHART), "--set", ",".join(values))
    assert "name the nodes in networkPolicy.pipelineFrom" in done.stderr
    nodes = "networkPolicy.pipelineFrom[0].ipBlock.cidr=10.0.0.0/16"
    assert {"ipBlock": {"cidr": "10.0.0.0/16"}} in render(*values, nodes)["NetworkPolicy", PIPELINE]["spec"]["ingress"][
        0
    ]["from"]


def pod_templates(objects: Objects) -> dict[str, Any]:
    return {role: objects["Deployment", name]["spec"]["template"] for role, name in DEPLOYMENTS.items()}


@pytest.mark.parametrize(
    ("value", "replaced"),
    [
        pytest.param("config.rules.backlog_time_target_s=120", {"pipeline"}, id="a rule"),
        pytest.param("config.timing.tick_s=5", {"pipeline"}, id="the tick"),
        pytest.param("config.serving.access_log=all", {"serve"}, id="a setting of serve"),
        pytest.param("commonAnnotations.owner=data", {"pipeline", "serve"}, id="another value of both"),
    ],
)
def test_a_change_of_the_configuration_replaces_the_pods_that_read_it(
    render: Render, value: str, replaced: set[str]
) -> None:
    before, after = pod_templates(render()), pod_templates(render(value))
    assert {role for role in DEPLOYMENTS if before[role] != after[role]} == replaced


def test_names_that_look_like_numbers_stay_text(helm: Helm) -> None:
    switches = [f"{name}.enabled=true" for name in ("networkPolicy", "prometheusRule", "dashboards", "serviceMonitor")]
    switches.append("networkPolicy.metricsFrom[0].ipBlock.cidr=10.0.0.0/28")
    done = helm("template", "123", str(CHART), "--namespace", "007", "--set", ",".join(switches))
    names = re.findall(r"(?:namespace|app.kubernetes.io/instance): ([^\s},]+)", done.stdout)
    assert {yaml.safe_load(name) for name in names} == {"007", "123", "kube-system"}


TEXTS = {"name", "namespace", "secretName", "claimName", "storageClassName", "serviceAccountName", "image", "mountPath"}
TEXTS |= {"apiGroups", "resourceNames"}


def fields(node: object) -> Iterator[tuple[str, object]]:
    """Name and value of every field, and of each entry of a list of scalars."""
    for name, value in node.items() if isinstance(node, dict) else ():
        yield from ((name, each) for each in (value if isinstance(value, list) else [value]))
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from fields(each)


@pytest.mark.parametrize(
    "values",
    [
        {"images": {"serve": "12", "tag": "2", "pullSecrets": ["1000"]}, "token": {"existingSecret": "123456"}},
        {
            "tls": {
                "mode": "secret",
                "serve": {"existingSecret": "1", "caBundle": CA},
                "pipeline": {"existingSecret": "2"},
            }
        },
        {"tls": {"mode": "cert-manager"}, "fullnameOverride": "123", "serviceMonitor": {"enabled": True}},
        {"fullnameOverride": "123", "apiService": {"custom": {"create": True}}},
        {"serve": {"serviceAccount": {"name": "1"}}, "pipeline": {"serviceAccount": {"name": "0755"}}},
        {"pipeline": {"persistence": {"enabled": True, "storageClass": "1"}}},
        {"pipeline": {"persistence": {"enabled": True, "existingClaim": "7"}, "secretMounts": {"2024": "/run/1"}}},
        {"rbac": {"extraScaleTargets": ["1/jobs"]}},
    ],
    ids=lambda values: "-".join(values),
)
def test_names_in_values_that_look_like_numbers_stay_text(helm: Helm, values: dict[str, Any]) -> None:
    options = [word for name, value in values.items() for word in ("--set-json", f"{name}={json.dumps(value)}")]
    done = helm("template", "orders", str(CHART), *options)
    assert done.returncode == 0, done.stderr
    found = [field for item in yaml.safe_load_all(done.stdout) for field in fields(item) if field[0] in TEXTS]
    assert len(found) > 100
    assert [field for field in found if not isinstance(field[1], str)] == []


def test_the_folder_of_a_secret_may_have_any_characters(helm: Helm) -> None:
    done = helm("template", "orders", str(CHART), "--set-json", 'pipeline.secretMounts={"kafka": "/run/a, b #{c}"}')
    objects = {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(done.stdout)}
    mounts = container(objects, "pipeline")["volumeMounts"]
    assert {"name": "secret-0", "mountPath": "/run/a, b #{c}", "readOnly": True} in mounts


def test_labels_of_one_kind_of_object_replace_the_common_ones(render: Render) -> None:
    values = ["commonLabels.release=common", r"commonLabels.app\.kubernetes\.io/version=v2"]
    values += ["serviceMonitor.enabled=true", "serviceMonitor.additionalLabels.release=prometheus"]
    values += ["dashboards.enabled=true", "dashboards.labels.release=grafana"]
    objects = render(*values)
    labels = {kind: item["metadata"]["labels"] for (kind, _), item in objects.items()}
    assert {each["app.kubernetes.io/version"] for each in labels.values()} == {"v2"}
    assert labels["ServiceMonitor"]["release"] == "prometheus"
    assert objects["ConfigMap", f"{NAME}-dashboard-fleet"]["metadata"]["labels"]["release"] == "grafana"
    assert labels["Deployment"]["release"] == "common"


@pytest.mark.parametrize(
    ("heap", "limit", "is_refused"),
    [
        ("4g", "2560Mi", True),
        ("1500m", "1.4Gi", True),
        ("4g", "4G", True),
        ("4g", "4Gi", True),
        ("1t", "2560Mi", True),
        ("9000000k", "2560Mi", True),
        ("1g", "512Mi", True),
        ("1g", "1073741824", True),
        ("4g", "2500000Ki", True),
        ("4g", "6Gi", False),
        ("1500m", "1.6Gi", True),
        ("1500m", "2523Mi", True),
        ("1500m", "2524Mi", False),
        ("1500m", "2560Mi", False),
        ("2500m", "2560Mi", True),
        ("1g", "2Gi", False),
        ("4g", "0.01Ti", False),
        ("1g", "536870912", True),
        ("1g", "5e8", True),
    ],
)
def test_a_limit_without_room_besides_the_heap_is_refused(helm: Helm, heap: str, limit: str, is_refused: bool) -> None:
    values = f"config.pipeline.memory={heap},pipeline.resources.limits.memory={limit}"
    done = helm("template", "orders", str(CHART), "--set", values)
    assert (done.returncode != 0) == is_refused, done.stderr
    fault = (
        f"pipeline.resources.limits.memory: expected at least config.pipeline.memory ({heap}) plus 1Gi for Python and "
        f"the JVM itself, got {limit}; raise the limit, or lower config.pipeline.memory"
    )
    assert (fault in done.stderr) == is_refused


def test_a_small_number_reaches_the_program(helm: Helm, tmp_path: Path) -> None:
    done = helm("template", "orders", str(CHART), "--set-json", "config.rules.pause_budget_ratio=0.00005")
    (content,) = [item["data"] for item in yaml.safe_load_all(done.stdout) if item and item["kind"] == "ConfigMap"]
    file = tmp_path / "config.yaml"
    file.write_text(content["config.yaml"])
    assert configuration.load(file).rules == {"pause_budget_ratio": 0.00005}


@pytest.mark.parametrize("limit", ["3221225472", '"3e9"', '"+3Gi"'])
def test_the_limit_of_the_memory_is_any_quantity(helm: Helm, limit: str) -> None:
    done = helm("template", "orders", str(CHART), "--set-json", f"pipeline.resources.limits.memory={limit}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("folder", "used"),
    [
        ("/run/secrets/a", "/run/secrets/a"),
        ("/run/secrets/a/tls", "/run/secrets/a"),
        ("/run/secrets", "/run/secrets/backlog-adapter"),
        ("/etc/backlog-adapter/kafka", "/etc/backlog-adapter"),
        ("/usr/local/", "/usr"),
        ("/etc", "/etc/backlog-adapter"),
        ("/var/run/secrets/kafka", "/var/run"),
        ("/opt/backlog-adapter", "/opt/backlog-adapter"),
    ],
)
def test_a_secret_over_another_folder_of_the_pod_is_refused(helm: Helm, folder: str, used: str) -> None:
    mounts = f'pipeline.secretMounts={{"a": "/run/secrets/a", "b": "{folder}"}}'
    done = helm("template", "orders", str(CHART), "--set-json", mounts)
    assert done.returncode != 0
    assert (
        f"pipeline.secretMounts.b: {folder.rstrip('/')} contains or lies in {used}, which the pod uses" in done.stderr
    )


def test_secrets_may_be_in_sibling_folders(render: Render) -> None:
    objects = render("pipeline.secretMounts.a=/etc/kafka", "pipeline.secretMounts.b=/etc/kafka-client")
    mounts = {mount["mountPath"] for mount in container(objects, "pipeline")["volumeMounts"]}
    assert {"/etc/kafka", "/etc/kafka-client"} <= mounts
