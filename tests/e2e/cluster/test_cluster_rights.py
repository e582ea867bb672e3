"""Who may read which metric, as the cluster's own authentication and RBAC decide it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from parts.adapter import CUSTOM, NAME, NAMESPACE, SEGMENTS, VERSIONS, Adapter
from parts.controlplane import Api, ControlPlane, User
from parts.direct import Direct
from parts.process import until

RBAC = "rbac.authorization.k8s.io"
OF_AN_OBJECT = f"/apis/{CUSTOM[1]}/namespaces/default/deployments.apps/clicks/segments"
OF_ALL_OBJECTS = OF_AN_OBJECT.replace("/clicks/", "/*/") + "?labelSelector=workload%3Dclicks"
CACHED_S = 30  # each server caches its access reviews for ten seconds
DENIED = (
    'segments.external.metrics.k8s.io is forbidden: User "{}" cannot list resource "segments" '
    'in API group "external.metrics.k8s.io" in the namespace "default"'
)


@dataclass(frozen=True)
class People:
    """alice may list one external metric and get it of objects, in one namespace; bob may nothing.

    token: of a service account with the rights of alice.
    """

    alice: User
    bob: User
    token: str


@pytest.fixture(scope="module")
def people(clicks: str, controlplane: ControlPlane) -> People:
    controlplane.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named("dashboard")},
        _role(
            {"apiGroups": ["external.metrics.k8s.io"], "resources": ["segments"], "verbs": ["list"]},
            {"apiGroups": ["custom.metrics.k8s.io"], "resources": ["deployments.apps/segments"], "verbs": ["get"]},
        ),
        _binding("readers", _user("alice"), {"kind": "ServiceAccount", **_named("dashboard")}),
    )
    token = controlplane.kubectl("create", "token", "dashboard").strip()
    people = People(controlplane.user("alice"), controlplane.user("bob"), token)
    # What a server was told before the cluster's API knew of the binding it would keep for a while.
    may = ("auth", "can-i", "list", "segments.external.metrics.k8s.io")
    until(lambda: controlplane.kubectl(*may, user=people.alice), 60, "alice may")
    return people


def _named(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "default"}


def _role(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": _named("segments"), "rules": list(rules)}


def _binding(name: str, *subjects: dict[str, str]) -> dict[str, Any]:
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "segments"}
    meta = {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": _named(name)}
    return {**meta, "roleRef": reference, "subjects": list(subjects)}


def _user(name: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


@pytest.fixture
def server(adapter: Adapter) -> Direct:
    return adapter.direct(adapter.servers()[0])


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(SEGMENTS, id="external"),
        pytest.param(OF_AN_OBJECT, id="of an object"),
        pytest.param(OF_ALL_OBJECTS, id="of all objects"),
    ],
)
def test_kubectl_reads_a_metric_for_who_may_and_for_nobody_else(
    path: str, people: People, controlplane: ControlPlane
) -> None:
    assert len(json.loads(controlplane.kubectl("get", "--raw", path, user=people.alice))["items"]) == 1
    with pytest.raises(AssertionError, match='User "bob" cannot'):
        controlplane.kubectl("get", "--raw", path, user=people.bob)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(SEGMENTS.replace("/default/", "/kube-public/"), id="in another namespace"),
        pytest.param(SEGMENTS.replace("/segments", "/backlog"), id="another metric"),
        pytest.param(OF_AN_OBJECT.replace("/deployments", "/statefulsets"), id="of another kind of object"),
    ],
)
def test_a_right_reaches_no_further_than_it_says(
    path: str, people: People, controlplane: ControlPlane, server: Direct
) -> None:
    with pytest.raises(AssertionError, match='User "alice" cannot'):
        controlplane.kubectl("get", "--raw", path, user=people.alice)
    answer = server.get(path, people.alice.certificate)
    assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")


def test_a_server_knows_who_asks_it_directly(people: People, server: Direct) -> None:
    assert server.get(SEGMENTS, people.alice.certificate).status_code == 200
    denied = server.get(SEGMENTS, people.bob.certificate)
    assert (denied.status_code, denied.json()["message"]) == (403, DENIED.format("bob"))
    anonymous = server.get(SEGMENTS)
    assert (anonymous.status_code, anonymous.json()["message"]) == (403, DENIED.format("system:anonymous"))


def test_a_service_accounts_token_is_reviewed_by_the_cluster(people: People, server: Direct) -> None:
    assert server.get(SEGMENTS, headers=_bearer(people.token)).status_code == 200
    assert server.get(OF_AN_OBJECT, headers=_bearer(people.token)).status_code == 200
    assert server.get(SEGMENTS, headers=_bearer(people.token[:-4] + "AAAA")).status_code == 401


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_who_has_no_front_proxys_certificate_is_not_whom_his_headers_name(people: People, server: Direct) -> None:
    headers = {"X-Remote-User": "alice", "X-Remote-Group": "system:masters"}
    answer = server.get(SEGMENTS, people.bob.certificate, headers)
    assert (answer.status_code, answer.json()["message"]) == (403, DENIED.format("bob"))
    assert server.get(SEGMENTS, headers=headers).status_code == 403


def test_the_cluster_resolves_impersonation_before_it_asks_a_server(people: People, controlplane: ControlPlane) -> None:
    assert json.loads(controlplane.kubectl("get", "--raw", SEGMENTS, "--as=alice"))["items"]
    with pytest.raises(AssertionError, match='User "bob" cannot list resource'):
        controlplane.kubectl("get", "--raw", SEGMENTS, "--as=bob")


def test_a_right_that_is_given_or_taken_counts_within_seconds(
    people: People, controlplane: ControlPlane, server: Direct
) -> None:
    def is_answered(status: int) -> bool:
        return server.get(SEGMENTS, people.bob.certificate).status_code == status

    assert is_answered(403)
    controlplane.apply(_binding("bobs", _user("bob")))
    until(lambda: is_answered(200), CACHED_S, "bob may")
    controlplane.kubectl("delete", "rolebinding", "bobs")
    until(lambda: is_answered(403), CACHED_S, "bob may not any more")


@contextmanager
def _without_the_right_to_ask(plane: ControlPlane) -> Iterator[str]:
    """Until its end the adapter's account, which is yielded, may not have anybody reviewed."""
    name = f"{NAMESPACE}-{NAME}-auth-delegator"
    binding = plane.api.get(f"/apis/{RBAC}/v1/clusterrolebindings/{name}")
    plane.kubectl("delete", "clusterrolebinding", name)
    try:
        yield f"system:serviceaccount:{NAMESPACE}:{NAME}"
    finally:
        kept = {key: binding["metadata"][key] for key in ("name", "labels", "annotations")}
        plane.apply({**binding, "metadata": kept})


