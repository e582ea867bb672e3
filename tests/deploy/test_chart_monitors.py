"""charts/backlog-adapter: Prometheus finds both roles, and may read them."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.config import Config

NAME = "orders-backlog-adapter"
PIPELINE = f"{NAME}-pipeline"
Objects = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Objects]
Helm = Callable[..., subprocess.CompletedProcess[str]]
CHART = str(Path(__file__).parents[2] / "charts" / "backlog-adapter")
KINDS = {"ServiceMonitor": "serviceMonitor", "PodMonitor": "podMonitor"}


def endpoint(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    spec = objects[kind, name]["spec"]
    (found,) = spec["endpoints" if kind == "ServiceMonitor" else "podMetricsEndpoints"]
    return dict(found)


def test_the_default_needs_no_prometheus_operator_and_opens_no_plain_port(render: Render) -> None:
    objects = render()
    assert not {kind for kind, _ in objects} & KINDS.keys()
    (port,) = objects["Deployment", NAME]["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert port["name"] == "https"


@pytest.mark.parametrize("kind", KINDS)
def test_a_monitor_selects_one_role(render: Render, kind: str) -> None:
    objects = render(f"{KINDS[kind]}.enabled=true")
    assert {name for found, name in objects if found in KINDS} == {NAME, PIPELINE}
    for name in (NAME, PIPELINE):
        selector = objects[kind, name]["spec"]["selector"]["matchLabels"].items()
        pods = objects["Deployment", name]["spec"]["template"]["metadata"]
        targets = {found: objects["Service", found]["metadata"] for found in (NAME, PIPELINE)}
        if kind == "PodMonitor":
            assert selector <= pods["labels"].items()
        else:
            assert [found for found, each in targets.items() if selector <= each["labels"].items()] == [name]


@pytest.mark.parametrize("kind", KINDS)
def test_prometheus_gets_the_token_and_the_ca_of_the_pipeline(render: Render, kind: str) -> None:
    found = endpoint(render(f"{KINDS[kind]}.enabled=true"), kind, PIPELINE)
    assert (found["port"], found["scheme"]) == ("https", "https")
    assert found["authorization"]["credentials"] == {"name": f"{NAME}-token", "key": "token"}
    assert found["tlsConfig"] == {
        "ca": {"secret": {"name": f"{PIPELINE}-tls", "key": "ca.crt"}},
        "serverName": f"{PIPELINE}.streaming.svc",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_namespace_of_a_workload_stays_the_label_namespace(render: Render, kind: str) -> None:
    assert endpoint(render(f"{KINDS[kind]}.enabled=true"), kind, PIPELINE)["honorLabels"] is True


@pytest.mark.parametrize("kind", KINDS)
def test_the_metrics_of_a_server_have_a_plain_port(render: Render, kind: str) -> None:
    objects = render(f"{KINDS[kind]}.enabled=true")
    assert endpoint(objects, kind, NAME) == {"port": "metrics"}
    ports = objects["Deployment", NAME]["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert {"name": "metrics", "containerPort": 8080} in ports
    assert {"name": "metrics", "port": 8080, "targetPort": "metrics"} in objects["Service", NAME]["spec"]["ports"]
    config = Config.model_validate(yaml.safe_load(objects["ConfigMap", NAME]["data"]["config.yaml"]))
    assert config.serving.metrics_port == 8080


def test_a_metrics_port_of_the_configuration_is_used(render: Render) -> None:
    objects = render("config.serving.metrics_port=9100")
    ports = objects["Deployment", NAME]["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert {"name": "metrics", "containerPort": 9100} in ports


@pytest.mark.parametrize(
    ("values", "port"),
    [
        pytest.param("serve.port=8080,serviceMonitor.enabled=true", 8080, id="the default is the port of the API"),
        pytest.param("config.serving.metrics_port=6443", 6443, id="the port of the API"),
        pytest.param("config.serving.metrics_port=443", 443, id="the port of the Service"),
    ],
)
def test_the_metrics_cannot_have_the_port_of_the_api(helm: Helm, values: str, port: int) -> None:
    done = helm("template", "orders", CHART, "--set", values)
    assert done.returncode != 0
    assert f"the metrics of serve would have port {port}, which the API has" in done.stderr


def test_another_metrics_port_makes_room_for_the_api(render: Render) -> None:
    objects = render("serve.port=8080", "serviceMonitor.enabled=true", "config.serving.metrics_port=9100")
    config = Config.model_validate(yaml.safe_load(objects["ConfigMap", NAME]["data"]["config.yaml"]))
    assert (config.serving.port, config.serving.metrics_port) == (8080, 9100)


@pytest.mark.parametrize("kind", KINDS)
def test_a_monitor_has_the_labels_and_times_of_the_values(render: Render, kind: str) -> None:
    values = ["enabled=true", "interval=15s", "scrapeTimeout=10s", "additionalLabels.release=kube-prometheus-stack"]
    objects = render(*(f"{KINDS[kind]}.{value}" for value in values))
    for name in (NAME, PIPELINE):
        assert objects[kind, name]["metadata"]["labels"]["release"] == "kube-prometheus-stack"
        found = endpoint(objects, kind, name)
        assert (found["interval"], found["scrapeTimeout"]) == ("15s", "10s")


def test_a_network_policy_admits_prometheus_to_the_metrics_of_both_roles(render: Render) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
    value = "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring"
    objects = render("networkPolicy.enabled=true", "serviceMonitor.enabled=true", value)
    api, metrics = objects["NetworkPolicy", NAME]["spec"]["ingress"]
    assert "from" not in api
    assert metrics == {"ports": [{"port": "metrics"}], "from": [peer]}
    assert peer in objects["NetworkPolicy", PIPELINE]["spec"]["ingress"][0]["from"]


@pytest.mark.parametrize("monitor", ["serviceMonitor", "podMonitor"])
def test_a_monitor_needs_peers_of_the_network_policy(helm: Helm, monitor: str) -> None:
    done = helm("template", "a", str(CHART), "--set", f"networkPolicy.enabled=true,{monitor}.enabled=true")
    assert done.returncode != 0
    assert "networkPolicy.metricsFrom is empty" in done.stderr


@pytest.mark.parametrize(
    ("owned", "pattern"),
    [("external", "(external)"), ("custom", "(custom)"), ("external,custom", "(external|custom)"), ("", None)],
)
def test_the_alert_on_unavailable_apis_concerns_the_groups_of_the_chart(
    render: Render, owned: str, pattern: str | None
) -> None:
    groups = [f"apiService.{api}.create={str(api in owned).lower()}" for api in ("external", "custom")]
    rules = render("prometheusRule.enabled=true", *groups)["PrometheusRule", NAME]
    found = [
        rule["expr"]
        for group in rules["spec"]["groups"]
        for rule in group["rules"]
        if rule.get("alert") == "BacklogAdapterApiServiceUnavailable"
    ]
    assert len(found) == (pattern is not None)
    assert all(f"[.]{pattern}[.]metrics" in expr for expr in found)


def test_two_kinds_of_monitors_would_count_every_series_twice(helm: Helm) -> None:
    done = helm("template", "a", str(CHART), "--set", "serviceMonitor.enabled=true,podMonitor.enabled=true")
    assert "serviceMonitor and podMonitor are enabled" in done.stderr
    assert "enable one of them" in done.stderr
