"""The authentication settings of the cluster: read now, and again while they change."""

import threading
from collections.abc import Callable, Mapping

import structlog

from adapter.apiserver.cluster_api import DEADLINE_S, SOURCE, ClusterApi
from adapter.apiserver.front_proxy import FrontProxy, front_proxy
from adapter.errors import SourceError
from adapter.failure_logger import FailureLogger

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
# Polled, not watched: it has 3 KB, and a watch can stall unnoticed or expire (410). A new CA is in the bundles long
# before its certificates are used, so ten seconds are enough; after a rejected certificate it is at most one. Anybody
# can present such certificates, so rejected certificates cause at most one read in ten seconds.
PERIOD_S = 10.0
SHORTEST_PERIOD_S = 1.0
Wait = Callable[[threading.Event, float], bool]

_log = structlog.get_logger(__name__)


def read_settings(api: ClusterApi) -> Mapping[str, str]:
    """Read the data of the ConfigMap. Raises SourceError."""
    status, document = api.get(CONFIG_MAP)
    if status != 200:
        hint = "; bind Role extension-apiserver-authentication-reader in kube-system" if status in (401, 403) else ""
        raise SourceError(SOURCE, f"reading {CONFIG_MAP}: expected 200, got {status}{hint}")
    data = document.get("data") or {} if isinstance(document, dict) else None
    if not isinstance(data, dict):
        raise SourceError(SOURCE, f"reading {CONFIG_MAP}: expected a ConfigMap in JSON, got {str(document)[:80]}")
    return {str(key): str(value) for key, value in data.items()}


class AuthenticationSettings:
    """Holds the newest settings. If they cannot be read again, the last ones stay in force.

    current: None until the first read; the same object until the settings change. read: returns the data of the
    ConfigMap, or raises SourceError. wait: returns when the event is set, or after that many seconds.
    """

    def __init__(
        self, read: Callable[[], Mapping[str, str]], period_s: float = PERIOD_S, wait: Wait = threading.Event.wait
    ) -> None:
        self._read = read
        self._period_s = period_s
        self._wait = wait
        self.current: FrontProxy | None = None
        self._failures = FailureLogger(
            _log,
            "the authentication settings of the cluster cannot be read; retrying",
            "the authentication settings of the cluster can be read again",
        )
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="cluster-authentication", daemon=True)

    def ca_pem(self) -> str:
        """The CAs of client certificates, for the handshake; empty before the first read."""
        settings = self.current
        return "" if settings is None else f"{settings.ca_pem}\n{settings.client_ca_pem}".strip()

    def start(self) -> None:
        """Read the settings now, and then in the background."""
        self.refresh()
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; returns when the thread has ended."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(DEADLINE_S + 1.0)

    def refresh_soon(self) -> None:
        """Read the settings within a second, but at most once in `period_s`: newer ones may accept the credential."""
        self._wake.set()

    def refresh(self) -> bool:
        """Read the settings once. Returns whether that succeeded."""
        is_first = self.current is None
        effect = "metric requests fail until then" if is_first else "the last settings stay in force"
        return self._failures.attempt(self._read_once, is_grave=is_first, effect=effect)

    def _read_once(self) -> None:
        try:
            settings = front_proxy(self._read())
        except ValueError as error:
            raise SourceError(SOURCE, f"{CONFIG_MAP}: {error}") from error
        if not (settings.ca_pem or settings.client_ca_pem):
            # Somebody emptied it, or it is being restored: without a CA no HPA could read a metric.
            raise SourceError(SOURCE, f"{CONFIG_MAP}: expected the CA of client certificates, got none")
        if settings != self.current:
            self.current = settings
            _log.info("read the authentication settings of the cluster", allowed_names=settings.allowed_names)

    def _follow(self) -> None:
        retry_s, is_early = SHORTEST_PERIOD_S, False
        while True:
            period_s = retry_s if self._failures.is_failing else self._period_s
            least_s = period_s if is_early else min(SHORTEST_PERIOD_S, period_s)
            if self._wait(self._stop, least_s):
                return
            is_early = self._wait(self._wake, period_s - least_s)
            self._wake.clear()
            if not self._stop.is_set():
                retry_s = SHORTEST_PERIOD_S if self.refresh() else min(retry_s * 2, self._period_s)
