"""What is replaced while everybody asks: certificates, CAs, at last the servers themselves. Not one request fails."""

import base64
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from parts import frontproxy
from parts.adapter import NAME, NAMESPACE, SEGMENTS, VERSIONS, Adapter, api_service
from parts.certificates import Authority
from parts.controlplane import ControlPlane, User
from parts.direct import Direct
from parts.kubelet import Kubelet
from parts.process import until
from parts.traffic import Traffic

HOST = f"{NAME}.{NAMESPACE}.svc"
SETTINGS = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
BUNDLE = "requestheader-client-ca-file"
ENOUGH = 100  # answers between one step and the next
LOADED = 'Loaded a new cert/key pair" name="aggregator-proxy-cert'
RELOADED_S = 150  # kube-apiserver is told of a change of its files at once, and looks every minute in case it was not
FOLLOWED_S = 60  # our servers ask every ten seconds


@pytest.fixture
def traffic(reader: User, clicks: str, controlplane: ControlPlane, adapter: Adapter) -> Iterator[Traffic]:
    """Fails the test unless hundreds were answered, every one of them well, and no container was started again."""
    api = controlplane.api_of(reader)
    until(lambda: api.raw(SEGMENTS).is_success, 60, "the reader is answered")
    pods = [adapter.pipeline(), *adapter.servers()]
    before = [pod.restarts for pod in pods]
    with Traffic(lambda: api.raw(SEGMENTS)) as traffic:
        go_on(traffic)
        yield traffic
        go_on(traffic)
    assert traffic.failures == 0, f"{traffic.answers}: {traffic.first_fault}"
    assert traffic.asked >= 3 * ENOUGH
    assert [pod.restarts for pod in pods] == before


def go_on(traffic: Traffic) -> None:
    """Returns when some more were asked."""
    goal = traffic.asked + ENOUGH
    until(lambda: traffic.asked >= goal, 180, f"{ENOUGH} more are asked")


def test_a_serving_certificate_of_another_ca_takes_over_without_a_failed_request(
    traffic: Traffic, adapter: Adapter, controlplane: ControlPlane, kubelet: Kubelet, run: Path
) -> None:
    (run / "rotation").mkdir()
    authority = Authority(run / "rotation", "serving-ca")
    certificate, key = (path.read_bytes() for path in authority.issue(NAME, addresses=(HOST,)))
    old, new = adapter.secret(f"{NAME}-tls")["ca.crt"], authority.path.read_bytes()

    trust(controlplane, old + new)
    go_on(traffic)  # kube-apiserver does not say when it has taken over what it trusts
    write_secret(controlplane, {"ca.crt": old + new, "tls.crt": certificate, "tls.key": key})
    kubelet.refresh(NAMESPACE, NAME)
    expected = x509.load_pem_x509_certificate(certificate).serial_number
    servers = [adapter.direct(pod) for pod in adapter.servers()]
    until(lambda: {server.serial() for server in servers} == {expected}, 60, "both servers show the new certificate")
    go_on(traffic)
    trust(controlplane, new)
    write_secret(controlplane, {"ca.crt": new})
    kubelet.refresh(NAMESPACE, NAME)
    go_on(traffic)

    assert all(adapter.is_available(version) for version in VERSIONS)


def test_an_upgrade_keeps_certificate_ca_and_token(
    traffic: Traffic, adapter: Adapter, controlplane: ControlPlane
) -> None:
    def kept() -> list[object]:
        bundles = [controlplane.api.get(api_service(version))["spec"]["caBundle"] for version in VERSIONS]
        return [*(adapter.secret(f"{NAME}-{each}") for each in ("tls", "pipeline-tls", "token")), bundles]

    before = kept()
    adapter.upgrade()
    go_on(traffic)
    assert kept() == before


def trust(plane: ControlPlane, cas: bytes) -> None:
    """From now on kube-apiserver expects servers whose certificates one of these has signed."""
    for version in VERSIONS:
        merge(plane, api_service(version), {"spec": {"caBundle": base64.b64encode(cas).decode()}})


def write_secret(plane: ControlPlane, files: dict[str, bytes]) -> None:
    patch = {"data": {name: base64.b64encode(content).decode() for name, content in files.items()}}
    merge(plane, f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}-tls", patch)


def merge(plane: ControlPlane, path: str, patch: dict[str, Any]) -> None:
    plane.api.ask("PATCH", path, patch, "application/merge-patch+json")


def test_a_front_proxy_of_another_ca_takes_over_without_a_failed_request_and_the_old_one_counts_no_more(
    traffic: Traffic, adapter: Adapter, controlplane: ControlPlane, run: Path
) -> None:
    proxy = controlplane.front_proxy
    servers = [adapter.direct(pod) for pod in adapter.servers()]
    old, new = proxy.authority, proxy.new_authority()
    theirs, ours = old.issue(frontproxy.NAME), new.issue(frontproxy.NAME)
    assert all(is_front_proxy(server, theirs) and not is_front_proxy(server, ours) for server in servers)

    proxy.trust([old, new])
    until(lambda: published(controlplane) == {pem(old), pem(new)}, RELOADED_S, "both CAs are published")
    until(lambda: all(is_front_proxy(server, ours) for server in servers), FOLLOWED_S, "both CAs are trusted")
    loaded = controlplane.log("kube-apiserver").count(LOADED)
    proxy.present(new)
    until(lambda: controlplane.log("kube-apiserver").count(LOADED) > loaded, RELOADED_S, "the new one is presented")
    go_on(traffic)
    proxy.trust([new])
    # kube-apiserver adds what it finds in its file to what was published, and takes nothing away.
    until(lambda: publish_anew(controlplane) == {pem(new)}, RELOADED_S, "the old CA is not published any more", 1.0)
    until(lambda: not any(is_front_proxy(server, theirs) for server in servers), FOLLOWED_S, "the old one is nobody")


def test_servers_that_are_replaced_one_by_one_cost_no_request(
    traffic: Traffic, adapter: Adapter, controlplane: ControlPlane
) -> None:
    before = {pod.name for pod in adapter.servers()}
    controlplane.kubectl("rollout", "restart", f"deployment/{NAME}", "-n", NAMESPACE)
    controlplane.kubectl("rollout", "status", f"deployment/{NAME}", "-n", NAMESPACE, "--timeout=300s")
    until(lambda: not before & {pod.name for pod in adapter.servers()}, 120, "the old servers are gone")


def pem(authority: Authority) -> bytes:
    return authority.path.read_bytes()


def published(plane: ControlPlane) -> set[bytes]:
    """The CAs of front proxies that kube-apiserver tells us of."""
    bundle = plane.api.get(SETTINGS)["data"][BUNDLE].encode()
    return {each.public_bytes(Encoding.PEM) for each in x509.load_pem_x509_certificates(bundle)}


def publish_anew(plane: ControlPlane) -> set[bytes]:
    """The same after the ConfigMap was removed; kube-apiserver makes it anew of what it knows."""
    plane.api.ask("DELETE", SETTINGS)
    return until(lambda: published(plane), RELOADED_S, "the ConfigMap is there again")


def is_front_proxy(server: Direct, certificate: tuple[Path, Path]) -> bool:
    """Whether who has this certificate is believed whom he speaks for."""
    who = {"X-Remote-User": "reader"}
    try:
        return server.get(SEGMENTS, certificate, who).status_code == 200
    except (httpx.HTTPError, ssl.SSLError):  # refused in the handshake
        return False
