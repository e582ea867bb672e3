"""The cluster's authentication settings, read through its API and followed."""

import json
import threading
from collections.abc import Callable, Mapping

import structlog
import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import load_incluster_config, load_kube_config
from kubernetes.config.config_exception import ConfigException

from adapter.errors import SourceError
from adapter.serving.frontproxy import FrontProxy, Headers, Identity, front_proxy, identify

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
DEADLINE_S = 5.0
EVERY_S = 60.0
FIRST_RETRY_S = 1.0
LAST_RETRY_S = 30.0

_log = structlog.get_logger(__name__)


def read_settings(kubeconfig: str | None) -> Mapping[str, str]:
    """The data of the ConfigMap. kubeconfig: a path, or None for the pod's own service account.

    Raises SourceError when the cluster's API does not give it within the deadline.
    """
    # Not CoreV1Api: its models cost 20 MB of memory, and this is one GET.
    try:
        with ApiClient(_configuration(kubeconfig)) as client:
            request = client.param_serialize("GET", CONFIG_MAP, auth_settings=["BearerToken"])
            response = client.call_api(*request, _request_timeout=DEADLINE_S)
            body = response.read()
            client.rest_client.close()
    except (ApiException, ConfigException, urllib3.exceptions.HTTPError, OSError) as error:
        raise SourceError("kubernetes", f"reading {CONFIG_MAP}: {error}") from error
    return _data(response.status, body)


def _data(status: int, body: bytes) -> Mapping[str, str]:
    if status != 200:
        hint = "; bind Role extension-apiserver-authentication-reader in kube-system" if status in (401, 403) else ""
        raise SourceError("kubernetes", f"reading {CONFIG_MAP}: expected 200, got {status}{hint}")
    try:
        data = json.loads(body).get("data") or {}
    except (ValueError, AttributeError) as error:
        raise SourceError("kubernetes", f"reading {CONFIG_MAP}: expected a ConfigMap in JSON: {error}") from error
    return {str(key): str(value) for key, value in data.items()}


def _configuration(kubeconfig: str | None) -> Configuration:
    configuration = Configuration()
    configuration.retries = False  # the follower retries, with its own pauses
    if kubeconfig is None:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # theirs
    else:
        load_kube_config(  # type: ignore[no-untyped-call]  # theirs
            config_file=kubeconfig, client_configuration=configuration, persist_config=False
        )
    return configuration


class ClusterAuthenticator:
    """Says who asks. Until the settings were read everybody is anonymous: discovery answers, metrics are refused."""

    def __init__(self, read: Callable[[], Mapping[str, str]], every_s: float = EVERY_S) -> None:
        self._read = read
        self._every_s = every_s
        self._settings: FrontProxy | None = None
        self._failing = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="cluster-authentication", daemon=True)

    def identify(self, certificate: bytes | None, headers: Headers) -> Identity | None:
        """Who asks; None for a credential that is not accepted. certificate: the peer's, DER."""
        return identify(self._settings, certificate, headers)

    def ca_pem(self) -> str:
        """Every CA whose certificates a client may present; empty before the settings were read."""
        settings = self._settings
        return "" if settings is None else f"{settings.ca_pem}\n{settings.client_ca_pem}".strip()

    def start(self) -> None:
        """Read the settings now and follow them in the background."""
        self.refresh()
        self._thread.start()

    def stop(self) -> None:
        """Stop following; returns when the thread is done."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(DEADLINE_S + 1.0)

    def refresh(self) -> bool:
        """Read the settings once; what was read before stays when that fails. Returns whether it succeeded."""
        try:
            settings = front_proxy(self._read())
        except (SourceError, ValueError) as error:
            self._failed(str(error))
            return False
        if self._failing or self._settings is None:
            _log.info("the cluster's authentication settings were read", allowed_names=settings.allowed_names)
        self._failing = False
        self._settings = settings
        return True

    def _failed(self, cause: str) -> None:
        if self._failing:
            return
        self._failing = True
        effect = "metrics are refused until then" if self._settings is None else "the last settings stay in force"
        _log.error("the cluster's authentication settings cannot be read; retrying", cause=cause, effect=effect)

    def _follow(self) -> None:
        retry_s = FIRST_RETRY_S
        while not self._stop.wait(min(retry_s, self._every_s) if self._failing else self._every_s):
            retry_s = FIRST_RETRY_S if self.refresh() else min(retry_s * 2, LAST_RETRY_S)
