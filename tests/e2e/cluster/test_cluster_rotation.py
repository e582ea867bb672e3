"""Rotations under traffic: certificates, CAs and the servers themselves. No request fails."""

import base64
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from parts import frontproxy
from parts.adapter import NAME, NAMESPACE, SEGMENTS, Adapter
from parts.certificates import Authority
from parts.controlplane import ControlPlane, User
from parts.direct import DirectClient
from parts.kubelet import Kubelet
from parts.process import until
from parts.service import VERSIONS
from parts.traffic import Traffic, lossless_traffic

HOST = f"{NAME}.{NAMESPACE}.svc"
SETTINGS = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
BUNDLE = "requestheader-client-ca-file"
ENOUGH = 100  # requests between two steps
LOADED = 'Loaded a new cert/key pair" name="aggregator-proxy-cert'
RELOADED_S = 150  # kube-apiserver watches its files, and also reads them every minute
FOLLOWED_S = 60  # serve reads the ConfigMap every ten seconds


@pytest.fixture
def traffic(reader: User, clicks: str, controlplane: ControlPlane, adapter: Adapter) -> Iterator[Traffic]:
    """Fails the test if one of hundreds of requests fails or a container restarts."""
    api = controlplane.api_of(reader)
    until(lambda: api.raw(SEGMENTS).is_success, 60, "the reader is authorized")
    pods = [adapter.pipeline(), *adapter.servers()]
    before = [pod.restarts for pod in pods]
    with lossless_traffic(lambda: api.raw(SEGMENTS), ENOUGH) as traffic:
        yield traffic
    assert traffic.requests >= 3 * ENOUGH
    assert [pod.restarts for pod in pods] == before


def test_a_given_certificate_of_another_ca_takes_over_without_a_failed_request(
    traffic: Traffic, adapter: Adapter, controlplane: ControlPlane, kubelet: Kubelet, run: Path
) -> None:
    (run / "rotation").mkdir()
    authority = Authority(run / "rotation", "serving-ca")
    certificate, key = (path.read_bytes() for path in authority.issue(NAME, addresses=(HOST,)))
    old, new = adapter.secret(f"{NAME}-given")["ca.crt"], authority.path.read_bytes()

    trust(adapter, old + new)
    traffic.await_requests(ENOUGH)  # kube-apiserver does not report when it uses the new CA bundle
    write_secret(controlplane, {"ca.crt": old + new, "tls.crt": certificate, "tls.key": key})
    kubelet.refresh(NAMESPACE, NAME)
    expected = x509.load_pem_x509_certificate(certificate).serial_number
    servers = [adapter.direct(pod) for pod in adapter.servers()]
    until(lambda: {server.serial() for server in servers} == {expected}, 60, "both servers have the new certificate")
    traffic.await_requests(ENOUGH)
    trust(adapter, new)
    write_secret(controlplane, {"ca.crt": new})
    kubelet.refresh(NAMESPACE, NAME)
    traffic.await_requests(ENOUGH)

    assert all(adapter.is_available(version) for version in VERSIONS)


def trust(adapter: Adapter, cas: bytes) -> None:
    """Sets the CAs by which kube-apiserver verifies the servers."""
    adapter.upgrade("--set", f"tls.serve.caBundle={base64.b64encode(cas).decode()}")


def write_secret(plane: ControlPlane, files: dict[str, bytes]) -> None:
    patch = {"data": {name: base64.b64encode(content).decode() for name, content in files.items()}}
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}-given"
    plane.api.request("PATCH", path, patch, "application/merge-patch+json")


def test_a_front_proxy_of_another_ca_takes_over_without_a_failed_request_and_the_old_one_is_refused(
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
    until(
        lambda: controlplane.log("kube-apiserver").count(LOADED) > loaded,
        RELOADED_S,
        "kube-apiserver presents the new certificate",
    )
    traffic.await_requests(ENOUGH)
    proxy.trust([new])
    # kube-apiserver adds the CAs of its file to the ConfigMap, and never removes one.
    until(lambda: publish_anew(controlplane) == {pem(new)}, RELOADED_S, "the old CA is not published", 1.0)
    until(lambda: not any(is_front_proxy(server, theirs) for server in servers), FOLLOWED_S, "the old CA is refused")


def test_a_rolling_restart_of_the_servers_fails_no_request(
    traffic: Traffic, adapter: Adapter, controlplane: ControlPlane
) -> None:
    before = {pod.name for pod in adapter.servers()}
    controlplane.kubectl("rollout", "restart", f"deployment/{NAME}", "-n", NAMESPACE)
    controlplane.kubectl("rollout", "status", f"deployment/{NAME}", "-n", NAMESPACE, "--timeout=300s")
    until(lambda: not before & {pod.name for pod in adapter.servers()}, 120, "the old servers are gone")


def pem(authority: Authority) -> bytes:
    return authority.path.read_bytes()


def published(plane: ControlPlane) -> set[bytes]:
    """The front proxy CAs that kube-apiserver publishes."""
    bundle = plane.api.get(SETTINGS)["data"][BUNDLE].encode()
    return {each.public_bytes(Encoding.PEM) for each in x509.load_pem_x509_certificates(bundle)}


def publish_anew(plane: ControlPlane) -> set[bytes]:
    """The published CAs after kube-apiserver recreated the ConfigMap."""
    plane.api.request("DELETE", SETTINGS)
    return until(lambda: published(plane), RELOADED_S, "the ConfigMap is recreated")


def is_front_proxy(server: DirectClient, certificate: tuple[Path, Path]) -> bool:
    """Whether the server trusts identity headers from a client with this certificate."""
    identity = {"X-Remote-User": "reader"}
    try:
        return server.get(SEGMENTS, certificate, identity).status_code == 200
    except (httpx.HTTPError, ssl.SSLError):  # refused in the handshake
        return False
