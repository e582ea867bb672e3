"""The cluster's API: plain requests through the `kubernetes` client, JSON in and out."""

import threading
from typing import Any

import msgspec
import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import load_incluster_config, load_kube_config
from kubernetes.config.config_exception import ConfigException

from adapter.errors import SourceError

SOURCE = "kubernetes"  # what a SourceError of ours names
DEADLINE_S = 5.0
CONNECTIONS = 32  # kept open; more are opened when needed, and closed again
LARGEST_BYTES = 4 * 2**20  # of an answer; those asked for here have some kilobytes

_FAULTS = (ApiException, ConfigException, urllib3.exceptions.HTTPError, OSError, ValueError)


class ClusterApi:
    """One client that all threads share; its connections are used again.

    kubeconfig: a path, or None for the pod's own service account, whose token is read anew every minute.
    """

    def __init__(self, kubeconfig: str | None) -> None:
        self._kubeconfig = kubeconfig
        self._lock = threading.Lock()
        self._client: ApiClient | None = None

    def get(self, path: str, deadline_s: float = DEADLINE_S) -> tuple[int, Any]:
        """Status and document. An error's body that is no JSON comes as a string.

        Raises SourceError when there was no answer within the deadline, or none that can be read.
        """
        return self._call("GET", path, None, deadline_s)

    def post(self, path: str, body: object, deadline_s: float = DEADLINE_S) -> tuple[int, Any]:
        """The same, for a document that is sent."""
        return self._call("POST", path, body, deadline_s)

    def close(self) -> None:
        """Drop the connections. A later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.rest_client.close()

    def _call(self, method: str, path: str, body: object, deadline_s: float) -> tuple[int, Any]:
        try:
            status, content = self._exchanged(method, path, body, deadline_s)
        except _FAULTS as error:
            raise SourceError(SOURCE, f"{method} {path}: {error}") from error
        if status == 401:
            self.close()  # a credential that is refused is read anew, with the rest of the configuration
        try:
            return status, msgspec.json.decode(content)
        except (ValueError, RecursionError) as error:
            if status >= 400:
                return status, content.decode("utf-8", "replace")
            raise SourceError(SOURCE, f"{method} {path}: expected JSON in an answer of {status}: {error}") from error

    def _exchanged(self, method: str, path: str, body: object, deadline_s: float) -> tuple[int, bytes]:
        # Not its typed methods: their models cost 20 MB of memory, and this is three paths.
        client = self._connected()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        request = client.param_serialize(method, path, header_params=headers, body=body, auth_settings=["BearerToken"])
        answer = client.call_api(*request, _request_timeout=deadline_s)
        content: bytes = answer.response.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            answer.response.close()
            raise ValueError(f"expected at most {LARGEST_BYTES} bytes")
        return answer.status, content

    def _connected(self) -> ApiClient:
        with self._lock:
            if self._client is None:
                self._client = ApiClient(_configuration(self._kubeconfig))
            return self._client


def _configuration(kubeconfig: str | None) -> Configuration:
    configuration = Configuration()
    configuration.retries = False  # who asks retries, with his own pauses and his own deadline
    configuration.connection_pool_maxsize = CONNECTIONS
    if kubeconfig is None:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # theirs
    else:
        load_kube_config(  # type: ignore[no-untyped-call]  # theirs
            config_file=kubeconfig, client_configuration=configuration, persist_config=False
        )
    return configuration