def test_without_the_right_to_ask_the_cluster_metrics_are_refused_and_the_api_stays(
    people: People, controlplane: ControlPlane, adapter: Adapter, server: Direct
) -> None:
    alice = controlplane.api_of(people.alice)
    with _without_the_right_to_ask(controlplane) as account:
        until(lambda: _statuses(alice) == {500}, CACHED_S, "nobody is reviewed by any server")
        what = f'User "{account}" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io"'
        message = alice.raw(SEGMENTS).json()["message"]
        assert f"the access review failed: subjectaccessreviews.authorization.k8s.io is forbidden: {what}" in message
        until(lambda: server.get(SEGMENTS, headers=_bearer(people.token)).status_code == 401, CACHED_S, "no token")

        for version in VERSIONS:
            assert _as_the_availability_check(controlplane, server, f"/apis/{version}").status_code == 200
            assert adapter.is_available(version)
        listed = controlplane.kubectl("api-resources", "--api-group=external.metrics.k8s.io", user=people.bob)
        assert "segments" in listed
    until(lambda: _statuses(alice) == {200}, CACHED_S, "alice is reviewed again")
    until(lambda: server.get(SEGMENTS, headers=_bearer(people.token)).status_code == 200, CACHED_S, "and a token")


def _statuses(asker: Api) -> set[int]:
    """Of so many answers that each server has most probably given one."""
    return {asker.raw(SEGMENTS).status_code for _ in range(20)}


def _as_the_availability_check(plane: ControlPlane, server: Direct, path: str) -> httpx.Response:
    who = {"X-Remote-User": "system:kube-aggregator", "X-Remote-Group": "system:masters"}
    return server.get(path, (plane.front_proxy.certificate, plane.front_proxy.key), who)
