"""charts/backlog-adapter: dashboards and rules reach Grafana and Prometheus as they are in the repository."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from dashboards.build.output import FOLDER, documents
from dashboards.queries import rules

NAME = "orders-backlog-adapter"
RULE = ("PrometheusRule", NAME)
Objects = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Objects]


def boards(objects: Objects) -> dict[str, dict[str, Any]]:
    """File name -> the ConfigMap of a dashboard."""
    found = [item for (kind, name), item in objects.items() if kind == "ConfigMap" and "-dashboard-" in name]
    return {file.removeprefix("backlog-adapter-"): item for item in found for file in item["data"]}


def rendered_rules(objects: Objects) -> list[dict[str, Any]]:
    return [rule for group in objects[RULE]["spec"]["groups"] for rule in group["rules"]]


def alerts(objects: Objects) -> set[str]:
    return {rule["alert"] for rule in rendered_rules(objects) if "alert" in rule}


def test_nothing_for_monitoring_is_created_by_default(render: Render) -> None:
    objects = render()
    assert RULE not in objects
    assert not boards(objects)


def test_each_dashboard_is_a_config_map_that_the_sidecar_finds(render: Render) -> None:
    found = boards(render("dashboards.enabled=true"))
    assert found.keys() == documents().keys()
    for file, item in found.items():
        assert item["data"][f"backlog-adapter-{file}"] == (FOLDER / file).read_text("utf-8")
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert item["metadata"]["annotations"] == {"grafana_folder": "backlog-adapter"}
        assert item["metadata"]["namespace"] == "streaming"


def test_the_config_maps_follow_the_values(render: Render) -> None:
    values = ("dashboards.enabled=true", "dashboards.namespace=monitoring", "dashboards.labels.team=streams")
    for item in boards(render(*values)).values():
        assert item["metadata"]["namespace"] == "monitoring"
        assert item["metadata"]["labels"]["team"] == "streams"


def test_every_rule_is_in_the_prometheus_rule(render: Render) -> None:
    labels, groups = "prometheusRule.labels.release=prometheus", "apiService.custom.create=true"
    objects = render("prometheusRule.enabled=true", labels, groups)
    assert rendered_rules(objects) == [rule.content for rule in sorted(rules(), key=lambda rule: f"{rule.file}.yaml")]
    assert objects[RULE]["metadata"]["labels"]["release"] == "prometheus"
    intervals = {group["name"]: group.get("interval") for group in objects[RULE]["spec"]["groups"]}
    assert intervals["backlog-adapter.workloads"] == "1m"


def test_alerts_can_be_left_out(render: Render) -> None:
    every = alerts(render("prometheusRule.enabled=true"))
    without = render("prometheusRule.enabled=true", "prometheusRule.disabled={BacklogAdapterStuck}")
    assert every - alerts(without) == {"BacklogAdapterStuck"}
    own = render("prometheusRule.enabled=true", "prometheusRule.clusterAlerts=false")
    assert every - alerts(own) == {rule.name for rule in rules() if rule.file == "alerts-cluster"}


@pytest.mark.parametrize("end", ["", "/"])
def test_runbooks_are_linked_where_they_are_published(render: Render, end: str) -> None:
    url = "https://wiki.example.com/runbooks"
    objects = render("prometheusRule.enabled=true", f"prometheusRule.runbookUrl={url}{end}")
    files = {rule.name: rule.content["annotations"]["runbook"] for rule in rules() if rule.is_alert}
    links = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rendered_rules(objects) if "alert" in rule}
    assert links == {name: file.replace("docs/runbooks", url) for name, file in files.items()}


def test_without_an_address_no_alert_has_a_link_that_does_not_open(render: Render) -> None:
    annotations = [
        rule["annotations"] for rule in rendered_rules(render("prometheusRule.enabled=true")) if "alert" in rule
    ]
    assert annotations
    assert all("runbook_url" not in each and each["runbook"].startswith("docs/runbooks/") for each in annotations)


@pytest.mark.parametrize("name", documents())
def test_a_dashboard_fits_into_a_config_map(name: str) -> None:
    """A ConfigMap has at most 1 MiB."""
    assert len(yaml.safe_dump(documents()[name])) < 2**20
