"""The metrics API of our signals, put together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from adapter.serving.access.access import Everybody
from adapter.serving.api import custom, external
from adapter.serving.api.documents import Documents, Listed
from adapter.serving.api.metrics_api import Access, Account, MetricsApi, tell_nobody
from adapter.serving.api.probes import Probes
from adapter.serving.elsewhere.passthrough import Elsewhere
from adapter.serving.signals.external_values import ExternalSignals
from adapter.serving.signals.object_values import ObjectSignals
from adapter.serving.signals.pod_values import PodSignals
from adapter.serving.signals.pods import Pods
from adapter.serving.signals.reading import Readings
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a cluster adds. access: who may ask. pods: lists them for metrics of pods; without it there are none.
    elsewhere: by group, who has the metrics that are not ours. account: told of every answer."""

    access: Access = field(default_factory=Everybody)
    pods: Pods | None = None
    elsewhere: Mapping[str, Elsewhere] = field(default_factory=dict)
    account: Account = tell_nobody


def metrics_api(
    store: SnapshotStore, probes: Probes, telemetry: Telemetry, port: Callable[[], int], around: Surroundings
) -> MetricsApi:
    """The API over what the store holds. port: the one that is listened on."""
    readings = Readings(store, store.now_s)
    ours = ExternalSignals(readings)
    objects = ObjectSignals(readings, None if around.pods is None else PodSignals(readings, around.pods))

    def listed() -> Listed:
        other, others = around.elsewhere.get(external.GROUP), around.elsewhere.get(custom.GROUP)
        names = (*ours.names(), *(other.names() if other is not None else ()))
        return names, (*objects.metrics(), *(others.metrics() if others is not None else ()))

    documents = Documents(listed, probes, expositions={"/metrics": telemetry.exposition}, port=port)
    forward = {group: other.forward for group, other in around.elsewhere.items()}
    return MetricsApi(ours, objects, around.access, documents, forward, around.account)
