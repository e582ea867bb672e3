"""Check the HPAs in manifests against the configuration, without a cluster."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from adapter.config import Config
from adapter.config.document import documents
from adapter.config.faults import suggestion
from adapter.core.formatting import counted
from adapter.core.metrics import METRICS
from adapter.errors import ConfigError
from adapter.operations.hpa_manifest import Hpa, hpa_of
from adapter.sources.autoscalers import Autoscaler, autoscalers, conflicts

_KIND, _VERSION = "HorizontalPodAutoscaler", "autoscaling/v2"
_CPU_VERSION = "autoscaling/v1"  # scales by CPU alone
_MOST_NAMED = 5


def check(files: Iterable[Path], config: Config) -> str:
    """Return a sentence about the HPAs in the files that scale by the adapter. Raises ConfigError with every fault."""
    found: dict[str, Autoscaler] = {}
    targets: dict[tuple[str, ...], list[str]] = {}
    faults: list[str] = []
    for file in files:
        try:
            items = list(_hpas(documents(file)))
        except ConfigError as error:
            faults += error.faults
            continue
        for item in items:
            own, sentences = _read(item, config, targets)
            if own is not None and own.name in found:
                sentences.append("is in the files twice; name each file once, or remove a copy")
            found |= {} if own is None else {own.name: own}
            faults += [f"{file}: HPA {_name(item)}: {sentence}" for sentence in sentences]
    faults += [*dict.fromkeys(conflicts(found.values()).values()), *_shared_targets(targets, found)]
    if faults:
        raise ConfigError(faults)
    others = sorted({name for names in targets.values() for name in names} - found.keys())
    return _summary(found.values(), config, others)


def contents(config: Config) -> str:
    """What a configuration names, as the end of a sentence."""
    parts = {"source": config.sources, "workload": config.workloads, "fleet": config.fleets}
    counts = ", ".join(counted(len(each), name) for name, each in parts.items())
    is_idle = not config.workloads and not config.fleets
    return f"{counts}; name a workload or a fleet, otherwise nothing is scaled" if is_idle else counts


def _hpas(found: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The HPAs among documents, also those of a list as kubectl prints it."""
    for document in found:
        given = document if isinstance(document, Mapping) else {}
        items = given.get("items")
        for item in items if isinstance(items, list) else [given]:
            if isinstance(item, Mapping) and item.get("kind") == _KIND:
                yield item


def _name(item: Mapping[str, Any]) -> object:
    metadata = item.get("metadata")
    return (metadata.get("name") if isinstance(metadata, Mapping) else None) or "without a name"


def _read(
    item: Mapping[str, Any], config: Config, targets: dict[tuple[str, ...], list[str]]
) -> tuple[Autoscaler | None, list[str]]:
    """The HPA if it scales by the adapter, and its faults.

    targets: receives the name of the HPA, whatever its metrics, at its scale target.
    """
    version = item.get("apiVersion")
    if version != _VERSION:
        return None, [] if version == _CPU_VERSION else [f"expected apiVersion {_VERSION}, got {version}"]
    try:
        hpa = hpa_of(item)
    except ConfigError as error:
        return None, list(error.faults)
    namespace, target = hpa.metadata.namespace or _namespace(hpa, config), hpa.spec.scale_target_ref
    targets.setdefault((target.kind, namespace, target.name), []).append(f"{namespace}/{hpa.metadata.name}")
    faults = list(_metric_faults(hpa, config))
    if (hpa.spec.min_replicas or 0) > hpa.spec.max_replicas:
        faults.append(f"expected minReplicas <= maxReplicas = {hpa.spec.max_replicas}, got {hpa.spec.min_replicas}")
    found = autoscalers([hpa.as_json(namespace)])
    if found:
        return found[0], [*faults, *found[0].faults, *_unknown_workloads(found[0], config)]
    unselected = [source.metric.name for source in hpa.sources if source.metric.name in METRICS]
    faults += [
        f"{name} names no single workload; add selector: {{matchLabels: {{workload: NAME}}}}" for name in unselected
    ]
    return None, faults


def _shared_targets(targets: Mapping[tuple[str, ...], list[str]], found: Mapping[str, Autoscaler]) -> Iterator[str]:
    """Scale targets of several HPAs of which one scales by the adapter. conflicts() has those with several."""
    for (kind, namespace, name), owners in targets.items():
        if len(set(owners)) > 1 and sum(owner in found for owner in owners) == 1:
            both = f"HPAs {' and '.join(owners)} both scale {kind} {namespace}/{name}"
            yield f"{both}: Kubernetes then stops both; write the metrics of both into one"


def _namespace(hpa: Hpa, config: Config) -> str:
    """The namespace that kubectl probably adds: that of the only workload of its name, otherwise `default`."""
    named = _selected_names(hpa)
    spaces = {workload.namespace for workload in config.workloads if workload.name in named}
    return spaces.pop() if len(spaces) == 1 else "default"


def _selected_names(hpa: Hpa) -> set[str]:
    """The workloads that its selectors name, whatever the metric."""
    labels = (source.metric.selector.match_labels for source in hpa.sources if source.metric.selector)
    return {each["workload"] for each in labels if each and "workload" in each}


def _metric_faults(hpa: Hpa, config: Config) -> Iterator[str]:
    """Misspelt metrics of an HPA that names a workload. Any other HPA may use metrics of another adapter."""
    known = {workload.name for workload in config.workloads}
    for source in hpa.sources if _selected_names(hpa) & known else ():
        if source.metric.name not in METRICS and (hint := suggestion(source.metric.name, METRICS)):
            yield f"the adapter has no metric {source.metric.name}{hint}"


def _unknown_workloads(own: Autoscaler, config: Config) -> Iterator[str]:
    """Workloads that the file does not configure and that no fleet can find. A fleet of series may find any."""
    known = [workload.id for workload in config.workloads]
    spaces = {None if fleet.groups is None else fleet.namespace for fleet in config.fleets}
    for workload in own.workloads:
        if workload not in known and not spaces & {None, workload.partition("/")[0]}:
            yield f"{workload} is not configured{suggestion(workload, known)}"


def _summary(found: Iterable[Autoscaler], config: Config, others: list[str]) -> str:
    autoscalers_found = list(found)
    scaled = {workload for each in autoscalers_found for workload in each.workloads}
    known = {workload.id: None for workload in config.workloads}
    parts = {
        "without an HPA": [workload for workload in known if workload not in scaled],
        "not configured, so only a fleet can find it": sorted(scaled - known.keys()),
        "HPAs without a metric of the adapter": others,
    }
    lists = "".join(f"; {text}: {_listed(names)}" for text, names in parts.items() if names)
    return f"{counted(len(autoscalers_found), 'HPA')} without a fault for {counted(len(scaled), 'workload')}{lists}"


def _listed(names: list[str]) -> str:
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return ", ".join([*names[:_MOST_NAMED], *more])
