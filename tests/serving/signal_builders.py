"""A fleet, and its external and custom metrics."""

from collections.abc import Sequence

from serving_builders import AT_S, entry, snapshot

from adapter.apiserver.selectors import parse
from adapter.apiserver.status import StatusError
from adapter.serving.metric_api import MetricQuery, MetricValue, ObjectQuery, ObjectValue
from adapter.serving.metric_reader import MetricReader
from adapter.serving.providers import ExternalMetrics, ObjectMetrics
from adapter.serving.snapshots.snapshot import Entry
from adapter.serving.snapshots.store import SnapshotStore

FLEET = (
    entry("shop/orders", {"team": "red", "stage": "mine"}, required_workers=4.0, utilization_ratio=0.9),
    entry("shop/payments", {"team": "red"}, ("parse", "join"), utilization_ratio=0.25),
    entry("web/clicks", {"team": "blue"}),
)


def readings(*entries: Entry, age_s: float = 5.0) -> MetricReader:
    """A reader of these workloads, by default FLEET. age_s: of their decisions."""
    now_s = [AT_S]
    store = SnapshotStore(clock=lambda: now_s[0], monotonic=lambda: 0.0)
    store.put(snapshot(*(entries or FLEET)))
    now_s[0] += age_s
    return MetricReader(store)


def external(
    found: MetricReader,
    selector: str = "",
    metric: str = "required_workers",
    namespace: str = "shop",
) -> MetricValue | StatusError:
    """The value, or the error."""
    try:
        (value,) = ExternalMetrics(found).read(MetricQuery(namespace, metric, parse(selector)))
    except StatusError as error:
        return error
    return value


def objects(signals: ObjectMetrics, question: ObjectQuery) -> Sequence[ObjectValue] | StatusError:
    """The values, or the error."""
    try:
        return signals.read(question)
    except StatusError as error:
        return error


def message(given: object) -> str:
    """The message that an HPA shows."""
    assert isinstance(given, StatusError), given
    return given.message


def code(given: object) -> int:
    return given.code if isinstance(given, StatusError) else 200
