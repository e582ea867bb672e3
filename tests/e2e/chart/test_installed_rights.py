"""The accounts of the chart have the rights in the table of docs/security.md: no more, and no less."""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from parts.controlplane import ControlPlane
from parts.process import until
from parts.release import NAME, NAMESPACE, Release
from parts.scale_target import MANIFESTS
from parts.standins import FLINK_CRD, scale_target

from adapter.config import KubernetesSource
from adapter.sources.kubernetes import KubernetesReader

ROOT = Path(__file__).parents[3]
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate")
NAMESPACES = ("", NAMESPACE, "kube-system")  # "": in the whole cluster
REVIEW = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SERVE, PIPELINE = f"{NAME}-backlog-adapter", f"{NAME}-backlog-adapter-pipeline"
VALUES = {"rbac": {"extraScaleTargets": ["flink.apache.org", "example.org/widgets"]}}


class Right(NamedTuple):
    """A verb on a resource, in a namespace ("" for all), on an object ("" for any)."""

    verb: str
    group: str
    resource: str  # with its subresource
    namespace: str
    name: str = ""


_OF_EXTRA_TARGETS = {
    Right("get", group, f"{resource}/scale", namespace)
    for group, resource in (("flink.apache.org", "flinkdeployments"), ("example.org", "widgets"))
    for namespace in NAMESPACES
}


def documented(process: str) -> set[Right]:
    """The rights that docs/security.md lists for a process, each in the namespaces that it lists."""
    document = (ROOT / "docs" / "security.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` " + r"\| ([^|]+) " * 5 + r"\|", document, re.MULTILINE)
    return {
        right
        for owner, verbs, resources, groups, names, where in rows
        if owner == process
        for right in _rights(verbs, resources, groups, (names, where))
    }


def _rights(verbs: str, resources: str, groups: str, places: tuple[str, str]) -> Iterator[Right]:
    names, where = places
    for verb in verbs.split(", "):
        for resource in re.findall(r"`([^`]+)`", resources):
            for name in re.findall(r"`([^`]+)`", names) or [""]:
                for namespace in _namespaces(where.strip()):
                    group = "" if "core" in groups else groups.strip(" `")
                    yield Right(verb, group, resource, namespace, name.replace("NAME", SERVE))


def _namespaces(where: str) -> Iterable[str]:
    places = {"cluster": NAMESPACES, "kube-system": ("kube-system",), "release": (NAMESPACE,)}
    return places[where]


def resources(plane: ControlPlane) -> set[tuple[str, str]]:
    """Group and resource or subresource of every API version that the cluster prefers."""
    found = set()
    paths = ["/api/v1", *(f"/apis/{each['preferredVersion']['groupVersion']}" for each in _groups(plane))]
    for path in paths:
        answer = plane.api.raw(path)
        for each in answer.json()["resources"] if answer.is_success else ():
            found.add((path.split("/")[2] if path != "/api/v1" else "", each["name"]))
    return found


def _groups(plane: ControlPlane) -> list[dict[str, dict[str, str]]]:
    groups: list[dict[str, dict[str, str]]] = plane.api.get("/apis")["groups"]
    return groups


def allowed(plane: ControlPlane, account: str, rights: Iterable[Right]) -> set[Right]:
    """Those of the rights that the account has."""

    def has(right: Right) -> bool:
        resource, _, subresource = right.resource.partition("/")
        attributes = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": subresource}
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
        spec = {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
            "groups": groups,
            "resourceAttributes": attributes | {"namespace": right.namespace, "name": right.name},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return bool(plane.api.request("POST", REVIEW, body)["status"]["allowed"])

    rights = list(rights)
    with ThreadPoolExecutor(4) as threads:
        return {right for right, granted in zip(rights, threads.map(has, rights), strict=True) if granted}


@pytest.mark.parametrize(("process", "account"), [("serve", SERVE), ("pipeline", PIPELINE)])
def test_an_account_has_the_documented_rights_and_no_others(
    release: Release, crds: None, process: str, account: str
) -> None:
    plane = release.plane
    with release.installed(VALUES):
        expected = documented(process) | (_OF_EXTRA_TARGETS if process == "pipeline" else set())
        asked = {
            Right(verb, group, resource, namespace, name)
            for group, resource in {*resources(plane), *((right.group, right.resource) for right in expected)}
            for verb in VERBS
            for namespace in NAMESPACES
            for name in {"", *(right.name for right in expected if (right.group, right.resource) == (group, resource))}
        }
        # Kubernetes grants these to everybody who is authenticated; an account that does not exist has no others.
        of_every_user = allowed(plane, "nobody", asked)
        found = allowed(plane, account, asked) - of_every_user
    assert found == expected


def autoscaled_job() -> list[dict[str, Any]]:
    """A FlinkDeployment and its HPA, which names a version that is not served: the HPA controller ignores it."""
    hpa = yaml.safe_load((MANIFESTS / "flink-operator.yaml").read_text())
    target = hpa["spec"]["scaleTargetRef"]
    target["apiVersion"] = "flink.apache.org/v1alpha1"
    return [scale_target("FlinkDeployment", target["name"], 3), hpa]


def samples_of(plane: ControlPlane, folder: Path) -> dict[str, float | str]:
    """What the pipeline's account reads of the workload, by signal."""
    token = plane.kubectl("create", "token", PIPELINE, "--namespace", NAMESPACE).strip()
    config = plane.user(f"account-{folder.name}").kubeconfig
    text = config.read_text()
    path = folder / "kubeconfig"
    path.write_text(re.sub(r"client-certificate: .*\n\s+client-key: .*", f"token: {token}", text))
    reader = KubernetesReader("cluster", KubernetesSource(kind="kubernetes", kubeconfig=str(path)), clock=lambda: 15.0)
    try:
        rows = reader.samples(15, 15, 15).to_pylist()
    finally:
        reader.close()
    return {row["signal"]: row["text"] or row["value"] for row in rows}


def test_the_pipeline_reads_a_flink_deployment_with_the_extra_scale_target_alone(
    release: Release, tmp_path: Path
) -> None:
    plane = release.plane
    plane.kubectl("apply", "-f", str(FLINK_CRD))
    until(lambda: plane.api.get("/apis/flink.apache.org/v1beta1/flinkdeployments"), 60, "jobs can be listed")
    job, hpa = autoscaled_job()
    plane.apply(job, hpa)
    try:
        with release.installed():
            assert "rbac.extraScaleTargets" in str(samples_of(plane, tmp_path))
            release.helm("upgrade", VALUES)
            found = until(lambda: _with(samples_of(plane, tmp_path), "spec_workers"), 30, "the role takes effect")
        assert (found["spec_workers"], found["max_workers"]) == (3.0, hpa["spec"]["maxReplicas"])
    finally:
        plane.kubectl("delete", "crd", "flinkdeployments.flink.apache.org")
        plane.kubectl("delete", "hpa", hpa["metadata"]["name"])


def _with(samples: dict[str, float | str], signal: str) -> dict[str, float | str]:
    return samples if signal in samples else {}
