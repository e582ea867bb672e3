"""The cluster's API: plain requests through the `kubernetes` client, JSON in and out, and their retries."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import msgspec
import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException

from adapter.apiserver.answer import JSON
from adapter.errors import SourceError
from adapter.file_stamps import FileStamp, file_stamps
from adapter.http_body import read_body
from adapter.kubeconfig import api_client, read_kubeconfig, read_service_account

SOURCE = "kubernetes"  # what a SourceError of ours names
DEADLINE_S = 5.0
CONNECTIONS = 32  # in the pool; more are opened when needed, and closed after use
LARGEST_BYTES = 2**20  # of an answer; the authentication settings, the largest, have some 10 KB
APPLY = "application/apply-patch+yaml"  # JSON is YAML too
MANAGER = "backlog-adapter"  # the name of this program in the managedFields of an object

_FAULTS = (ApiException, ConfigException, urllib3.exceptions.HTTPError, OSError, ValueError)

# One attempt: called with the seconds that remain; returns status and document, or raises SourceError.
Attempt = Callable[[float], tuple[int, Any]]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """deadline_s: for all attempts and pauses together. Each pause doubles the previous one.

    Go's servers only have the deadline of the request, 60 s. While the HPA controller waits for an answer, one of its
    five workers is blocked.
    """

    deadline_s: float
    attempts: int = 5
    first_pause_s: float = 0.1


class ClusterApi:
    """One client with a connection pool for all threads.

    kubeconfig: a path, or None for the service account of the pod, whose token is read anew every minute.
    setting: what names the path, for errors.
    """

    def __init__(self, kubeconfig: str | None, setting: str = "serving.kubeconfig") -> None:
        self._kubeconfig, self._setting = kubeconfig, setting
        self._lock = threading.Lock()
        self._client: ApiClient | None = None
        self._ca_file: str | None = None
        self._ca_stamps: tuple[FileStamp, ...] = ()  # of the client's CA file

    def get(self, path: str, deadline_s: float = DEADLINE_S) -> tuple[int, Any]:
        """GET a path: status and document, or the text of an error that is no JSON.

        Raises SourceError if no readable answer comes within the deadline.
        """
        return _read(f"GET {path}", *self._request("GET", path, None, deadline_s))

    def post(self, path: str, body: object, deadline_s: float = DEADLINE_S) -> tuple[int, Any]:
        """POST a document: status and document of the answer. Raises SourceError as `get` does."""
        return _read(f"POST {path}", *self._request("POST", path, body, deadline_s))

    def apply(self, path: str, document: object, manager: str = MANAGER) -> tuple[int, Any]:
        """Server-side apply a document, also to fields of another manager: status and document of the answer.

        Raises SourceError as `get` does.
        """
        query = f"{path}?fieldManager={manager}&force=true"
        return _read(f"PATCH {path}", *self._request("PATCH", query, document, DEADLINE_S))

    def close(self) -> None:
        """Drop the connections. A later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.rest_client.close()

    def _request(self, method: str, path: str, body: object, deadline_s: float) -> tuple[int, bytes]:
        try:
            status, content = self._exchange(method, path, body, deadline_s)
        except _FAULTS as error:
            raise SourceError(SOURCE, f"{method} {path}: {error}") from error
        if status == 401:
            self.close()  # the next request reads the credential anew
        return status, content

    def _exchange(self, method: str, path: str, body: object, deadline_s: float) -> tuple[int, bytes]:
        ends_s = time.monotonic() + deadline_s
        # Not the typed methods: their models cost 20 MB of memory, and few paths are used.
        client = self._current_client()
        headers = {"Accept": JSON, "Content-Type": APPLY if method == "PATCH" else JSON}
        request = client.param_serialize(method, path, header_params=headers, body=body, auth_settings=["BearerToken"])
        answer = client.call_api(*request, _request_timeout=deadline_s)
        try:
            return answer.status, read_body(answer.response, BytesIO(), ends_s, LARGEST_BYTES).getvalue()
        finally:
            answer.response.close()  # after a complete answer, the connection is already back in the pool

    def _current_client(self) -> ApiClient:
        with self._lock:
            if self._client is None or file_stamps([self._ca_file]) != self._ca_stamps:
                if self._kubeconfig is None:
                    settings = read_service_account(SOURCE, self._setting)
                else:
                    settings = read_kubeconfig(SOURCE, self._setting, self._kubeconfig)
                settings.retries = False  # `retry` does, within a deadline
                settings.connection_pool_maxsize = CONNECTIONS
                self._ca_file = settings.ssl_ca_cert
                self._ca_stamps = file_stamps([self._ca_file])  # before it is read
                self._client = api_client(SOURCE, settings)
            return self._client


def retry(attempt: Attempt, policy: RetryPolicy, ends_s: float) -> Any:
    """The document of the first success.

    ends_s: when to give up, of the monotonic clock. Broken connections, 429 and 5xx are retried. Raises SourceError.
    """
    for number in range(policy.attempts):
        cause, is_transient = "", True
        try:
            status, document = attempt(max(ends_s - time.monotonic(), 0.001))
        except SourceError as error:
            cause = error.cause
        else:
            if 200 <= status < 300:
                return document
            cause, is_transient = _message(status, document), status == 429 or status >= 500
        pause_s = policy.first_pause_s * 2**number
        if not is_transient or number + 1 == policy.attempts or time.monotonic() + pause_s >= ends_s:
            raise SourceError(SOURCE, cause)
        time.sleep(pause_s)
    raise AssertionError("a policy has at least one attempt")


def _message(status: int, document: Any) -> str:
    """The message of a Status, otherwise the code and the beginning of the body."""
    if isinstance(document, dict) and document.get("status") == "Failure" and document.get("message"):
        return str(document["message"])
    body = document.strip()[:200] if isinstance(document, str) else ""
    return f"the cluster's API answered {status}: {body}".removesuffix(": ")


def _read(what: str, status: int, content: bytes) -> tuple[int, Any]:
    try:
        return status, msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        if status >= 400:
            return status, content.decode("utf-8", "replace")
        raise SourceError(SOURCE, f"{what}: expected JSON in an answer of {status}: {error}") from error
