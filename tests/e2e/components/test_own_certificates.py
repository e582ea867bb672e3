"""Certificates that the servers make themselves, on a control plane of its own: made, rotated, repaired, removed."""

import base64
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from parts.adapter import IMAGES, NAME, NAMESPACE, Adapter
from parts.controlplane import Api, ControlPlane
from parts.kubelet import Kubelet
from parts.pod import Pod
from parts.process import CommandError, Loop, until
from parts.publisher import WORKLOAD
from parts.service import EXTERNAL, api_service, api_service_of
from parts.traffic import Traffic, lossless_traffic

PUBLISHER = Path(__file__).parents[1] / "parts" / "publisher.py"
LEAF_S, CA_S, PUBLISH_S = 90, 270, 5
LIVES = {"leaf_lifetime_s": LEAF_S, "ca_lifetime_s": CA_S, "publish_s": PUBLISH_S}
METRIC = f"/apis/{EXTERNAL}/namespaces/default/required_workers?labelSelector=workload%3D{WORKLOAD}"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
OWN, PEER, TOKEN = f"{NAME}-tls", f"{NAME}-pipeline-tls", f"{NAME}-token"
OTHERS = "custom.metrics.k8s.io/v1beta1"
LONG_S = 600  # how long a test waits for a rotation that takes a minute or two


class Mounts(Loop):
    """Updates the mounted Secrets of the pipeline every few seconds, as a real kubelet does every minute or two."""

    def __init__(self, kubelet: Kubelet) -> None:
        super().__init__(pause_s=3.0)
        self._kubelet = kubelet

    def step(self) -> None:
        with suppress(httpx.HTTPError, OSError):  # the Secret or the API is away
            self._kubelet.refresh(NAMESPACE, f"{NAME}-pipeline")


@pytest.fixture(scope="module")
def plane(run: Path) -> Iterator[ControlPlane]:
    with ControlPlane(run / "own-certificates") as plane:
        yield plane


@pytest.fixture(scope="module")
def kubelet(run: Path, plane: ControlPlane) -> Iterator[Kubelet]:
    images = {**IMAGES, "backlog-adapter-pipeline": [sys.executable, "-P", str(PUBLISHER)]}
    with Kubelet(plane.api, run / "own-pods", images) as kubelet, Mounts(kubelet):
        yield kubelet


@pytest.fixture(scope="module")
def adapter(run: Path, plane: ControlPlane, kubelet: Kubelet) -> Adapter:
    adapter = Adapter(plane, kubelet, run / "own-adapter")
    config = {"sources": {"cluster": {"kind": "kubernetes"}}, "serving": {"issuer": LIVES}}
    adapter.install({"config": config}, [EXTERNAL])
    return adapter


@pytest.fixture(scope="module")
def reader(adapter: Adapter, plane: ControlPlane) -> Api:
    role = f"--clusterrole={NAMESPACE}:{NAME}-metrics-reader"
    plane.kubectl("create", "rolebinding", "reader", "--namespace=default", role, "--user=reader")
    api = plane.api_of(plane.user("reader"))
    until(lambda: api.raw(METRIC).is_success, 60, "the reader is authorized")
    return api


@pytest.fixture
def traffic(reader: Api, adapter: Adapter) -> Iterator[Traffic]:
    """Fails the test if a request through the aggregator fails or a container restarts."""
    pods = [adapter.pipeline(), *adapter.servers()]
    before = [pod.restarts for pod in pods]
    with lossless_traffic(lambda: reader.raw(METRIC), 100) as traffic:
        yield traffic
    assert [pod.restarts for pod in pods] == before


def serials(adapter: Adapter) -> list[int]:
    return [adapter.direct(pod).serial() for pod in adapter.servers()]


def bundle(plane: ControlPlane) -> bytes:
    return base64.b64decode(plane.api.get(api_service(EXTERNAL))["spec"].get("caBundle", ""))


def newest_ca(plane: ControlPlane) -> bytes:
    """The CA that signs: the first of the bundle."""
    end = b"-----END CERTIFICATE-----\n"
    return bundle(plane).partition(end)[0]


def patch_secret(plane: ControlPlane, name: str, data: dict[str, str | None] | None) -> None:
    plane.api.request("PATCH", f"{SECRETS}/{name}", {"data": data}, "application/merge-patch+json")


def holder(plane: ControlPlane) -> str:
    name: str = plane.api.get(LEASE)["spec"]["holderIdentity"]
    return name


def managers(item: dict[str, Any]) -> set[str]:
    return {entry["manager"] for entry in item["metadata"]["managedFields"] if entry.get("subresource") != "status"}


def test_the_first_certificates_are_made_without_help(adapter: Adapter, plane: ControlPlane) -> None:
    assert sorted(adapter.secret(OWN)) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert sorted(adapter.secret(PEER)) == ["ca.crt", "tls.crt", "tls.key"]
    assert bundle(plane) == adapter.secret(OWN)["ca.crt"]
    assert len(adapter.secret(TOKEN)["token"]) == 48
    assert holder(plane) in [pod.name for pod in adapter.servers()]


def test_what_serve_writes_has_its_own_field_manager(adapter: Adapter, plane: ControlPlane) -> None:
    (own,) = [
        entry
        for entry in plane.api.get(api_service(EXTERNAL))["metadata"]["managedFields"]
        if entry["manager"] == "backlog-adapter"
    ]
    assert own["operation"] == "Apply"
    assert own["fieldsV1"] == {"f:spec": {"f:caBundle": {}}}
    for name in (OWN, PEER, TOKEN):
        assert managers(plane.api.get(f"{SECRETS}/{name}")) == {"helm", "backlog-adapter"}


