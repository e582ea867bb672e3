"""Who owns the API services that HPAs go through: a cluster has one of each group and version."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric

from adapter.errors import SourceError
from adapter.serving.api import custom, external
from adapter.serving.outage import Outage

PREFIX = "backlog_adapter_api_slot"
EVERY_S = 60.0
PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
# Status and document of a path of the cluster's API; raises SourceError.
Get = Callable[[str], tuple[int, Any]]

_SLOTS = ((external.GROUP, external.VERSION), *((custom.GROUP, version) for version in custom.VERSIONS))

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Slot:
    """An API service. owner: namespace/name of its Service, "" while nobody has it. is_available: what the API server
    says, None where it says nothing. trouble: why it is not, in its words."""

    group: str
    version: str
    owner: str = ""
    is_available: bool | None = None
    trouble: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """Of the APIService."""
        return f"{self.version}.{self.group}"


class Slots:
    """Looks who owns them, from a thread of its own, and says so when that changes.

    get: asks the cluster's API. own: our Service as namespace/name, None where it is not known.
    """

    def __init__(self, get: Get, own: str | None, every_s: float = EVERY_S) -> None:
        self._get = get
        self._own = own
        self._every_s = every_s
        self._known: tuple[Slot, ...] = ()
        self._told: dict[str, Slot] = {}
        self._outage = Outage(_log, "who owns the metrics API is not known", "who owns the metrics API is known again")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="api-slots", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; a look in progress ends by its own deadline."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    @property
    def known(self) -> tuple[Slot, ...]:
        """As of the last look; empty when it failed."""
        return self._known

    def refresh(self) -> None:
        """Look once."""
        if not self._outage.attempt(self._look):
            self._known = ()

    def gauges(self) -> Iterator[Metric]:
        """For Telemetry.add."""
        info = GaugeMetricFamily(
            f"{PREFIX}_info", "who owns an API of metrics; always 1", labels=["group", "version", "owner", "ours"]
        )
        available = GaugeMetricFamily(
            f"{PREFIX}_available", "whether the API server reaches its owner", labels=["group", "version"]
        )
        for slot in self._known:
            ours = "unknown" if self._own is None else str(slot.owner == self._own).lower()
            info.add_metric([slot.group, slot.version, slot.owner, ours], 1)
            if slot.is_available is not None:
                available.add_metric([slot.group, slot.version], float(slot.is_available))
        yield info
        yield available

    def _look(self) -> None:
        self._known = tuple(_slot(self._get, *names) for names in _SLOTS)
        for slot in self._known:
            if self._told.get(slot.name) != slot:
                self._tell(slot)
                self._told[slot.name] = slot

    def _tell(self, slot: Slot) -> None:
        event, fix = _sentence(slot, self._own)
        # An adapter that is asked through one of them may well leave the others to others.
        is_asked = self._own is None or any(each.owner == self._own for each in self._known)
        is_cut_off = slot.owner == self._own and slot.is_available is False
        is_wrong = is_cut_off or (not is_asked and slot.group == external.GROUP)
        (_log.warning if is_wrong else _log.info)(event, api=slot.name, owner=slot.owner or None, **fix)

    def _follow(self) -> None:
        while not self._stop.is_set():
            self.refresh()
            self._stop.wait(self._every_s)


def _sentence(slot: Slot, own: str | None) -> tuple[str, dict[str, str]]:
    """What is told of a slot, and what to do about it."""
    if own is None:
        return "an API of metrics has this owner", {}
    value = f"apiService.{slot.group.partition('.')[0]}.create of the chart"
    if not slot.owner:
        return "nobody owns this API: HPAs get no such metrics", {"fix": f"to own it, set {value}"}
    if slot.owner != own:
        fix = (
            f"leave it there; or delete the APIService, set {value}, and name its owner in serving.pass_through, so "
            "that its metrics stay"
        )
        return "another adapter owns this API: HPAs do not reach this one through it", {"fix": fix}
    if slot.is_available is False:
        fix = "see the cause; often the CA bundle, or a firewall between the control plane and the pods"
        return "this adapter owns this API, and the API server does not reach it", {"cause": slot.trouble, "fix": fix}
    return "this adapter owns this API", {}


def _slot(get: Get, group: str, version: str) -> Slot:
    path = f"{PATH}/{version}.{group}"
    status, document = get(path)
    if status == 404:
        return Slot(group, version)
    if status != 200:
        hint = "; allow get of apiservices in apiregistration.k8s.io" if status in (401, 403) else ""
        raise SourceError("kubernetes", f"GET {path}: expected 200, got {status}{hint}")
    try:
        return _read(group, version, document)
    except (AttributeError, KeyError, TypeError) as error:
        raise SourceError("kubernetes", f"GET {path}: expected an APIService, got another document") from error


def _read(group: str, version: str, document: Any) -> Slot:
    service = document["spec"].get("service")
    owner = "kube-apiserver" if service is None else f"{service['namespace']}/{service['name']}"
    found = (each for each in document.get("status", {}).get("conditions") or () if each["type"] == "Available")
    condition: dict[str, Any] = next(found, {})
    is_available = {"True": True, "False": False}.get(condition.get("status", ""))
    trouble = ": ".join(str(condition[part]) for part in ("reason", "message") if condition.get(part))
    return Slot(group, version, owner, is_available, trouble)
