"""The pods of a cluster, as far as a metric of pods needs to know them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from math import inf
from typing import Any
from urllib.parse import quote, urlencode

from adapter.errors import SourceError
from adapter.serving.api.request import MustWait
from adapter.serving.api.selectors import EVERYTHING, Selector
from adapter.serving.api.status import Refusal, unavailable

# An HPA asks for its metrics one right after the other. A pod that is gone by then still counts for it: no longer.
KEPT_S = 3.0
MOST_KEPT = 500

# An HPA controller waits with one of its five workers.
DEADLINE_S = 2.0

# GET of a path with its query at the cluster's API within a deadline in seconds -> status and JSON. Raises SourceError.
ReadCluster = Callable[[str, float], tuple[int, Any]]


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
        self._kept: dict[str, tuple[float, Sequence[Pod]]] = {}

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
        if len(self._kept) >= MOST_KEPT:
            self._kept = {}
        self._kept[path] = (now_s, pods)
        return pods

    def _told(self, path: str) -> Sequence[Pod]:
        try:
            status, listed = self._read(path, DEADLINE_S)
        except SourceError as error:
            raise Refusal(unavailable(f"the pods cannot be listed: {error}")) from error
        if status == HTTPStatus.OK:
            return pods_of(listed)
        right = "this server's account needs the right to list pods, which the chart gives with apiService.custom.pods"
        why = f"; {right}" if status == HTTPStatus.FORBIDDEN else ""
        raise Refusal(unavailable(f"the pods cannot be listed: the cluster answers {status}{why}"))


def pods_of(listed: Mapping[str, Any]) -> Sequence[Pod]:
    """The pods of a PodList as the API server writes it."""
    metas = [item["metadata"] for item in listed.get("items") or ()]
    return [Pod(meta["name"], _controller(meta)) for meta in metas if "deletionTimestamp" not in meta]


def _controller(meta: Mapping[str, Any]) -> str:
    """A Deployment's pods belong to a ReplicaSet, whose name is the Deployment's and a hash that the pods know."""
    owner = next((owner for owner in meta.get("ownerReferences", ()) if owner.get("controller")), None)
    if owner is None:
        return ""
    name: str = owner["name"]
    made_of = meta.get("labels", {}).get("pod-template-hash", "")
    return name.removesuffix(f"-{made_of}") if owner["kind"] == "ReplicaSet" and made_of else name


def _escaped(text: str) -> str:
    """As a value of a field selector."""
    return re.sub(r"([\\,=])", r"\\\1", text)
