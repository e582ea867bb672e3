"""Our API in the cluster: availability, discovery and OpenAPI, as kube-apiserver and kubectl show them."""

import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from parts.adapter import Adapter
from parts.controlplane import ControlPlane
from parts.process import until
from parts.service import CUSTOM, EXTERNAL, VERSIONS

from adapter.core.metrics import METRICS, OBJECT_KINDS

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OPENAPI_S = 300  # kube-apiserver retries a failed document after a minute
KINDS = {EXTERNAL: "ExternalMetricValueList", **dict.fromkeys(CUSTOM, "MetricValueList")}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_api_is_available(version: str, adapter: Adapter) -> None:
    assert adapter.is_available(version)


def test_kubectl_lists_every_external_metric(adapter: Adapter, controlplane: ControlPlane) -> None:
    listed = controlplane.kubectl("api-resources", "--api-group=external.metrics.k8s.io", "--no-headers")
    kinds = {tuple(line.split()) for line in listed.splitlines()}
    assert kinds >= {(name, EXTERNAL, "true", KINDS[EXTERNAL]) for name in METRICS}


@pytest.mark.parametrize("version", CUSTOM)
def test_discovery_lists_the_metrics_of_each_kind_of_object(
    version: str, adapter: Adapter, controlplane: ControlPlane
) -> None:
    listed = json.loads(controlplane.kubectl("get", "--raw", f"/apis/{version}"))["resources"]
    expected = {f"{kind}/{name}" for kind in OBJECT_KINDS for name in METRICS}
    assert expected <= {each["name"] for each in listed}


def test_aggregated_discovery_has_our_groups_as_current(adapter: Adapter, controlplane: ControlPlane) -> None:
    def current() -> dict[str, Any]:
        groups = controlplane.api.get("/apis", accept=AGGREGATED)["items"]
        found = {f"{each['metadata']['name']}/{one['version']}": one for each in groups for one in each["versions"]}
        return found if all(found[version]["freshness"] == "Current" for version in VERSIONS) else {}

    found = until(current, 120, "the groups are current")  # kube-apiserver reads them once a minute
    listed = {version: {each["resource"] for each in found[version]["resources"]} for version in VERSIONS}
    assert listed[EXTERNAL] >= set(METRICS)
    assert all(listed[version] >= {*OBJECT_KINDS} for version in CUSTOM)


def test_the_openapi_documents_of_the_cluster_contain_ours(adapter: Adapter, controlplane: ControlPlane) -> None:
    """serve publishes version 2 alone; kube-apiserver converts it to version 3."""
    paths = {f"apis/{version}" for version in VERSIONS}
    until(lambda: paths <= set(_v3(controlplane)), OPENAPI_S, "version 3 has them")
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


def test_kubectl_explain_describes_a_metric(adapter: Adapter, controlplane: ControlPlane) -> None:
    command = ("explain", "required_workers.items", "--api-version", EXTERNAL, "--output", "plaintext-openapiv2")
    shown = until(lambda: controlplane.kubectl(*command), OPENAPI_S, "kubectl explains it")
    for field in ("metricName", "metricLabels", "timestamp", "value", "window"):
        assert re.search(rf"^ +{field}\t<", shown, re.MULTILINE), shown


def test_check_api_reads_a_number_through_both_groups(clicks: str, controlplane: ControlPlane) -> None:
    """The command of `helm test`."""
    options = ["--api=external", "--api=custom", f"--workload=default/{clicks}"]
    command = [sys.executable, "-m", "adapter", "check-api", *options, f"--kubeconfig={controlplane.admin.kubeconfig}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"required_workers of default/{clicks} ") == 2


def test_kube_apiserver_logs_no_fault_of_ours_once_we_are_available(
    adapter: Adapter, controlplane: ControlPlane
) -> None:
    since = [datetime.fromisoformat(adapter.availability(version)["lastTransitionTime"]) for version in VERSIONS]
    begun_s = max(since).timestamp()
    until(lambda: time.time() - begun_s > 75, 80, "every document was read once more", every_s=1)
    entries = re.split(r"^(?=[IWEF]\d{4} )", controlplane.log("kube-apiserver"), flags=re.MULTILINE)
    faults = [each for each in entries if each[:1] in "WEF" and ("metrics.k8s.io" in each or "backlog-" in each)]
    assert [each for each in faults if _CONFLICT not in each and _logged_s(each) > begun_s] == []


# Two controllers of kube-apiserver wrote the status of an APIService at once; one of them retries.
_CONFLICT = "the object has been modified; please apply your changes to the latest version"


def _logged_s(entry: str) -> float:
    """Unix time of a klog entry such as E1122 05:45:58.323473, in local time of this year."""
    stamp = f"{datetime.now(UTC).year}{entry[1:14]}"
    return time.mktime(time.strptime(stamp, "%Y%m%d %H:%M:%S"))
