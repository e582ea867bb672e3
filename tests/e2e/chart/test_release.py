"""The life of a release: install, upgrade, rollback and uninstall; and what helm says where it cannot install."""

import base64
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from parts.controlplane import ControlPlane
from parts.process import CommandError, NotReadyError, until
from parts.release import NAME, NAMESPACE, Release
from parts.service import EXTERNAL, api_service, api_service_of

OBJECT = f"{NAME}-backlog-adapter"
# What the cluster itself writes at any time.
_OF_THE_CLUSTER = ("events", "leases", "endpoints", "endpointslices")
PERSISTENT = {"pipeline": {"persistence": {"enabled": True}}}


def objects(plane: ControlPlane) -> set[tuple[str, str, str]]:
    """Resource, namespace and name of every object of the cluster."""
    found = set()
    for path, resource in _resources(plane):
        for item in plane.api.get(f"{path}/{resource}")["items"]:
            meta = item["metadata"]
            found.add((f"{path}/{resource}", meta.get("namespace", ""), meta["name"]))
    return found


def _resources(plane: ControlPlane) -> Iterator[tuple[str, str]]:
    """The path of each API version that the cluster prefers, and each of its resources that can be listed."""
    groups = plane.api.get("/apis")["groups"]
    paths = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    for path in paths:
        if "metrics.k8s.io" not in path:  # numbers, and no objects
            for each in plane.api.get(path)["resources"]:
                if "list" in each["verbs"] and each["name"] not in _OF_THE_CLUSTER:
                    yield path, each["name"]


def get(plane: ControlPlane, kind: str, name: str) -> dict[str, Any]:
    path = {
        "secret": f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}",
        "claim": f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims/{name}",
        "config": f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}",
        "deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}",
    }[kind]
    found: dict[str, Any] = plane.api.get(path)
    return found


