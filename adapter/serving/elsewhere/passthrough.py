"""Metrics that are not ours -> the answer of another adapter, whose troubles stay its own.

It is asked in the name of this pod's service account, after the caller's own access was reviewed here. To ask in the
caller's name would take the right to impersonate everybody.
"""

import string
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from adapter import __version__
from adapter.config import OtherAdapter
from adapter.serving.api.custom import ObjectMetric
from adapter.serving.api.negotiation import EXTERNAL, negotiate
from adapter.serving.api.request import MustWait, Request
from adapter.serving.api.status import Answer, no_such_resource, unavailable
from adapter.serving.elsewhere.neighbour import Neighbour
from adapter.serving.elsewhere.replies import Resource, UnansweredError, check, listed, message
from adapter.serving.outage import Outage
from adapter.serving.telemetry import Gauges

PREFIX = "backlog_adapter_pass_through"
AGENT = f"backlog-adapter/{__version__}"
VERSION = "v1beta1"  # whose list is read; the other versions of a group have the same metrics

_LONGEST_HEADER = 256

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What another adapter may cost us.

    deadline_s: of an answer; an HPA controller has five workers, and each waits so long. refresh_s: between two looks
    at its list, which counts for kept_s when they fail. most_in_flight: fewer than the threads that answer, and more
    than the workers of an HPA controller. most_failures: in a row, until it is left alone for rest_s. largest: bytes of
    a body, as of a list of 10 000 pods.
    """

    deadline_s: float = 3.0
    refresh_s: float = 30.0
    kept_s: float = 300.0
    most_in_flight: int = 6
    most_failures: int = 5
    rest_s: float = 5.0
    largest: int = 4 * 2**20


class Elsewhere:
    """Another adapter, for one group of metrics. clock: monotonic seconds."""

    def __init__(
        self,
        group: str,
        other: OtherAdapter,
        limits: Limits = Limits(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.group = group
        self._limits = limits
        self._clock = clock
        self._other = other
        self._neighbour = Neighbour(other, deadline_s=limits.deadline_s, largest=limits.largest)
        self._listing = _Listing((), (), 0.0)
        self._breaker = _Breaker(
            limits, clock, self._outage_of("another adapter fails its metrics; ours are not touched")
        )
        self._free = threading.BoundedSemaphore(limits.most_in_flight)
        self._outcomes: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._outage = self._outage_of("another adapter does not list its metrics; ours are not touched")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"listing {group}", daemon=True)

    def start(self) -> None:
        """Begin to follow its list."""
        if self._other.insecure_skip_tls_verify:
            effect = "whoever stands in between gets this pod's token and sets these metrics"
            about, fix = {"group": self.group, "server": self._neighbour.host}, "name its CA in ca_file"
            _log.warning("the certificate of another adapter is not verified", effect=effect, fix=fix, **about)
        self._thread.start()

    def stop(self) -> None:
        """Ask nothing more; returns when the threads are done."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2 * self._limits.deadline_s)
        self._neighbour.stop()

    def names(self) -> tuple[str, ...]:
        """The resources it lists, in its order; the same object until they change. Never waits."""
        listing = self._listing
        return listing.names if self._clock() < listing.ends_s else ()

    def metrics(self) -> tuple[ObjectMetric, ...]:
        """The same, of custom.metrics.k8s.io."""
        listing = self._listing
        return listing.metrics if self._clock() < listing.ends_s else ()

    def refresh(self) -> bool:
        """Read its list once. Returns whether it has one; logs when that changes."""
        return self._outage.attempt(self._list)

    def forward(self, request: Request) -> Answer:
        """Its answer, or a 503 that says why there is none. Raises MustWait where it may not be waited for."""
        if any(part in (".", "..") for part in request.path.split("/")):
            return no_such_resource()  # nobody else shall read another path in it than was reviewed
        if request.header("user-agent").startswith("backlog-adapter/"):
            return self._refused("loop", "it sends them back here; let pass_through name the adapter that has them")
        if self._breaker.is_open:
            return self._refused("resting", f"it failed {self._limits.most_failures} times in a row and is left alone")
        if not request.patient:
            raise MustWait
        return self._in_turn(request)

    def outcomes(self) -> dict[str, int]:
        """How many requests ended how: `answered`, or why not."""
        with self._lock:
            return dict(sorted(self._outcomes.items()))

    @property
    def is_up(self) -> bool:
        """Whether it listed its metrics when it was last asked to."""
        return bool(self._listing.ends_s) and not self._outage.lasts

    def _list(self) -> None:
        resources = listed(self._neighbour.ask(f"/apis/{self.group}/{VERSION}", {"User-Agent": AGENT}))
        names = tuple(resource.name for resource in resources)
        metrics = tuple(found for resource in resources if (found := _object_metric(resource)) is not None)
        known = self._listing
        if (names, metrics) == (known.names, known.metrics):
            names, metrics = known.names, known.metrics
        self._listing = _Listing(names, metrics, self._clock() + self._limits.kept_s)

    def _in_turn(self, request: Request) -> Answer:
        if not self._free.acquire(blocking=False):
            return self._refused("busy", f"{self._limits.most_in_flight} questions wait for it already")
        try:
            return self._asked(request)
        finally:
            self._free.release()

    def _asked(self, request: Request) -> Answer:
        # Of what the caller takes, one that can be judged here: what cannot would count against the other adapter.
        headers = {"Accept": negotiate(request.header("accept"), EXTERNAL).name, "User-Agent": _agent(request)}
        try:
            reply = self._neighbour.ask(quote(request.uri, safe=string.punctuation), headers)
            check(reply)
        except UnansweredError as error:
            if error.kind != "large":  # it works, and who asks for too much shall not have it left alone
                self._breaker.failed(str(error))
            return self._refused(error.kind, str(error))
        self._breaker.worked()
        if reply.code in (401, 403):  # of this pod's account: of the caller it would be no word
            cause = f"it does not let this adapter's service account in ({reply.code}): {message(reply)}"
            return self._refused("forbidden", f"{cause}; bind to it a role with get and list on {self.group}")
        self._count("answered")
        return Answer(reply.code, body=reply.body, headers={"Content-Type": reply.content_type})

    def _refused(self, outcome: str, cause: str) -> Answer:
        self._count(outcome)
        return unavailable(f"metrics that are not this adapter's are asked of {self._neighbour.host}: {cause}")

    def _outage_of(self, began: str) -> Outage:
        return Outage(_log, began, "it is over", group=self.group, server=self._neighbour.host)

    def _count(self, outcome: str) -> None:
        with self._lock:
            self._outcomes[outcome] += 1

    def _follow(self) -> None:
        while not self._stop.is_set():
            self.refresh()
            self._stop.wait(self._limits.refresh_s)


