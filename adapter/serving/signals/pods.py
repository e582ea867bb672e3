"""The pods of a cluster, as far as a metric of pods needs to know them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from threading import Lock
from urllib.parse import quote, urlencode

import msgspec

from adapter.errors import SourceError
from adapter.serving.api.request import MustWait
from adapter.serving.api.selectors import EVERYTHING, Selector
from adapter.serving.api.status import Refusal, unavailable

# An HPA asks for its metrics one right after the other. A pod that is gone by then still counts for it: no longer.
KEPT_S = 3.0
MOST_KEPT = 500  # lists
MOST_KEPT_PODS = 20_000  # of all lists together, some 4 MB

# An HPA controller waits with one of its five workers.
DEADLINE_S = 2.0

# The metadata of pods is all that is read, a third of them or less; a server that cannot leave out the rest sends it.
ACCEPT = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

# GET of a path with its query at the cluster's API, of a media type, within seconds -> status and body. Raises
# SourceError.
ReadCluster = Callable[[str, str, float], tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that is neither finished nor being deleted. controller: name of what makes its like, "" without one."""

    name: str
    controller: str


@dataclass(frozen=True, slots=True)
class PodQuery:
    """Pods of a namespace: those that the selector picks, or the one that is named."""

    namespace: str
    selector: Selector = EVERYTHING
    name: str | None = None

    @property
    def path(self) -> str:
        """Where the API server lists them. resourceVersion 0: out of its memory, as its own controllers read."""
        fields = ["status.phase!=Failed", "status.phase!=Succeeded"]
        if self.name is not None:
            fields.append(f"metadata.name={_escaped(self.name)}")
        query = {"resourceVersion": "0", "fieldSelector": ",".join(fields)}
        if self.selector.requirements:
            query["labelSelector"] = str(self.selector)
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}/pods?{urlencode(query)}"

    def __str__(self) -> str:
        if self.name is not None:
            return f"of the name {self.name}"
        return f"with {self.selector}" if self.selector.requirements else "at all"


class Pods:
    """Lists of pods, each kept for a few seconds. clock: Unix seconds."""

    def __init__(self, read: ReadCluster, clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._kept: Mapping[str, tuple[float, Sequence[Pod]]] = {}
        self._lock = Lock()

    def listed(self, query: PodQuery, *, patient: bool) -> Sequence[Pod]:
        """The pods. Raises Refusal (503) when the cluster does not tell, MustWait when it has to be asked and patient
        is False."""
        now_s, path = self._clock(), query.path
        listed_at_s, pods = self._kept.get(path, (-inf, ()))
        if 0 <= now_s - listed_at_s < KEPT_S:
            return pods
        if not patient:
            raise MustWait
        pods = self._told(path)
        self._keep(path, now_s, pods)
        return pods

    def _keep(self, path: str, now_s: float, pods: Sequence[Pod]) -> None:
        with self._lock:  # who reads meanwhile has the one before
            fresh = {known: kept for known, kept in self._kept.items() if 0 <= now_s - kept[0] < KEPT_S}
            held = len(pods) + sum(len(each) for _, each in fresh.values())
            room = len(fresh) < MOST_KEPT and held <= MOST_KEPT_PODS
            self._kept = (fresh if room else {}) | {path: (now_s, pods)}

    def _told(self, path: str) -> Sequence[Pod]:
        try:
            status, body = self._read(path, ACCEPT, DEADLINE_S)
            if status == HTTPStatus.OK:
                return pods_of(body)
        except SourceError as error:
            raise Refusal(unavailable(f"the pods cannot be listed: {error}")) from error
        except (ValueError, RecursionError) as error:
            raise Refusal(
                unavailable(f"the pods cannot be listed: expected a list of pods in JSON: {error}")
            ) from error
        right = "this server's account needs the right to list pods, which the chart gives with apiService.custom.pods"
        why = f"; {right}" if status == HTTPStatus.FORBIDDEN else ""
        raise Refusal(unavailable(f"the pods cannot be listed: the cluster answers {status}{why}"))


class _Owner(msgspec.Struct):
    kind: str
    name: str
    controller: bool | None = None


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    labels: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    deletion_timestamp: str | None = None


class _Item(msgspec.Struct):
    metadata: _Meta


class _List(msgspec.Struct):
    items: list[_Item] | None = None


def pods_of(body: bytes) -> Sequence[Pod]:
    """The pods of a list in JSON, whole or of their metadata alone. Raises ValueError, RecursionError."""
    metas = [item.metadata for item in msgspec.json.decode(body, type=_List).items or ()]
    return [Pod(meta.name, _controller(meta)) for meta in metas if meta.deletion_timestamp is None]


def _controller(meta: _Meta) -> str:
    """A Deployment's pods belong to a ReplicaSet, whose name is the Deployment's and a hash that the pods know."""
    owner = next((owner for owner in meta.owner_references or () if owner.controller), None)
    if owner is None:
        return ""
    made_of = (meta.labels or {}).get("pod-template-hash", "")
    return owner.name.removesuffix(f"-{made_of}") if owner.kind == "ReplicaSet" and made_of else owner.name


def _escaped(text: str) -> str:
    """As a value of a field selector."""
    return re.sub(r"([\\,=])", r"\\\1", text)