def test_an_uninstalled_release_leaves_nothing(release: Release, crds: None) -> None:
    plane = release.plane
    before = until(lambda: objects(plane), 60, "every resource can be listed")
    groups = {"apiService": {"custom": {"create": True}}, "serviceMonitor": {"enabled": True}}
    policy = {"networkPolicy": {"enabled": True, "metricsFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}]}}
    with release.installed(PERSISTENT | groups | policy):
        until(lambda: len(get(plane, "deployment", OBJECT).get("status", {}).get("conditions", [])), 60, "pods exist")
        during = objects(plane) - before
        assert {resource.rpartition("/")[2] for resource, *_ in during} >= {
            "apiservices",
            "clusterrolebindings",
            "persistentvolumeclaims",
            "pods",
            "secrets",
            "servicemonitors",
        }
    with suppress(NotReadyError):  # the cluster removes pods and claims after helm has ended
        until(lambda: objects(plane) <= before, 120, "the objects are gone", every_s=1.0)
    assert objects(plane) - before == set()


def test_an_upgrade_and_a_rollback_keep_the_checkpoint_the_certificates_and_the_token(release: Release) -> None:
    plane = release.plane
    secrets = (f"{OBJECT}-tls", f"{OBJECT}-pipeline-tls", f"{OBJECT}-token")
    with release.installed(PERSISTENT):
        for name in secrets:
            _write(plane, name, "probe", "made while the release runs")
        claim = get(plane, "claim", f"{OBJECT}-checkpoint")["metadata"]["uid"]
        data = {name: get(plane, "secret", name)["data"] for name in secrets}
        first = get(plane, "config", OBJECT)["data"]

        release.helm("upgrade", PERSISTENT | {"config": {"timing": {"tick_s": 30}}})
        assert get(plane, "config", OBJECT)["data"] != first
        assert get(plane, "claim", f"{OBJECT}-checkpoint")["metadata"]["uid"] == claim
        assert {name: get(plane, "secret", name)["data"] for name in secrets} == data

        release.helm("rollback")
        assert get(plane, "config", OBJECT)["data"] == first
        assert get(plane, "claim", f"{OBJECT}-checkpoint")["metadata"]["uid"] == claim
        assert {name: get(plane, "secret", name)["data"] for name in secrets} == data


def test_an_upgrade_after_the_documented_deletion_has_an_empty_checkpoint(release: Release) -> None:
    plane = release.plane
    checkpoint = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims/{OBJECT}-checkpoint"
    deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{OBJECT}-pipeline"
    with release.installed(PERSISTENT):
        before = {path: plane.api.get(path)["metadata"]["uid"] for path in (deployment, checkpoint)}
        for path in before:
            plane.api.request("DELETE", path)
            until(lambda path=path: plane.api.raw(path).status_code == 404, 60, f"{path} is deleted")

        release.helm("upgrade", PERSISTENT | {"config": {"timing": {"tick_s": 30}}})
        after = {path: plane.api.get(path)["metadata"]["uid"] for path in before}
        assert not set(after.values()) & set(before.values())


def _write(plane: ControlPlane, secret: str, key: str, text: str) -> None:
    """Writes into a Secret as a field manager besides helm, which owns nothing in the data."""
    meta = {"name": secret, "namespace": NAMESPACE}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
    value = {key: base64.b64encode(text.encode()).decode()}
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{secret}?fieldManager=test&force=true"
    plane.api.request("PATCH", path, body | {"data": value}, "application/apply-patch+yaml")


def test_a_changed_configuration_replaces_the_pods_that_read_it(release: Release) -> None:
    def templates() -> list[dict[str, Any]]:
        names = (OBJECT, f"{OBJECT}-pipeline")
        return [get(release.plane, "deployment", name)["spec"]["template"]["metadata"] for name in names]

    with release.installed():
        serve, pipeline = templates()
        release.helm("upgrade")
        assert templates() == [serve, pipeline]
        release.helm("upgrade", {"config": {"timing": {"tick_s": 30}}})
        assert templates()[0] == serve
        assert templates()[1] != pipeline


def test_a_given_ca_replaces_that_of_serve_when_conflicts_are_forced(release: Release) -> None:
    path = api_service(EXTERNAL)
    own, given = (base64.b64encode(f"-----BEGIN {name}".encode()).decode() for name in ("own", "given"))
    secrets = {
        "mode": "secret",
        "pipeline": {"existingSecret": "b"},
        "serve": {"existingSecret": "a", "caBundle": given},
    }
    with release.installed():
        meta = {"name": path.split("/")[-1]}
        body = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": meta}
        apply = f"{path}?fieldManager=backlog-adapter&force=true"
        release.plane.api.request("PATCH", apply, body | {"spec": {"caBundle": own}}, "application/apply-patch+yaml")
        with pytest.raises(CommandError, match=r'conflict with "backlog-adapter"[\s\S]*\.spec\.caBundle'):
            release.helm("upgrade", {"tls": secrets})
        release.helm("upgrade", {"tls": secrets}, "--force-conflicts")
        assert release.plane.api.get(path)["spec"]["caBundle"] == given


@pytest.fixture
def kedas_group(controlplane: ControlPlane) -> Any:
    """external.metrics.k8s.io as KEDA's chart claims it."""
    claimed = api_service_of(EXTERNAL, name="keda-operator-metrics-apiserver", namespace="keda")
    owner = {"meta.helm.sh/release-name": "keda", "meta.helm.sh/release-namespace": "keda"}
    claimed["metadata"] |= {"annotations": owner, "labels": {"app.kubernetes.io/managed-by": "Helm"}}
    controlplane.apply(claimed)
    yield
    controlplane.kubectl("delete", "apiservice", claimed["metadata"]["name"])


def test_helm_names_the_owner_of_a_group_and_installs_without_it(release: Release, kedas_group: Any) -> None:
    with pytest.raises(CommandError, match=r"v1beta1\.external\.metrics\.k8s\.io.*keda"):
        release.helm("install")
    _remove_the_failed_release(release)
    with release.installed({"apiService": {"external": {"create": False}}}):
        assert get(release.plane, "deployment", OBJECT)
    owner = release.plane.api.get(api_service(EXTERNAL))
    assert owner["spec"]["service"]["namespace"] == "keda"


def test_helm_names_the_missing_kind_where_there_is_no_prometheus_operator(release: Release) -> None:
    if "servicemonitors" in release.plane.kubectl("api-resources", "--output=name"):
        release.plane.kubectl("delete", "crd", "servicemonitors.monitoring.coreos.com")
    with pytest.raises(
        CommandError, match=r'no matches for kind "ServiceMonitor"[\s\S]*ensure CRDs are installed first'
    ):
        release.helm("install", {"serviceMonitor": {"enabled": True}})
    _remove_the_failed_release(release)


def _remove_the_failed_release(release: Release) -> None:
    if NAME in release.plane.helm("list", "--short", "--namespace", NAMESPACE):
        release.helm("uninstall")


def test_a_pod_names_the_secret_that_is_missing(release: Release) -> None:
    with release.installed({"pipeline": {"secretMounts": {"kafka": "/run/secrets/kafka"}}}):
        template = get(release.plane, "deployment", f"{OBJECT}-pipeline")["spec"]["template"]["spec"]
    # The kubelet reports `MountVolume.SetUp failed for volume ...: secret "kafka" not found`: no `optional` hides it.
    (volume,) = [each["secret"] for each in template["volumes"] if each.get("secret", {}).get("secretName") == "kafka"]
    assert not volume.get("optional")