def test_certificates_and_ca_rotate_without_a_failed_request(
    traffic: Traffic, adapter: Adapter, plane: ControlPlane
) -> None:
    served: dict[int, set[int]] = {0: set(), 1: set()}
    cas: set[bytes] = set()
    availability: set[str] = set()

    def has_rotated() -> bool:
        for place, serial in enumerate(serials(adapter)):
            served[place].add(serial)
        cas.add(newest_ca(plane))
        availability.add(adapter.availability(EXTERNAL)["status"])
        return all(len(seen) >= 4 for seen in served.values()) and len(cas) >= 2

    until(has_rotated, LONG_S, "both servers had four certificates, of two CAs", every_s=1.0)
    assert availability == {"True"}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"ca.key": None}, id="the key of the CA is gone"),
        pytest.param({"tls.crt": "bm9uc2Vuc2U="}, id="the certificate is nonsense"),
        pytest.param(None, id="everything is gone"),
    ],
)
def test_a_damaged_secret_is_repaired_without_a_failed_request(
    traffic: Traffic, adapter: Adapter, plane: ControlPlane, damage: dict[str, str | None] | None
) -> None:
    before = set(serials(adapter))
    patch_secret(plane, OWN, damage)

    def is_repaired() -> bool:
        found = set(serials(adapter))
        return len(found) == 1 and not found & before and bundle(plane) == adapter.secret(OWN)["ca.crt"]

    until(is_repaired, LONG_S, "both servers have a new certificate", every_s=1.0)
    assert sorted(adapter.secret(OWN)) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert adapter.is_available(EXTERNAL)


def test_an_upgrade_changes_nothing_that_serve_wrote(traffic: Traffic, adapter: Adapter, plane: ControlPlane) -> None:
    def written() -> list[object]:
        keys = [adapter.secret(OWN)["ca.key"], adapter.secret(TOKEN)["token"]]
        return [*keys, newest_ca(plane), plane.api.get(LEASE)["spec"]["holderIdentity"]]

    until(lambda: written()[0], 60, "everything is written")
    before = written()
    adapter.upgrade()
    after = written()
    # A rotation may fall into the upgrade.
    assert after[1] == before[1]
    assert after[3] == before[3]
    assert after[2] in bundle(plane)
    assert adapter.is_available(EXTERNAL)


def test_a_deleted_secret_is_made_again_by_an_upgrade(adapter: Adapter, plane: ControlPlane, reader: Api) -> None:
    plane.kubectl("delete", "secret", OWN, "-n", NAMESPACE)
    assert reader.raw(METRIC).is_success
    adapter.upgrade()
    until(lambda: "tls.key" in adapter.secret(OWN), LONG_S, "the Secret has a certificate again")
    until(lambda: reader.raw(METRIC).is_success, LONG_S, "the metric is served")


def test_another_replica_issues_when_the_leader_is_gone(
    adapter: Adapter, plane: ControlPlane, kubelet: Kubelet, reader: Api
) -> None:
    leader = holder(plane)
    (pod,) = [pod for pod in adapter.servers() if pod.name == leader]
    with kubelet.killed(pod):
        until(lambda: holder(plane) != leader, LONG_S, "another replica holds the Lease")
        (other,) = [other for other in adapter.servers() if other.name != leader]
        before = serial_of(adapter, other)
        patch_secret(plane, OWN, {"tls.crt": None})
        until(lambda: serial_of(adapter, other) != before, LONG_S, "the other replica issues a certificate")
    until(lambda: serial_of(adapter, pod) == serial_of(adapter, other), LONG_S, "both replicas serve it")
    until(lambda: reader.raw(METRIC).is_success, 60, "the metric is served")


def serial_of(adapter: Adapter, pod: Pod) -> int:
    return adapter.direct(pod).serial()


def test_helm_refuses_a_group_that_another_adapter_owns_and_names_the_object(
    adapter: Adapter, plane: ControlPlane
) -> None:
    plane.apply(api_service_of(OTHERS, namespace="monitoring", name="prometheus-adapter"))
    try:
        with pytest.raises(CommandError) as refused:
            adapter.upgrade("--set", "apiService.custom.create=true")
        assert 'APIService "v1beta1.custom.metrics.k8s.io"' in str(refused.value)
        assert "exists and cannot be imported into the current release: invalid ownership metadata" in str(
            refused.value
        )
        adapter.upgrade("--set", "apiService.custom.create=false")
        spec = plane.api.get(api_service(OTHERS))["spec"]
        assert spec["service"]["name"] == "prometheus-adapter"
        assert "caBundle" not in spec
    finally:
        plane.kubectl("delete", "apiservice", "v1beta1.custom.metrics.k8s.io")


def test_an_uninstallation_leaves_nothing(adapter: Adapter, plane: ControlPlane) -> None:
    plane.helm("uninstall", NAME, "--namespace", NAMESPACE, "--wait")
    names = [item["metadata"]["name"] for item in plane.api.get(SECRETS)["items"]]
    assert names == []
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        plane.api.get(api_service(EXTERNAL))
    # The garbage collector deletes the Lease after its owners are deleted.
    until(lambda: plane.api.raw(LEASE).status_code == 404, 60, "the Lease is removed")
