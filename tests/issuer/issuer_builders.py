"""A cluster's objects in memory, and replicas that issue in it, on a clock that tests advance."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from adapter.apiserver.certificates import has_signed
from adapter.apiserver.cluster_api import MANAGER
from adapter.errors import SourceError
from adapter.issuer.certificates import Certificates, Clocks, Files
from adapter.issuer.keys import KeyPair, read_bundle, read_pair
from adapter.issuer.lease import Lease, LeasePaths
from adapter.issuer.objects import API_SERVICES_PATH, decode, encode, secret_path
from adapter.issuer.reconcile_loop import ReconcileLoop
from adapter.issuer.state import ObjectPaths, leaf_of
from adapter.issuer.steps import Bundle, Lifetimes
from adapter.issuer.token import SharedToken

HOST, PEER_HOST = "adapter.monitoring.svc", "adapter-pipeline.monitoring.svc"
OWN, PEER, TOKEN = (
    secret_path("monitoring", name) for name in ("adapter-tls", "adapter-pipeline-tls", "adapter-token")
)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/monitoring/leases/adapter"
OURS, THEIRS, ABSENT = (
    "v1beta1.external.metrics.k8s.io",
    "v1beta1.custom.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
)
LIVES = Lifetimes(leaf_s=1200, authority_s=3600, publish_s=60)
PERIOD_S = 10.0
NOW_S = 1_800_000_000.0

PLACES = ObjectPaths(
    own=OWN,
    own_host=HOST,
    peer=PEER,
    peer_host=PEER_HOST,
    service="monitoring/adapter",
    api_services=(OURS, THEIRS, ABSENT),
)


def api_service(service: str) -> dict[str, Any]:
    namespace, _, name = service.partition("/")
    return {"spec": {"service": {"namespace": namespace, "name": name}}}


class Cluster:
    """Objects by path, as the chart makes them: a write of one names the version that it changes."""

    def __init__(self) -> None:
        self.now_s = NOW_S
        self.objects: dict[str, dict[str, Any]] = {}
        self.refused: dict[str, int] = {}  # path -> status of every write
        self.writes: list[str] = []
        self.is_away = False
        self.before_write: Callable[[], object] = lambda: None
        for path in (OWN, PEER, TOKEN):
            self.make(path, {})
        self.make(f"{API_SERVICES_PATH}/{OURS}", api_service("monitoring/adapter"))
        self.make(f"{API_SERVICES_PATH}/{THEIRS}", api_service("monitoring/prometheus-adapter"))

    def make(self, path: str, fields: Mapping[str, Any]) -> None:
        name = path.rpartition("/")[2]
        metadata = {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "1"}
        self.objects[path] = {"apiVersion": "v1", "kind": "Any", "metadata": metadata, **deepcopy(dict(fields))}

    def get(self, path: str) -> tuple[int, Any]:
        if self.is_away:
            raise SourceError("kubernetes", "refused")
        found = self.objects.get(path)
        return (404, {}) if found is None else (200, deepcopy(found))

    def apply(self, path: str, document: Any, manager: str = MANAGER) -> tuple[int, Any]:
        """Replaces data, whose only writer is the issuer, and merges spec. Creates what does not exist."""
        if self.is_away:
            raise SourceError("kubernetes", "refused")
        self.before_write()
        if path in self.refused:
            return self.refused[path], {"message": "refused"}
        if "resourceVersion" not in document["metadata"]:
            return self._create(path, document)
        found = self.objects[path]
        if document["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        self.writes.append(path)
        self.edit(path, {**document, "spec": {**found.get("spec", {}), **document.get("spec", {})}})
        return 200, deepcopy(found)

    def _create(self, path: str, document: Any) -> tuple[int, Any]:
        if path in self.objects:
            return 200, deepcopy(self.objects[path])
        self.make(path, {})
        self.objects[path]["metadata"].update(document["metadata"])
        return 201, deepcopy(self.objects[path])

    def edit(self, path: str, fields: Mapping[str, Any]) -> None:
        """A change by any writer."""
        found = self.objects[path]
        version = str(int(found["metadata"]["resourceVersion"]) + 1)
        found.update({key: deepcopy(value) for key, value in fields.items() if key in ("data", "spec")})
        found["metadata"]["resourceVersion"] = version

    def data(self, path: str) -> dict[str, bytes]:
        return {key: decode(text) for key, text in self.objects[path].get("data", {}).items()}

    def edit_data(self, path: str, **changes: bytes | None) -> None:
        """Replaces keys of a Secret, or removes them; `_` stands for a dot."""
        data = {**self.data(path), **{key.replace("_", "."): content for key, content in changes.items()}}
        self.edit(path, {"data": {key: encode(content) for key, content in data.items() if content is not None}})

    def bundle(self, name: str = OURS) -> Bundle:
        """The CAs in an APIService."""
        return read_bundle(decode(self.objects[f"{API_SERVICES_PATH}/{name}"]["spec"].get("caBundle")))


class Replica:
    """One server with its files."""

    def __init__(self, cluster: Cluster, folder: Path, identity: str, lifetimes: Lifetimes = LIVES) -> None:
        self.files = Files(folder / "tls.pem", folder / "ca.crt")
        self.token = folder / "token"
        clocks = Clocks(lambda: cluster.now_s, lambda: cluster.now_s)
        self.certificates = Certificates(cluster, PLACES, self.files, lifetimes, clocks)
        self.certificates.begin()
        self.lease = Lease(cluster, LeasePaths(LEASE, (OWN, TOKEN)), identity, 3 * PERIOD_S, clocks.timer_s)
        tasks = [self.certificates, SharedToken(cluster, TOKEN, self.token)]
        self.rounds = ReconcileLoop(self.lease, tasks, PERIOD_S)


def served(replica: Replica) -> KeyPair:
    pem = replica.files.certificate.read_bytes()
    found = read_pair(pem, pem)
    assert found is not None
    return found


def issued(cluster: Cluster, path: str = OWN) -> KeyPair:
    found = leaf_of(cluster.data(path))
    assert found is not None
    return found


def verifies(bundle: Bundle, leaf: KeyPair, now_s: float) -> bool:
    """Whether a client that trusts these CAs accepts the certificate."""
    valid = leaf.ends_s > now_s
    return valid and any(
        has_signed(ca, leaf.certificate) and ca.not_valid_after_utc.timestamp() > now_s for ca in bundle
    )


def pass_time(cluster: Cluster, seconds: float, *replicas: Replica) -> None:
    for _ in range(int(seconds / PERIOD_S)):
        cluster.now_s += PERIOD_S
        for each in replicas:
            each.rounds.run_once()
