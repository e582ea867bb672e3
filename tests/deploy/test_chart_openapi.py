"""charts/backlog-adapter: every rendered object is one that the API servers of several releases know."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from openapi import LOCATION, write_schemas
from tool_cache import program

from bench.tool_folder import tools

CHART = Path(__file__).parents[2] / "charts" / "backlog-adapter"
FILES = sorted((CHART / "ci").glob("*-values.yaml"))
RELEASES = ("1.31", "1.33", "1.36")
Helm = Callable[..., subprocess.CompletedProcess[str]]
Conform = Callable[[str, str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def conform(tmp_path_factory: pytest.TempPathFactory) -> Conform:
    """Validates manifests against the schemas of a release."""
    kubeconform = program("kubeconform")
    documents = next(iter(tools().glob("openapi-*")), None)
    if documents is None:
        pytest.skip(f"the OpenAPI documents are not in {tools()}: make tools")
    folders: dict[str, Path] = {}

    def run(release: str, manifests: str) -> subprocess.CompletedProcess[str]:
        if release not in folders:
            folders[release] = tmp_path_factory.mktemp("schemas")
            write_schemas(documents / release, documents / "crds", folders[release])
        location = f"{folders[release]}/{LOCATION}"
        command = [kubeconform, "-strict", "-output", "json", "-summary", "-schema-location", location]
        return subprocess.run(command, input=manifests, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.fixture(scope="module")
def manifests(helm: Helm) -> str:
    """Every object of every file of values."""
    rendered = [helm("template", "orders", str(CHART), "--values", str(file)) for file in FILES]
    assert [done.stderr for done in rendered if done.returncode != 0] == []
    return "\n---\n".join(done.stdout for done in rendered)


@pytest.mark.parametrize("release", RELEASES)
def test_the_api_server_of_a_release_knows_every_field(conform: Conform, manifests: str, release: str) -> None:
    done = conform(release, manifests)
    report = json.loads(done.stdout)
    assert report["resources"] == []  # it lists the others alone
    expected = len([item for item in yaml.safe_load_all(manifests) if item])
    assert report["summary"] == {"valid": expected, "invalid": 0, "errors": 0, "skipped": 0}


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        pytest.param("Deployment", "replicas:", "replica:", id="a misspelled field"),
        pytest.param("ServiceMonitor", "honorLabels: true", "honorLabels: maybe", id="a wrong type"),
    ],
)
def test_a_field_that_no_api_server_knows_is_found(
    conform: Conform, manifests: str, kind: str, before: str, after: str
) -> None:
    found = [text for text in manifests.split("\n---\n") if f"\nkind: {kind}\n" in text and before in text]
    for release in RELEASES:
        report = json.loads(conform(release, found[0].replace(before, after)).stdout)
        assert report["summary"]["invalid"] == 1


def test_the_oldest_release_is_not_older_than_the_chart_allows() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == f">={RELEASES[0]}.0-0"
