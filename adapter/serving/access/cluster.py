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
from adapter.serving.outage import told

SOURCE = "kubernetes"  # what a SourceError of ours names
DEADLINE_S = 5.0
CONNECTIONS = 32  # kept open; more are opened when needed, and closed again
# Of an answer. Most have some kilobytes; the longest is the metadata of pods, 2 to 4.5 KB each: 1 900 or more.
LARGEST_BYTES = 8 * 2**20
JSON = "application/json"

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
        return _read(f"GET {path}", *self._answered("GET", path, None, deadline_s))

    def get_raw(self, path: str, accept: str, deadline_s: float = DEADLINE_S) -> tuple[int, bytes]:
        """Status and body, in one of the media types that `accept` names. Raises SourceError for no answer."""
        return self._answered("GET", path, None, deadline_s, accept)

    def post(self, path: str, body: object, deadline_s: float = DEADLINE_S) -> tuple[int, Any]:
        """Status and document of what a document that is sent is answered with. Raises SourceError as `get`."""
        return _read(f"POST {path}", *self._answered("POST", path, body, deadline_s))

    def close(self) -> None:
        """Drop the connections. A later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.rest_client.close()

    def _answered(
        self, method: str, path: str, body: object, deadline_s: float, accept: str = JSON
    ) -> tuple[int, bytes]:
        try:
            status, content = self._exchanged(method, path, body, deadline_s, accept)
        except _FAULTS as error:
            raise SourceError(SOURCE, f"{method} {path}: {error}") from error
        if status == 401:
            self.close()  # a credential that is refused is read anew, with the rest of the configuration
        return status, content

    def _exchanged(self, method: str, path: str, body: object, deadline_s: float, accept: str) -> tuple[int, bytes]:
        # Not its typed methods: their models cost 20 MB of memory, and this is three paths.
        client = self._connected()
        headers = {"Accept": accept, "Content-Type": JSON}
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


def _read(what: str, status: int, content: bytes) -> tuple[int, Any]:
    try:
        return status, msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        if status >= 400:
            return status, content.decode("utf-8", "replace")
        raise SourceError(SOURCE, f"{what}: expected JSON in an answer of {status}: {error}") from error


def _configuration(kubeconfig: str | None) -> Configuration:
    configuration = Configuration()
    configuration.retries = False  # who asks retries, with pauses and a deadline of their own
    configuration.connection_pool_maxsize = CONNECTIONS
    if kubeconfig is None:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # theirs
        return configuration
    try:
        load_kube_config(  # type: ignore[no-untyped-call]  # theirs
            config_file=kubeconfig, client_configuration=configuration, persist_config=False
        )
    except Exception as error:  # what is half written has its reader fail in any way
        # It repeats what it did not understand, perhaps the token.
        cause = told(error).partition("{")[0]
        fix = "write it to another file and rename that, so that nobody reads half of it"
        raise ConfigException(f"expected a kubeconfig in {kubeconfig}: {cause}; {fix}") from None
    return configuration
