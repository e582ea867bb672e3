"""Watch which Service owns each metrics API of the cluster."""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric

from adapter.apiserver.cluster_api import SOURCE
from adapter.errors import SourceError
from adapter.failure_logger import FailureLogger
from adapter.issuer.objects import API_SERVICES_PATH, owner_of

EVERY_S = 60.0
# Status and document of a path of the cluster's API; raises SourceError.
Get = Callable[[str], tuple[int, Any]]

_log = structlog.get_logger(__name__)


class ApiServices:
    """Reads the owner of each APIService once a minute, and logs another owner of those that are to be this Service's.

    names: of the APIServices. own: this Service as namespace/name, None if it is not known.
    expected: the names of those that are to lead to this Service.
    """

    def __init__(self, get: Get, names: Sequence[str], own: str | None, expected: Collection[str]) -> None:
        self._get = get
        self._names = names
        self._own = own
        self._expected = expected
        self._owners: dict[str, str] = {}
        self._last_owners: dict[str, str] = {}  # also through an outage, so that it does not repeat a warning
        self._failures = FailureLogger(_log, "cannot read the owners of the metrics APIs", "reading the owners again")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="api-services", daemon=True)

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; a request in progress ends by its own deadline."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def refresh(self) -> None:
        """Read once. Without an answer, no owner is known."""
        if not self._failures.attempt(self._read):
            self._owners = {}

    def gauges(self) -> Iterator[Metric]:
        """For Telemetry.add."""
        name, text = "backlog_adapter_api_service_info", "owner of an APIService; always 1"
        family = GaugeMetricFamily(name, text, labels=["api_service", "owner", "ours"])
        for service, owner in self._owners.items():
            ours = "unknown" if self._own is None else str(owner == self._own).lower()
            family.add_metric([service, owner, ours], 1)
        yield family

    def _follow(self) -> None:
        while not self._stop.is_set():
            self.refresh()
            self._stop.wait(EVERY_S)

    def _read(self) -> None:
        owners = {name: self._owner(name) for name in self._names}
        for name, owner in owners.items():
            known = (self._own, self._last_owners.get(name))
            if owner and self._own is not None and name in self._expected and owner not in known:
                _log.warning("another adapter owns this API: its metrics do not come from here", api=name, owner=owner)
        self._owners = self._last_owners = owners

    def _owner(self, name: str) -> str:
        """The Service as namespace/name; "" without one."""
        status, document = self._get(f"{API_SERVICES_PATH}/{name}")
        if status == 404:
            return ""
        if status != 200:
            hint = "; allow get of apiservices in apiregistration.k8s.io" if status in (401, 403) else ""
            raise SourceError(SOURCE, f"GET {API_SERVICES_PATH}/{name}: expected 200, got {status}{hint}")
        return owner_of(f"{API_SERVICES_PATH}/{name}", document)
