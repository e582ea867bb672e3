"""Access to metrics by the authentication and RBAC of the cluster."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from parts.adapter import NAME, NAMESPACE, SEGMENTS, Adapter
from parts.controlplane import Api, ControlPlane, User
from parts.direct import DirectClient
from parts.process import until
from parts.service import CUSTOM, VERSIONS

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
    """Users with different rights."""

    alice: User  # may list one external metric and get it of objects, in one namespace
    bob: User  # has no rights
    token: str  # of a service account with the rights of alice


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
    # A server would cache a denial from before the binding takes effect.
    can_list = ("auth", "can-i", "list", "segments.external.metrics.k8s.io")
    until(lambda: controlplane.kubectl(*can_list, user=people.alice), 60, "alice may list segments")
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
def server(adapter: Adapter) -> DirectClient:
    return adapter.direct(adapter.servers()[0])


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(SEGMENTS, id="external"),
        pytest.param(OF_AN_OBJECT, id="of an object"),
        pytest.param(OF_ALL_OBJECTS, id="of all objects"),
    ],
)
def test_kubectl_reads_a_metric_only_for_authorized_users(
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
def test_a_role_grants_nothing_else(
    path: str, people: People, controlplane: ControlPlane, server: DirectClient
) -> None:
    with pytest.raises(AssertionError, match='User "alice" cannot'):
        controlplane.kubectl("get", "--raw", path, user=people.alice)
    answer = server.get(path, people.alice.certificate)
    assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")


def test_a_server_authenticates_direct_clients(people: People, server: DirectClient) -> None:
    assert server.get(SEGMENTS, people.alice.certificate).status_code == 200
    denied = server.get(SEGMENTS, people.bob.certificate)
    assert (denied.status_code, denied.json()["message"]) == (403, DENIED.format("bob"))
    anonymous = server.get(SEGMENTS)
    assert (anonymous.status_code, anonymous.json()["message"]) == (403, DENIED.format("system:anonymous"))


def test_the_token_of_a_service_account_is_reviewed(people: People, server: DirectClient) -> None:
    assert server.get(SEGMENTS, headers=_bearer(people.token)).status_code == 200
    assert server.get(OF_AN_OBJECT, headers=_bearer(people.token)).status_code == 200
    assert server.get(SEGMENTS, headers=_bearer(people.token[:-4] + "AAAA")).status_code == 401


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_identity_headers_count_only_with_the_front_proxy_certificate(people: People, server: DirectClient) -> None:
    headers = {"X-Remote-User": "alice", "X-Remote-Group": "system:masters"}
    answer = server.get(SEGMENTS, people.bob.certificate, headers)
    assert (answer.status_code, answer.json()["message"]) == (403, DENIED.format("bob"))
    assert server.get(SEGMENTS, headers=headers).status_code == 403


def test_kube_apiserver_resolves_impersonation(people: People, controlplane: ControlPlane) -> None:
    assert json.loads(controlplane.kubectl("get", "--raw", SEGMENTS, "--as=alice"))["items"]
    with pytest.raises(AssertionError, match='User "bob" cannot list resource'):
        controlplane.kubectl("get", "--raw", SEGMENTS, "--as=bob")


def test_a_change_of_rights_takes_effect_within_seconds(
    people: People, controlplane: ControlPlane, server: DirectClient
) -> None:
    def is_answered(status: int) -> bool:
        return server.get(SEGMENTS, people.bob.certificate).status_code == status

    assert is_answered(403)
    controlplane.apply(_binding("bobs", _user("bob")))
    until(lambda: is_answered(200), CACHED_S, "bob is authorized")
    controlplane.kubectl("delete", "rolebinding", "bobs")
    until(lambda: is_answered(403), CACHED_S, "bob is no longer authorized")


@contextmanager
def _without_the_right_to_review(plane: ControlPlane) -> Iterator[str]:
    """Takes the right to create access reviews from the adapter's account, which it yields."""
    name = f"{NAMESPACE}:{NAME}-auth-delegator"
    binding = plane.api.get(f"/apis/{RBAC}/v1/clusterrolebindings/{name}")
    plane.kubectl("delete", "clusterrolebinding", name)
    try:
        yield f"system:serviceaccount:{NAMESPACE}:{NAME}"
    finally:
        metadata = {key: binding["metadata"][key] for key in ("name", "labels", "annotations")}
        plane.apply({**binding, "metadata": metadata})


def test_without_the_right_to_review_metrics_are_refused_and_the_api_stays_available(
    people: People, controlplane: ControlPlane, adapter: Adapter, server: DirectClient
) -> None:
    alice = controlplane.api_of(people.alice)
    with _without_the_right_to_review(controlplane) as account:
        until(lambda: _statuses(alice) == {500}, CACHED_S, "every server fails the review")
        what = f'User "{account}" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io"'
        message = alice.raw(SEGMENTS).json()["message"]
        assert f"the access review failed: subjectaccessreviews.authorization.k8s.io is forbidden: {what}" in message
        until(
            lambda: server.get(SEGMENTS, headers=_bearer(people.token)).status_code == 401,
            CACHED_S,
            "the token is refused",
        )

        for version in VERSIONS:
            assert _as_the_availability_check(controlplane, server, f"/apis/{version}").status_code == 200
            assert adapter.is_available(version)
        listed = controlplane.kubectl("api-resources", "--api-group=external.metrics.k8s.io", user=people.bob)
        assert "segments" in listed
    until(lambda: _statuses(alice) == {200}, CACHED_S, "alice is authorized again")
    until(
        lambda: server.get(SEGMENTS, headers=_bearer(people.token)).status_code == 200,
        CACHED_S,
        "the token is accepted again",
    )


def _statuses(client: Api) -> set[int]:
    """The status codes of 20 answers; with near certainty both servers gave some of them."""
    return {client.raw(SEGMENTS).status_code for _ in range(20)}


def _as_the_availability_check(plane: ControlPlane, server: DirectClient, path: str) -> httpx.Response:
    identity = {"X-Remote-User": "system:kube-aggregator", "X-Remote-Group": "system:masters"}
    return server.get(path, (plane.front_proxy.certificate, plane.front_proxy.key), identity)
