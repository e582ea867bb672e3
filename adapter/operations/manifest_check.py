"""Check the HPAs in manifests against the configuration, without a cluster, as the pipeline would in a cluster."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from adapter.config import Config
from adapter.config.document import documents
from adapter.config.faults import suggestion
from adapter.core.formatting import counted
from adapter.core.metrics import METRICS
from adapter.errors import ConfigError
from adapter.sources.autoscalers import Autoscaler, autoscalers, conflicts, metric_names

_KIND, _VERSION = "HorizontalPodAutoscaler", "autoscaling/v2"
_ONE = ("1", "1.0", "1000m")  # the API server writes each of them as "1"
_MOST_NAMED = 5

Item = Mapping[str, Any]


def check(files: Iterable[Path], config: Config) -> str:
    """Return a sentence about the HPAs in the files. Raises ConfigError with every fault."""
    found: list[Autoscaler] = []
    faults: list[str] = []
    items = [(file, item) for file in files for item in _hpas(file)]
    for file, item in items:
        try:
            whole = _with_namespace(item, config)
            found += autoscalers([whole])
            faults += [f"{file}: HPA {whole['metadata']['name']}: {fault}" for fault in _metric_faults(whole)]
        except KeyError as error:
            faults.append(f"{file}: expected an HPA with the field {error.args[0]}")
        except (AttributeError, TypeError):
            faults.append(f"{file}: expected HPAs of {_VERSION}, got a field of another type")
    faults += [own.fault for own in found if own.fault]
    faults += [*conflicts(found).values(), *_unknown_workloads(found, config)]
    if faults:
        raise ConfigError(faults)
    return _summary(found, config)


def contents(config: Config) -> str:
    """What a configuration names, as the end of a sentence."""
    parts = {"source": config.sources, "workload": config.workloads, "fleet": config.fleets}
    counts = ", ".join(counted(len(each), name) for name, each in parts.items())
    is_idle = not config.workloads and not config.fleets
    return f"{counts}; name a workload or a fleet, otherwise nothing is scaled" if is_idle else counts


def _hpas(file: Path) -> Iterator[Item]:
    """The HPAs of a file, also those of a list as kubectl prints it. Raises ConfigError."""
    for document in documents(file):
        given = document if isinstance(document, Mapping) else {}
        for item in given.get("items") or [given]:
            if isinstance(item, Mapping) and item.get("kind") == _KIND:
                if item.get("apiVersion") != _VERSION:
                    raise ConfigError([f"{file}: expected an HPA of {_VERSION}, got {item.get('apiVersion')}"])
                yield _canonical(item)


def _canonical(value: Any) -> Any:
    """Quantities and annotations as the API server writes them: as text, and 1000m as 1."""
    if isinstance(value, Mapping):
        return {name: _quantity(each) if name == "averageValue" else _canonical(each) for name, each in value.items()}
    return [_canonical(each) for each in value] if isinstance(value, list) else value


def _quantity(value: object) -> str:
    return "1" if str(value) in _ONE else str(value)


def _with_namespace(item: Item, config: Config) -> Item:
    """An HPA without a namespace, which kubectl adds: that of the only workload with one of its names, or `default`."""
    metadata = {"namespace": "default", **item.get("metadata", {})}
    if "namespace" not in item.get("metadata", {}):
        named = {
            own.partition("/")[2] for each in autoscalers([{**item, "metadata": metadata}]) for own in each.workloads
        }
        spaces = {workload.namespace for workload in config.workloads if workload.name in named}
        metadata["namespace"] = spaces.pop() if len(spaces) == 1 else "default"
    return {**item, "metadata": metadata}


def _metric_faults(item: Item) -> Iterator[str]:
    """Metrics that resemble one of the adapter, and an HPA that names no workload for one of the adapter's."""
    names = metric_names(item)
    for name in names:
        if name not in METRICS and (hint := suggestion(name, METRICS)):
            yield f"the adapter has no metric {name}{hint}"
    if not autoscalers([item]) and any(name in METRICS for name in names):
        yield "its metric names no single workload; add selector: {matchLabels: {workload: NAME}}"


def _unknown_workloads(found: Iterable[Autoscaler], config: Config) -> Iterator[str]:
    """Workloads that the file does not configure. One of a fleet is known only where the fleet is discovered."""
    known = [workload.id for workload in config.workloads]
    for each in found if not config.fleets else ():
        for workload in each.workloads:
            if workload not in known:
                yield f"HPA {each.name}: {workload} is not configured{suggestion(workload, known)}"


def _summary(found: list[Autoscaler], config: Config) -> str:
    scaled = {workload for each in found for workload in each.workloads}
    without = [workload.id for workload in config.workloads if workload.id not in scaled]
    named = [*without[:_MOST_NAMED], *([f"{len(without) - _MOST_NAMED} more"] if len(without) > _MOST_NAMED else [])]
    lacking = f"; without an HPA: {', '.join(named)}" if without else ""
    return f"{counted(len(found), 'valid HPA')} for {counted(len(scaled), 'workload')}{lacking}"