def gauges(all_of_them: Sequence[Elsewhere]) -> Gauges:
    """How other adapters fare, for Telemetry.add."""

    def families() -> Iterator[Metric]:
        up = GaugeMetricFamily(f"{PREFIX}_up", "whether another adapter lists its metrics", labels=["group"])
        count = CounterMetricFamily(f"{PREFIX}_requests", "requests for others' metrics", labels=["group", "outcome"])
        for each in all_of_them:
            up.add_metric([each.group], float(each.is_up))
            for outcome, number in each.outcomes().items():
                count.add_metric([each.group, outcome], number)
        yield up
        yield count

    return families


@dataclass(frozen=True, slots=True)
class _Listing:
    names: tuple[str, ...]
    metrics: tuple[ObjectMetric, ...]
    ends_s: float


class _Breaker:
    """Opens after failures in a row; each further one, tried when the rest is over, opens it again."""

    def __init__(self, limits: Limits, clock: Callable[[], float], outage: Outage) -> None:
        self._limits = limits
        self._clock = clock
        self._outage = outage
        self._failures = 0
        self._ends_s = 0.0
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        return self._clock() < self._ends_s

    def failed(self, cause: str) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= self._limits.most_failures:
                self._ends_s = self._clock() + self._limits.rest_s
                self._outage.failed(cause)

    def worked(self) -> None:
        with self._lock:
            self._failures, self._ends_s = 0, 0.0
            self._outage.worked()


def _object_metric(resource: Resource) -> ObjectMetric | None:
    of, slash, metric = resource.name.partition("/")
    return ObjectMetric(of, metric, resource.namespaced) if slash else None


def _sendable(text: str) -> str:
    """A header of the caller's, or nothing where a server could take offence: that would look like its fault."""
    return text if text.isascii() and text.isprintable() and len(text) <= _LONGEST_HEADER else ""


def _agent(request: Request) -> str:
    return f"{AGENT} {_sendable(request.header('user-agent'))}".strip()
