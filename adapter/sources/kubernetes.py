"""The HPAs that use the adapter's metrics, and the replicas of their scale targets, from the API server."""

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from io import BytesIO
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import urllib3
from kubernetes import client, config

from adapter.config import KubernetesSource
from adapter.errors import SourceError
from adapter.file_stamps import file_stamps
from adapter.http_body import BodyError, LargeBodyError, read_body
from adapter.kubeconfig import api_client, read_kubeconfig, read_service_account
from adapter.sources.autoscalers import (
    Autoscaler,
    Scale,
    ScaleTarget,
    SubresourceScale,
    add_workers,
    autoscalers,
    scale_of,
)
from adapter.sources.sample_table import SampleTable

_HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
_APPS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "ReplicaSet": "replicasets"}
_CA_FILE = config.incluster_config.SERVICE_CERT_FILENAME
_PAGE = 500  # objects an answer, a tenth where they are too large; an HPA is about 2 KB, a Deployment 5
_MOST_LISTS = 20  # namespaces to list one by one; for more, one list of the whole cluster
_CONNECTIONS = 8  # scale subresources are read one by one: 700 at 8 ms each would take longer than the deadline
_T = TypeVar("_T")
_log = logging.getLogger(__name__)

Get = Callable[[str, Mapping[str, str], float], Any]  # path, query, timeout in seconds -> JSON. Raises RefusedError


class RefusedError(Exception):
    """The API server refused a request, or its answer is not JSON."""

    def __init__(self, status: int, path: str, reason: str) -> None:
        self.status = status
        self.path = path
        super().__init__(f"{path}: {status} {reason}")


class _LargeAnswerError(RefusedError):
    """The answer is larger than the reader accepts."""


class _Continue(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct, frozen=True):
    """A page of a list of objects."""

    items: list[dict[str, Any]]
    metadata: _Continue


class _Kind(msgspec.Struct, frozen=True):
    name: str  # of the resource, "pods", or of its subresource, "pods/log"
    kind: str


class _Kinds(msgspec.Struct, frozen=True):
    """The kinds of an API group."""

    resources: list[_Kind]


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    preferred_version: dict[str, str] = {}


