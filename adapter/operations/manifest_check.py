"""Check the HPAs in manifests against the configuration, without a cluster."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from adapter.config import Config
from adapter.config.document import documents
from adapter.config.faults import suggestion
from adapter.core.formatting import counted
from adapter.core.metrics import METRICS
from adapter.errors import ConfigError
from adapter.operations.hpa_manifest import Hpa
from adapter.sources.autoscalers import Autoscaler, autoscalers, conflicts

_KIND, _VERSIONS = "HorizontalPodAutoscaler", ("autoscaling/v2", "autoscaling/v1")
_MOST_NAMED = 5


def check(files: Iterable[Path], config: Config) -> str:
    """Return a sentence about the HPAs in the files that scale by the adapter. Raises ConfigError with every fault."""
    found: dict[str, Autoscaler] = {}
    faults: list[str] = []
    for file in files:
        try:
            items = list(_hpas(documents(file)))
        except ConfigError as error:
            faults += error.faults
            continue
        for item in items:
            own, sentences = _read(item, config)
            if own is not None and own.name in found:
                sentences.append("is in the files twice; name each file once, or remove a copy")
            found |= {} if own is None else {own.name: own}
            faults += [f"{file}: HPA {_name(item)}: {sentence}" for sentence in sentences]
    faults += [*dict.fromkeys(conflicts(found.values()).values())]
    if faults:
        raise ConfigError(faults)
    return _summary(found.values(), config)


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
    return metadata.get("name") if isinstance(metadata, Mapping) else None


def _read(item: Mapping[str, Any], config: Config) -> tuple[Autoscaler | None, list[str]]:
    """The HPA if it scales by the adapter, and its faults. autoscaling/v1 scales by CPU alone."""
    current, v1 = _VERSIONS
    if item.get("apiVersion") != current:
        fault = f"expected apiVersion {current}, got {item.get('apiVersion')}"
        return None, [] if item.get("apiVersion") == v1 else [fault]
    try:
        hpa = msgspec.convert(item, Hpa)
    except msgspec.ValidationError as error:
        return None, [f"{error}"]
    found = autoscalers([hpa.as_json(_namespace(hpa, config))])
    if not found:
        return None, list(_metric_faults(hpa, config))
    (own,) = found
    return own, [*own.faults, *_unknown_workloads(own, config)]


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
    """Faults of an HPA that names no workload: a misspelt metric, or no selector. Any other is not the adapter's."""
    known = {workload.name for workload in config.workloads}
    for source in hpa.sources:
        name = source.metric.name
        if name in METRICS:
            yield f"{name} names no single workload; add selector: {{matchLabels: {{workload: NAME}}}}"
        elif _selected_names(hpa) & known and (hint := suggestion(name, METRICS)):
            yield f"the adapter has no metric {name}{hint}"


def _unknown_workloads(own: Autoscaler, config: Config) -> Iterator[str]:
    """Workloads that the file does not configure. Those of a fleet are known only when they are discovered."""
    known = [workload.id for workload in config.workloads]
    for workload in own.workloads if not config.fleets else ():
        if workload not in known:
            yield f"{workload} is not configured{suggestion(workload, known)}"


def _summary(found: Iterable[Autoscaler], config: Config) -> str:
    autoscalers_found = list(found)
    scaled = {workload for each in autoscalers_found for workload in each.workloads}
    known = {workload.id: None for workload in config.workloads}
    parts = {
        "without an HPA": [workload for workload in known if workload not in scaled],
        "not configured, so only a fleet can find it": sorted(scaled - known.keys()),
    }
    lists = "".join(f"; {text}: {_listed(names)}" for text, names in parts.items() if names)
    return f"{counted(len(autoscalers_found), 'HPA')} without a fault for {counted(len(scaled), 'workload')}{lists}"


def _listed(names: list[str]) -> str:
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return ", ".join([*names[:_MOST_NAMED], *more])
