"""The cluster's authentication settings, followed while they change."""

import threading
from collections.abc import Callable, Mapping

import structlog

from adapter.errors import SourceError
from adapter.serving.access.cluster import DEADLINE_S, SOURCE, ClusterApi
from adapter.serving.access.frontproxy import FrontProxy, front_proxy
from adapter.serving.outage import Outage

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
# Asked for again and again rather than watched: it is 3 KB, and there is no stream that can stall unnoticed, expire
# (410) or deliver half an object. A new CA stands in the bundles long before its certificates are used, so ten seconds
# are soon enough; a certificate that is refused makes it at most one.
EVERY_S = 10.0
EARLIEST_S = 1.0

_log = structlog.get_logger(__name__)


def read_settings(api: ClusterApi) -> Mapping[str, str]:
    """The data of the ConfigMap. Raises SourceError when the cluster's API does not give it within the deadline."""
    status, document = api.get(CONFIG_MAP)
    if status != 200:
        hint = "; bind Role extension-apiserver-authentication-reader in kube-system" if status in (401, 403) else ""
        raise SourceError(SOURCE, f"reading {CONFIG_MAP}: expected 200, got {status}{hint}")
    data = document.get("data") or {} if isinstance(document, dict) else None
    if not isinstance(data, dict):
        raise SourceError(SOURCE, f"reading {CONFIG_MAP}: expected a ConfigMap in JSON, got {str(document)[:80]}")
    return {str(key): str(value) for key, value in data.items()}


class AuthenticationSettings:
    """How callers are recognised, None until it was read once, and the same object until it changes; what was read
    stays when it cannot be read again.

    read: gives the ConfigMap's data, or raises SourceError.
    """

    def __init__(self, read: Callable[[], Mapping[str, str]], every_s: float = EVERY_S) -> None:
        self._read = read
        self._every_s = every_s
        self.current: FrontProxy | None = None
        self._outage = Outage(
            _log,
            "the cluster's authentication settings cannot be read; retrying",
            "the cluster's authentication settings can be read again",
        )
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="cluster-authentication", daemon=True)

    def ca_pem(self) -> str:
        """Every CA whose certificates a client may present; empty before the settings were read."""
        settings = self.current
        return "" if settings is None else f"{settings.ca_pem}\n{settings.client_ca_pem}".strip()

    def start(self) -> None:
        """Read the settings now and follow them in the background."""
        self.refresh()
        self._thread.start()

    def stop(self) -> None:
        """Stop following; returns when the thread is done."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(DEADLINE_S + 1.0)

    def doubt(self) -> None:
        """A credential was refused that newer settings may accept: read them soon, never more than once a second."""
        self._wake.set()

    def refresh(self) -> bool:
        """Read the settings once. Returns whether it succeeded."""
        is_first = self.current is None
        effect = "metrics are refused until then" if is_first else "the last settings stay in force"
        return self._outage.attempt(self._take, is_grave=is_first, effect=effect)

    def _take(self) -> None:
        try:
            settings = front_proxy(self._read())
        except ValueError as error:
            raise SourceError(SOURCE, f"{CONFIG_MAP}: {error}") from error
        if settings != self.current:
            self.current = settings
            _log.info("the cluster's authentication settings were read", allowed_names=settings.allowed_names)

    def _follow(self) -> None:
        retry_s = EARLIEST_S
        while not self._stop.wait(min(EARLIEST_S, self._every_s)):
            self._wake.wait((retry_s if self._outage.lasts else self._every_s) - EARLIEST_S)
            self._wake.clear()
            if not self._stop.is_set():
                retry_s = EARLIEST_S if self.refresh() else min(retry_s * 2, self._every_s)
