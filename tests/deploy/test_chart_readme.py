"""charts/backlog-adapter: the README and the notes of the chart agree with its values."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import yaml
from tool_cache import program

CHART = Path(__file__).parents[2] / "charts" / "backlog-adapter"
Helm = Callable[..., subprocess.CompletedProcess[str]]


def values(node: object, path: str = "") -> Iterator[str]:
    """The path of every value that has no values below it."""
    if isinstance(node, dict) and node:
        for name, each in node.items():
            yield from values(each, f"{path}.{name}" if path else name)
    else:
        yield path


def test_the_readme_is_that_of_helm_docs(tmp_path: Path) -> None:
    helm_docs = program("helm-docs", "make tools-all")
    shutil.copytree(CHART, tmp_path / "chart")
    subprocess.run([helm_docs, "--chart-search-root", tmp_path, "--sort-values-order", "file"], check=True)
    assert (CHART / "README.md").read_text() == (tmp_path / "chart" / "README.md").read_text(), "run make chart"


def test_every_value_is_described_in_the_readme() -> None:
    readme = (CHART / "README.md").read_text()
    described = set(re.findall(r"^\| ([\w.]+) \|[^|]*\|.*\| *\S.* \|$", readme, re.MULTILINE))
    given = values(yaml.safe_load((CHART / "values.yaml").read_text()))
    missing = [path for path in given if not any(f"{path}.".startswith(f"{each}.") for each in described)]
    assert missing == []


def test_the_readme_has_the_defaults_of_the_values() -> None:
    rows = re.findall(r"^\| ([\w.]+) \| \w+ \| `([^`]*)` \|", (CHART / "README.md").read_text(), re.MULTILINE)
    given = yaml.safe_load((CHART / "values.yaml").read_text())
    defaults = {path: json.loads(default) for path, default in rows}
    assert defaults == {path: reduce(getitem, path.split("."), given) for path in defaults}


def notes(helm: Helm, *options: str) -> str:
    """What helm prints after an installation."""
    done = helm("install", "orders", str(CHART), "--dry-run=client", "--namespace", "streaming", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("NOTES:")[2]


def test_the_notes_have_the_next_three_commands(helm: Helm) -> None:
    text = notes(helm, "--values", str(CHART / "ci" / "prometheus-sources-values.yaml"))
    commands = [line.strip() for line in text.splitlines() if line.startswith("     ")]
    assert commands == [
        "kubectl --namespace streaming rollout status deployment/orders-backlog-adapter-pipeline "
        "deployment/orders-backlog-adapter",
        "helm test orders --namespace streaming --logs",
        'kubectl get --raw "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/required_workers'
        '?labelSelector=workload%3Dorders"',
    ]


def test_the_notes_name_the_secrets_that_the_pods_wait_for(helm: Helm) -> None:
    text = notes(helm, "--values", str(CHART / "ci" / "prometheus-sources-values.yaml"))
    assert "wait until these Secrets exist in streaming: mimir, thanos, victoria.client." in text
    assert "wait until" not in notes(helm)


def test_the_notes_say_that_there_are_no_workloads(helm: Helm) -> None:
    assert "It has no workloads yet" in notes(helm)
    assert "It has no workloads yet" not in notes(helm, "--set", "config.fleets[0].name=a,config.fleets[0].source=b")


def test_the_notes_say_that_no_public_registry_has_the_images(helm: Helm) -> None:
    assert "images.registry is not set" in notes(helm)
    assert "images.registry is not set" not in notes(helm, "--set", "images.registry=registry.example.com/team")


@pytest.mark.parametrize("monitor", ["serviceMonitor", "podMonitor"])
def test_the_notes_warn_of_alerts_without_a_monitor(helm: Helm, monitor: str) -> None:
    assert "no monitor: unless something else scrapes" in notes(helm, "--set", "prometheusRule.enabled=true")
    assert "no monitor" not in notes(helm, "--set", f"prometheusRule.enabled=true,{monitor}.enabled=true")


def test_the_notes_warn_of_peers_without_a_network_policy(helm: Helm) -> None:
    peers = "networkPolicy.serveFrom[0].ipBlock.cidr=10.0.0.0/28"
    assert "nothing limits the traffic of the pods: set networkPolicy.enabled" in notes(helm, "--set", peers)
    assert "networkPolicy" not in notes(helm, "--set", f"networkPolicy.enabled=true,{peers}")
    assert "networkPolicy" not in notes(helm)


def test_the_notes_say_what_to_do_without_a_group(helm: Helm) -> None:
    text = notes(helm, "--set", "apiService.external.create=false")
    assert "answers no group of metrics.\nNo HPA can read this release. Set apiService.custom.create" in text
    assert "No HPA" not in notes(helm)


def test_the_notes_say_how_to_see_the_owner_of_the_other_group(helm: Helm) -> None:
    text = notes(helm, "--set", "apiService.external.create=false,apiService.custom.create=true")
    assert "kubectl get apiservice v1beta1.external.metrics.k8s.io" in text
    assert "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/deployments.apps/NAME/required_workers" in text
