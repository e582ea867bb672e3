"""What the cluster makes of our API: availability, discovery, OpenAPI, as its own programs see them."""

import json
import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from parts.adapter import CUSTOM, EXTERNAL, VERSIONS, Adapter
from parts.controlplane import ControlPlane
from parts.process import until

from adapter.core.metrics import METRICS
from adapter.serving.providers import KINDS as OBJECTS

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OPENAPI_S = 300  # the cluster comes back for a document it could not have a minute ago
KINDS = {EXTERNAL: "ExternalMetricValueList", **dict.fromkeys(CUSTOM, "MetricValueList")}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_cluster_calls_the_api_available(version: str, adapter: Adapter) -> None:
    assert adapter.is_available(version)


def test_kubectl_lists_every_external_metric(adapter: Adapter, controlplane: ControlPlane) -> None:
    listed = controlplane.kubectl("api-resources", "--api-group=external.metrics.k8s.io", "--no-headers")
    kinds = {tuple(line.split()) for line in listed.splitlines()}
    assert kinds >= {(name, EXTERNAL, "true", KINDS[EXTERNAL]) for name in METRICS}


@pytest.mark.parametrize("version", CUSTOM)
def test_kubectl_reads_which_objects_have_which_metrics(
    version: str, adapter: Adapter, controlplane: ControlPlane
) -> None:
    listed = json.loads(controlplane.kubectl("get", "--raw", f"/apis/{version}"))["resources"]
    expected = {f"{kind}/{name}" for kind in OBJECTS for name in METRICS}
    assert expected <= {each["name"] for each in listed}


def test_the_clusters_merged_discovery_holds_our_groups_and_calls_them_current(
    adapter: Adapter, controlplane: ControlPlane
) -> None:
    def current() -> dict[str, Any]:
        groups = controlplane.api.get("/apis", accept=AGGREGATED)["items"]
        found = {f"{each['metadata']['name']}/{one['version']}": one for each in groups for one in each["versions"]}
        return found if all(found[version]["freshness"] == "Current" for version in VERSIONS) else {}

    found = until(current, 120, "they are called current")  # it comes back for them once a minute
    listed = {version: {each["resource"] for each in found[version]["resources"]} for version in VERSIONS}
    assert listed[EXTERNAL] >= set(METRICS)
    assert all(listed[version] >= {*OBJECTS} for version in CUSTOM)


def test_the_clusters_openapi_documents_take_ours_in(adapter: Adapter, controlplane: ControlPlane) -> None:
    """serve publishes version 2 alone; kube-apiserver converts it to version 3."""
    until(
        lambda: {f"apis/{version}" for version in VERSIONS} <= set(_v3(controlplane)), OPENAPI_S, "version 3 has them"
    )
    for version in VERSIONS:
        schemas = until(lambda version=version: _schemas(controlplane, version), OPENAPI_S, version)
        assert any(name.startswith(KINDS[version]) for name in schemas)
    until(lambda: _in_version_2(controlplane) >= set(VERSIONS), OPENAPI_S, "version 2 has them")


def _v3(plane: ControlPlane) -> dict[str, dict[str, str]]:
    paths: dict[str, dict[str, str]] = json.loads(plane.kubectl("get", "--raw", "/openapi/v3"))["paths"]
    return paths


def _schemas(plane: ControlPlane, version: str) -> set[str]:
    document = json.loads(plane.kubectl("get", "--raw", _v3(plane)[f"apis/{version}"]["serverRelativeURL"]))
    return {name.rpartition(".")[2] for name in document["components"]["schemas"]}


def _in_version_2(plane: ControlPlane) -> set[str]:
    paths = json.loads(plane.kubectl("get", "--raw", "/openapi/v2"))["paths"]
    return {"/".join(path.split("/")[2:4]) for path in paths if path.startswith("/apis/")}


def test_kubectl_explains_what_a_metric_is(adapter: Adapter, controlplane: ControlPlane) -> None:
    asked = ["--api-version", EXTERNAL, "--output", "plaintext-openapiv2"]
    words = ("explain", "required_workers.items", *asked)
    told = until(lambda: controlplane.kubectl(*words), OPENAPI_S, "kubectl explains it")
    for field in ("metricName", "metricLabels", "timestamp", "value", "window"):
        assert re.search(rf"^ +{field}\t<", told, re.MULTILINE), told


def test_the_api_server_has_no_complaint_about_us_since_we_answer(adapter: Adapter, controlplane: ControlPlane) -> None:
    since = [datetime.fromisoformat(adapter.availability(version)["lastTransitionTime"]) for version in VERSIONS]
    begun_s = max(since).timestamp()
    until(lambda: time.time() - begun_s > 75, 80, "everything was asked for once more", every_s=1)
    said = re.split(r"^(?=[IWEF]\d{4} )", controlplane.log("kube-apiserver"), flags=re.MULTILINE)
    complaints = [each for each in said if each[:1] in "WEF" and ("metrics.k8s.io" in each or "backlog-" in each)]
    assert [each for each in complaints if _OWN_HASTE not in each and _logged_s(each) > begun_s] == []


# Two of its own controllers wrote the state of an API service at once: it tries again, and it is nobody's fault.
_OWN_HASTE = "the object has been modified; please apply your changes to the latest version"


def _logged_s(entry: str) -> float:
    """E1122 05:45:58.323473: month, day and time of this year, by this machine's clock."""
    stamp = f"{datetime.now(UTC).year}{entry[1:14]}"
    return time.mktime(time.strptime(stamp, "%Y%m%d %H:%M:%S"))
