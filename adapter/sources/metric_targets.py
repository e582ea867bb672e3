"""The targets that an HPA has for metrics of the adapter: those that are wrong, and those that are unusual. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adapter.core.metrics import METRICS, PADDED, HpaTarget

Json = Mapping[str, Any]

# The only valid target of a size. With any other, the HPA sets another number of replicas. The adapter adopts that
# number as if a person had set it, and the HPA multiplies it again.
_SIZE_TARGET = {"type": "AverageValue", "averageValue": "1"}
# The type of target that a metric needs -> what the HPA does with the other type.
_OTHER_EFFECTS: Mapping[HpaTarget, str] = {
    "AverageValue": "with Value the HPA multiplies the replicas by {} / target at every sync",
    "Value": "with AverageValue the HPA sets {} / target replicas, however many run now",
}


def target_faults(sources: Iterable[Json], behavior: Json) -> Iterator[str]:
    """A sentence for each target of a size that moves it at every sync.

    sources: the external and object metrics of the adapter.
    """
    tolerances = [half["tolerance"] for half in behavior.values() if "tolerance" in half]
    for source in sources:
        metric = METRICS[source["metric"]["name"]]
        if metric.is_size and (target := source.get("target", _SIZE_TARGET)) != _SIZE_TARGET:
            yield (
                f'the target of {metric.name} must be AverageValue "1", got {_target_text(target)}: the HPA changes '
                "the replicas again at every sync; for headroom set the annotation "
                "backlog-adapter/rules.target_utilization_ratio or rules.min_spare_workers"
            )
        if metric.name == PADDED and tolerances:
            yield (
                f'{metric.name} is for the default tolerance, got "{tolerances[0]}": the HPA changes the '
                "replicas again at every sync; use required_workers where the HPA sets its tolerance"
            )


def target_hints(sources: Iterable[Json]) -> Iterator[str]:
    """A sentence for each target of another metric than a size that has an unusual type."""
    for metric, target in ((METRICS[source["metric"]["name"]], source["target"]) for source in sources):
        if metric.target is None:
            yield f"{metric.name} is for dashboards and alerts; scale on required_workers"
        elif not (metric.is_size or _has_type(target, metric.target)):
            effect = _OTHER_EFFECTS[metric.target].format(metric.name)
            yield f"the target of {metric.name} is usually {metric.target}, got {_target_text(target)}: {effect}"


def _has_type(target: Json, kind: str) -> bool:
    return target["type"] == kind and target.keys() == {"type", _value_field(kind)}


def _value_field(kind: str) -> str:
    """The field with the value of a target of this type."""
    return kind[0].lower() + kind[1:]


def _target_text(target: Json) -> str:
    kind, values = target["type"], {name: value for name, value in target.items() if name != "type"}
    own = _value_field(kind)
    if values.keys() == {own}:
        return f'{kind} "{values[own]}"'
    return f"type {kind} with {' and '.join(sorted(values)) or 'no value'}"