class KubernetesReader:
    """Reads the current objects of one API server, which stores no past objects."""

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
        self._stamps = file_stamps((settings.kubeconfig, _CA_FILE))
        self._deadline_at_s = 0.0
        self._paths: dict[tuple[str, str], str] = {}  # by API version and kind
        self._targets_with_replicas: set[ScaleTarget] = set()  # their scale subresource has shown existing replicas
        self._logged_faults: set[str] = set()

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        """The current HPAs and scale targets as the tick end_s; empty if that tick is older than one step."""
        table = SampleTable()
        if self._clock() - end_s < step_s:
            found, scales = self._read()
            self._log_faults(autoscaler.fault for autoscaler in found)
            add_workers(table, end_s, found, scales)
        return table.finish()

    def close(self) -> None:
        """Drop the connections."""
        self._get = None

    def _close_after_rotation(self) -> None:
        """Close if the kubeconfig or the CA has changed. The client reads only a service account's token again."""
        stamps = file_stamps((self._settings.kubeconfig, _CA_FILE))
        if stamps != self._stamps:
            self.close()
            self._stamps = stamps

    def _read(self) -> tuple[list[Autoscaler], dict[ScaleTarget, Scale | str]]:
        self._close_after_rotation()
        self._deadline_at_s = time.monotonic() + self._settings.deadline_s
        try:
            found = autoscalers(self._list(_HPAS))
            return found, self._scales({autoscaler.target for autoscaler in found})
        except RefusedError as refused:
            if refused.status == HTTPStatus.UNAUTHORIZED:
                self.close()  # the next tick reads the files of the kubeconfig, or runs its plugin, again
            raise SourceError(self._name, _message(refused)) from refused
        except urllib3.exceptions.HTTPError as error:
            raise SourceError(self._name, self._no_answer(error)) from error

    def _no_answer(self, error: urllib3.exceptions.HTTPError | str) -> str:
        cause = getattr(error, "reason", None) or error
        return f"no answer from the API server within {self._settings.deadline_s:g} s: {cause}"

    def _scales(self, targets: set[ScaleTarget]) -> dict[ScaleTarget, Scale | str]:
        apps = {target for target in targets if target.api_version == "apps/v1" and target.kind in _APPS}
        scales: dict[ScaleTarget, Scale | str] = {each: f"its scale target {each} does not exist" for each in apps}
        for kind in sorted({target.kind for target in apps}):
            namespaces = sorted({target.namespace for target in apps if target.kind == kind})
            for item in self._workers(kind, namespaces):
                meta = item["metadata"]
                target = ScaleTarget("apps/v1", kind, meta["namespace"], meta["name"])
                if target in scales:
                    scales[target] = scale_of(item)
        self._targets_with_replicas &= targets
        others = list(targets - apps)
        kinds = {target.versioned_kind for target in others}
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            paths = {kind: pool.submit(self._path, *kind) for kind in kinds}
            found = pool.map(lambda target: self._scale(target, paths[target.versioned_kind]), others)
            return scales | dict(zip(others, found, strict=True))

    def _workers(self, kind: str, namespaces: list[str]) -> Iterator[Mapping[str, Any]]:
        if len(namespaces) > _MOST_LISTS:
            yield from self._list(f"/apis/apps/v1/{_APPS[kind]}")
            return
        for namespace in namespaces:
            yield from self._list(f"/apis/apps/v1/namespaces/{namespace}/{_APPS[kind]}")

    def _scale(self, target: ScaleTarget, path: Future[str]) -> Scale | str:
        """The scale subresource of one object of any kind. No answer or a refusal is the fault of this object alone."""
        if time.monotonic() >= self._deadline_at_s:
            return self._no_answer(f"the requests before that of {target} took too long")
        try:
            of_object = f"{path.result().format(namespace=target.namespace)}/{target.name}/scale"
            return self._with_known_workers(target, self._request(SubresourceScale, of_object).scale)
        except RefusedError as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                self._paths.pop(target.versioned_kind, None)  # another version may be the preferred one
                return f"its scale target {target} ({target.api_version}) does not exist or cannot be scaled"
            return target.fault or _message(refused)
        except urllib3.exceptions.HTTPError as error:
            return f"its scale target {target}: {self._no_answer(error)}"

    def _with_known_workers(self, target: ScaleTarget, scale: Scale) -> Scale:
        """The scale without its workers until the target has reported some.

        Kubernetes writes 0 where the object has no status yet, or where its controller never writes one. Such a target
        would wait for its replicas forever. Once this reader has seen replicas, a 0 means that the job is down, and
        its size is held. After a restart of the reader, the workers of such a job are unknown.
        """
        if scale.workers:
            self._targets_with_replicas.add(target)
        return scale if target in self._targets_with_replicas else Scale(scale.spec_workers)

    def _path(self, api_version: str, kind: str) -> str:
        """The path of the objects of a kind, with `{namespace}`; cached until an object is missing."""
        if (api_version, kind) not in self._paths:
            self._paths[api_version, kind] = self._discover(api_version, kind)
        return self._paths[api_version, kind]

    def _discover(self, api_version: str, kind: str) -> str:
        """In the version that the group prefers, as the HPA controller does: that of an HPA may no longer be served."""
        for version in dict.fromkeys((self._preferred_version(api_version), api_version)):
            for each in self._request(_Kinds, _root(version)).resources:
                if each.kind == kind and "/" not in each.name:
                    return f"{_root(version)}/namespaces/{{namespace}}/{each.name}"
        raise RefusedError(HTTPStatus.NOT_FOUND, _root(api_version), f"no kind {kind}")

    def _preferred_version(self, api_version: str) -> str:
        group, slash, _ = api_version.partition("/")
        if not slash:
            return api_version
        return self._request(_Group, f"/apis/{group}").preferred_version.get("groupVersion", api_version)

    def _list(self, path: str) -> Iterator[Mapping[str, Any]]:
        limit, start = _PAGE, dict[str, str]()
        while True:
            try:
                page = self._request(_Page, path, {"limit": str(limit), **start})
            except _LargeAnswerError:
                if limit == 1:
                    raise
                limit = max(1, limit // 10)  # annotations alone may take 256 KiB an object
                continue
            yield from page.items
            if not page.metadata.continue_:
                return
            start = {"continue": page.metadata.continue_}

    def _request(self, form: type[_T], path: str, query: Mapping[str, str] = {}) -> _T:
        if self._get is None:
            self._get = _open_client(self._name, self._settings)
        answer = self._get(path, query, max(0.001, self._deadline_at_s - time.monotonic()))
        try:
            return msgspec.convert(answer, type=form)
        except msgspec.ValidationError as error:
            raise RefusedError(HTTPStatus.OK, path, f"not an answer of the Kubernetes API: {error}") from error

    def _log_faults(self, faults: Iterable[str]) -> None:
        """Log each fault when it begins."""
        present = set(faults) - {""}
        for fault in present - self._logged_faults:
            _log.warning("%s", fault)
        self._logged_faults = present


def _open_client(name: str, settings: KubernetesSource) -> Get:
    api = _api(name, settings)

    def get(path: str, query: Mapping[str, str], timeout_s: float) -> Any:
        # Plain JSON: the typed models of the client take ten times as long, for a few fields.
        request = api.param_serialize(
            "GET",
            path,
            query_params=list(query.items()),
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
        )
        deadline_at_s = time.monotonic() + timeout_s
        wrapped: Any = api.call_api(*request, _request_timeout=timeout_s)
        answer: urllib3.HTTPResponse = wrapped.response
        try:
            if answer.status != HTTPStatus.OK:
                raise RefusedError(answer.status, path, answer.reason or "")
            return msgspec.json.decode(read_body(answer, BytesIO(), deadline_at_s).getbuffer())
        except BodyError as error:
            refused = _LargeAnswerError if isinstance(error, LargeBodyError) else RefusedError
            raise refused(answer.status, path, str(error)) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedError(answer.status, path, f"the answer is not JSON: {error}") from error
        finally:
            answer.close()  # a connection whose answer was read to its end is already back in the pool

    return get


def _api(name: str, settings: KubernetesSource) -> client.ApiClient:
    """A client from the configured kubeconfig, else from the pod's service account, else from the default file."""
    is_in_pod = settings.kubeconfig is None and settings.context is None and "KUBERNETES_SERVICE_HOST" in os.environ
    setting = f"sources.{name}.kubeconfig"
    if is_in_pod:
        chosen = read_service_account(name, setting)
    else:
        chosen = read_kubeconfig(name, setting, settings.kubeconfig, settings.context)
    chosen.connection_pool_maxsize = _CONNECTIONS
    chosen.retries = 0  # the next tick is the retry
    return api_client(name, chosen)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _message(refused: RefusedError) -> str:
    """The message of a refusal, with its fix."""
    if refused.status == HTTPStatus.UNAUTHORIZED:
        return f"{refused}: the credentials are not accepted; renew the kubeconfig or the token of the service account"
    if refused.status == HTTPStatus.FORBIDDEN:
        of_scale = "allow get on it: add GROUP/RESOURCE to rbac.extraScaleTargets of the chart"
        of_list, of_kinds = "allow list on it in the adapter's ClusterRole", "grant system:discovery to the adapter"
        is_list = refused.path.startswith((_HPAS, "/apis/apps/"))
        return f"{refused}: {of_scale if refused.path.endswith('/scale') else of_list if is_list else of_kinds}"
    return str(refused)
