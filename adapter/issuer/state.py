"""The objects that carry certificates: read from the cluster, and written one at a time."""

from collections.abc import Mapping
from dataclasses import dataclass

from adapter.apiserver.cluster_api import SOURCE
from adapter.errors import SourceError
from adapter.issuer.keys import KeyPair, bundle_pem, read_bundle, read_pair
from adapter.issuer.objects import (
    API_SERVICES_PATH,
    Api,
    Object,
    data_of,
    decode,
    encode,
    owner_of,
    read,
    read_if_any,
    write,
    write_data,
)
from adapter.issuer.steps import Bundle, CertificateState

CA, CA_KEY, LEAF, LEAF_KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPaths:
    """The addresses of the objects that carry certificates.

    own, peer: the API paths of the Secrets of these servers, with the CA's key, and of one other server. own_host,
    peer_host: the host names in their certificates. service: the Service of these servers, as namespace/name.
    api_services: names; the CA is written to those that lead to the Service.
    """

    own: str
    own_host: str
    peer: str
    peer_host: str
    service: str
    api_services: tuple[str, ...]


class CertificateObjects:
    """The objects as they were read. A write fails if the object has changed since."""

    def __init__(self, api: Api, paths: ObjectPaths) -> None:
        self._api = api
        self._paths = paths
        self._own, self._peer = read(api, paths.own), read(api, paths.peer)
        self._services = dict(_services(api, paths))
        self._data = data_of(self._own)
        self.authority = _pair(self._data, CA, CA_KEY)
        self.trusted = read_bundle(self._data.get(CA, b""))
        self.leaves = {paths.own_host: leaf_of(self._data), paths.peer_host: leaf_of(data_of(self._peer))}

    def published(self) -> Mapping[str, Bundle]:
        """The CAs that clients read, by the path of the object that has them."""
        services = {path: decode(item["spec"].get("caBundle")) for path, item in self._services.items()}
        pems = {self._paths.peer: data_of(self._peer).get(CA, b""), **services}
        return {path: read_bundle(pem) for path, pem in pems.items()}

    def state(self, published_for_s: float) -> CertificateState:
        """The state that decides the next step."""
        return CertificateState(self.authority, self.trusted, self.leaves, self.published(), published_for_s)

    def signer(self) -> KeyPair:
        """The CA that signs. Raises SourceError without one."""
        if self.authority is None:
            raise SourceError(SOURCE, f"{self._paths.own}: expected a CA and its key")
        return self.authority

    def write_authority(self, authority: KeyPair, trusted: Bundle) -> None:
        """Replace the CA and the CAs before it; the certificate of these servers stays."""
        self._write_own(authority, trusted, self.leaves[self._paths.own_host])

    def write_leaf(self, host: str, leaf: KeyPair) -> None:
        """Replace the certificate of a host."""
        if host == self._paths.peer_host:
            self._write_peer(leaf)
        else:
            self._write_own(self.signer(), self.trusted, leaf)

    def publish(self, path: str) -> None:
        """Write the trusted CAs to the object at a path."""
        if path == self._paths.peer:
            self._write_peer(self.leaves[self._paths.peer_host])
        else:
            fields = {"spec": {"caBundle": encode(bundle_pem(self.trusted))}}
            write(self._api, path, self._services[path], fields)

    def _write_own(self, authority: KeyPair, trusted: Bundle, leaf: KeyPair | None) -> None:
        data = {CA: bundle_pem(trusted), CA_KEY: authority.key_pem(), **_leaf_data(leaf)}
        write_data(self._api, self._paths.own, self._own, data)

    def _write_peer(self, leaf: KeyPair | None) -> None:
        data = {CA: bundle_pem(self.trusted), **_leaf_data(leaf)}
        write_data(self._api, self._paths.peer, self._peer, data)


def leaf_of(data: Mapping[str, bytes]) -> KeyPair | None:
    """The certificate of a server in its Secret; None if it is missing or unreadable."""
    return _pair(data, LEAF, LEAF_KEY)


def _pair(data: Mapping[str, bytes], certificate: str, key: str) -> KeyPair | None:
    return read_pair(data.get(certificate, b""), data.get(key, b""))


def _leaf_data(leaf: KeyPair | None) -> Mapping[str, bytes]:
    return {} if leaf is None else {LEAF: bundle_pem([leaf.certificate]), LEAF_KEY: leaf.key_pem()}


def _services(api: Api, paths: ObjectPaths) -> Mapping[str, Object]:
    """The APIServices that lead to the Service: one of another adapter is never written."""
    found = {}
    for name in paths.api_services:
        path = f"{API_SERVICES_PATH}/{name}"
        item = read_if_any(api, path)
        if item is not None and owner_of(path, item) == paths.service:
            found[path] = item
    return found
