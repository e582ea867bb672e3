"""Sentences about an HPA that a release of the chart with these values cannot serve."""

from collections.abc import Collection, Iterator

from adapter.config import ChartValues
from adapter.core.metrics import OBJECT_KINDS
from adapter.sources.autoscalers import Autoscaler, Json

_APIS = {"external": "External", "custom": "Object"}  # API of metrics -> the type of its metrics in an HPA
_RESOURCES = {kind: resource for resource, (kind, _) in OBJECT_KINDS.items()}


def release_hints(own: Autoscaler, metrics: Collection[Json], values: ChartValues | None) -> Iterator[str]:
    """All sentences, without values none. metrics: those of the HPA that are the adapter's."""
    if values is None or not own.workloads:
        return
    used = {"custom" if "describedObject" in source else "external" for source in metrics}
    for api in (api for api in _APIS if api in used and not values.serves(api)):
        other = next((f", or make the metric {kind}" for name, kind in _APIS.items() if values.serves(name)), "")
        text = f"a metric of type {_APIS[api]} needs apiService.{api}.create: true in the values of the chart"
        yield f"{text}; set it{other}"
    group, _, _ = own.target.api_version.rpartition("/")
    if group and not values.may_scale(group, own.target.kind):
        text = f"the pipeline may not read the replicas of {own.target}"
        yield f"{text}; add {group}/{_resource(own.target.kind)} to rbac.extraScaleTargets of the values"


def _resource(kind: str) -> str:
    """The resource of a kind; of an unknown one, its usual name."""
    return _RESOURCES[kind].partition(".")[0] if kind in _RESOURCES else f"{kind.lower()}s"
