"""HPAs that name our metrics and the workers of their scale targets, read from the API server once a tick."""

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import urllib3
from kubernetes import client, config

from adapter.config import KubernetesSource
from adapter.errors import SourceError
from adapter.sources import Row
from adapter.sources.autoscalers import Json, Scale, Target, autoscalers, rows, scale_of, scale_of_subresource

_HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
_APPS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "ReplicaSet": "replicasets"}
_PAGE = 500  # objects an answer; an HPA is about 2 KB, a Deployment 5
_MOST_LISTS = 20  # a list a namespace up to here, then one of the whole cluster
_LOG = logging.getLogger(__name__)

Get = Callable[[str, Mapping[str, str], float], Any]  # path, query, timeout in seconds -> JSON; raises _RefusedError


class _RefusedError(Exception):
    """The API server answered, but not with what was asked for."""

    def __init__(self, status: int, path: str, reason: str) -> None:
        self.status = status
        self.path = path
        super().__init__(f"{path}: {status} {reason}")


class KubernetesReader:
    """Reads one API server. It has no past: objects are told as they are now."""

    def __init__(
        self,
        name: str,
        settings: KubernetesSource,
        clock: Callable[[], float] = time.time,
        get: Get | None = None,
    ) -> None:
        self._name = name
        self._settings = settings
        self._clock = clock
        self._get = get
        self._ends_s = 0.0
        self._plurals: dict[tuple[str, str], str] = {}
        self._complained: set[str] = set()

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        """HPAs and scale targets now, as the tick end_s; nothing when that tick is older than one step."""
        if self._clock() - end_s >= step_s:
            return []
        self._ends_s = time.monotonic() + self._settings.deadline_s
        try:
            found = autoscalers(self._listed(_HPAS))
            scales = self._scales({autoscaler.target for autoscaler in found})
        except _RefusedError as refused:
            raise SourceError(self._name, _fixed(refused)) from refused
        except urllib3.exceptions.HTTPError as error:
            cause = getattr(error, "reason", None) or error
            limit = f"within {self._settings.deadline_s:g} s"
            raise SourceError(self._name, f"no answer from the API server {limit}: {cause}") from error
        self._complain(autoscaler.complaint for autoscaler in found)
        return rows(found, scales, end_s)

    def close(self) -> None:
        """Drop the connections."""
        self._get = None

    def _scales(self, targets: set[Target]) -> dict[Target, Scale | str]:
        apps = {target for target in targets if target.api_version == "apps/v1" and target.kind in _APPS}
        scales: dict[Target, Scale | str] = {target: f"its scale target {target} does not exist" for target in apps}
        for kind in sorted({target.kind for target in apps}):
            namespaces = sorted({target.namespace for target in apps if target.kind == kind})
            for item in self._workers(kind, namespaces):
                meta = item["metadata"]
                target = Target("apps/v1", kind, meta["namespace"], meta["name"])
                if target in scales:
                    scales[target] = scale_of(item)
        return scales | {target: self._scale(target) for target in targets - apps}

    def _workers(self, kind: str, namespaces: list[str]) -> Iterator[Json]:
        if len(namespaces) > _MOST_LISTS:
            yield from self._listed(f"/apis/apps/v1/{_APPS[kind]}")
            return
        for namespace in namespaces:
            yield from self._listed(f"/apis/apps/v1/namespaces/{namespace}/{_APPS[kind]}")

    def _scale(self, target: Target) -> Scale | str:
        """The scale subresource of one object of any kind; a refusal speaks of this object alone."""
        try:
            root = _root(target.api_version)
            plural = self._plural(target)
            path = f"{root}/namespaces/{target.namespace}/{plural}/{target.name}/scale"
            return scale_of_subresource(self._asked(path, {}))
        except _RefusedError as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return f"its scale target {target} ({target.api_version}) does not exist or cannot be scaled"
            return _fixed(refused)

    def _plural(self, target: Target) -> str:
        """The resource of a kind, as discovery tells it; it does not change while the API server runs."""
        key = (target.api_version, target.kind)
        if key not in self._plurals:
            path = _root(target.api_version)
            names = [kind["name"] for kind in self._asked(path, {})["resources"] if kind["kind"] == target.kind]
            plurals = [name for name in names if "/" not in name]
            if not plurals:
                raise _RefusedError(HTTPStatus.NOT_FOUND, path, f"no kind {target.kind}")
            self._plurals[key] = plurals[0]
        return self._plurals[key]

    def _listed(self, path: str) -> Iterator[Json]:
        query = {"limit": str(_PAGE)}
        while True:
            page = self._asked(path, query)
            yield from page["items"]
            if not (more := page["metadata"].get("continue")):
                return
            query = {"limit": str(_PAGE), "continue": more}

    def _asked(self, path: str, query: Mapping[str, str]) -> Any:
        if self._get is None:
            self._get = _opened(self._name, self._settings)
        return self._get(path, query, max(0.001, self._ends_s - time.monotonic()))

    def _complain(self, complaints: Iterable[str]) -> None:
        """Each complaint once, for as long as this reader lives."""
        for complaint in set(complaints) - self._complained - {""}:
            self._complained.add(complaint)
            _LOG.warning("%s", complaint)


def _opened(name: str, settings: KubernetesSource) -> Get:
    api = _api(name, settings)

    def get(path: str, query: Mapping[str, str], timeout_s: float) -> Any:
        # Plain JSON: the client's typed models cost ten times the time and are not needed for a few fields.
        asked = api.param_serialize(
            "GET",
            path,
            query_params=list(query.items()),
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
        )
        answer: Any = api.call_api(*asked, _request_timeout=timeout_s)
        body = answer.read()
        if answer.status != HTTPStatus.OK:
            raise _RefusedError(answer.status, path, answer.reason or "")
        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise _RefusedError(answer.status, path, f"but not JSON: {error}") from error

    return get


def _api(name: str, settings: KubernetesSource) -> client.ApiClient:
    """A client from the kubeconfig that is named, else from the pod's service account, else from the default file."""
    chosen = client.Configuration()
    load: Any = config  # the client has no hints for these
    try:
        if settings.kubeconfig is None and settings.context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            load.load_incluster_config(client_configuration=chosen)
        else:
            load.load_kube_config(
                settings.kubeconfig, settings.context, client_configuration=chosen, persist_config=False
            )
    except (config.ConfigException, load.kube_config.yaml.YAMLError, OSError) as error:
        raise SourceError(
            name, f"kubeconfig: {error}; set kubeconfig, or run in a pod with a service account"
        ) from error
    chosen.retries = 0  # the next tick is the retry
    return client.ApiClient(chosen)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _fixed(refused: _RefusedError) -> str:
    """A refusal with its fix."""
    if refused.status == HTTPStatus.UNAUTHORIZED:
        return f"{refused}: the credentials are not accepted; renew the kubeconfig or the service account's token"
    if refused.status == HTTPStatus.FORBIDDEN:
        return f"{refused}: allow get and list of it in the adapter's ClusterRole"
    return str(refused)
