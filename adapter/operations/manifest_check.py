"""Check the HPAs in manifests against the configuration, without a cluster."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog

from adapter.config import ChartValues, Config, Workload, rule_book
from adapter.config.document import manifest_files, manifests
from adapter.config.faults import nearest, suggestion
from adapter.core.formatting import counted
from adapter.core.metrics import METRICS
from adapter.core.parameters import columns
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.errors import ConfigError
from adapter.operations.hpa_fields import VERSIONS, with_known_fields
from adapter.operations.hpa_hints import hints
from adapter.operations.hpa_manifest import Hpa, hpa_of
from adapter.operations.release_hints import release_hints
from adapter.operations.scaled_object_hints import scaled_object_hints
from adapter.sources.autoscalers import (
    Autoscaler,
    Json,
    autoscaler,
    conflicts,
    own_metrics,
    selected_workload,
    selector_terms,
)
from adapter.sources.prometheus_plan import namespace_of

_MOST_NAMED = 5
_SELECTED = ("workload", "stage")  # labels that the configuration does not set

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    """The configuration, with what each HPA is compared with."""

    config: Config
    workloads: Mapping[str, Workload]  # by "namespace/name"
    rules: RuleBook
    values: ChartValues | None  # that contain the configuration

    @property
    def fleet_namespaces(self) -> set[str | None]:
        """The namespaces of the workloads that fleets find; None stands for any."""
        return {namespace_of(fleet) for fleet in self.config.fleets}

    def rules_of(self, own: Autoscaler) -> Rules | None:
        """The rules of the workload of an HPA; None without one, and if several fleets may find it."""
        is_known = len(self.config.fleets) == 1 or not self.workloads.keys().isdisjoint(own.workloads[:1])
        return self.rules.of(own.workloads[0], fleet=0) if own.workloads and is_known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    """An HPA in a file."""

    file: Path
    faults: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    name: str = ""  # "namespace/name", "" if it cannot be read
    target: tuple[str, ...] = ()  # kind, namespace and name of its scale target
    own: Autoscaler | None = None  # if it scales by the adapter


def check(paths: Collection[Path], config: Config, values: ChartValues | None = None) -> str:
    """Return a sentence about the HPAs in files and folders that scale by the adapter. Raises ConfigError with faults.

    values: those of the chart that contain the configuration, None if it has a file of its own. Logs a warning for each
    HPA that Kubernetes accepts and that is probably a mistake, and one if no HPA scales by the adapter.
    """
    known = _Known(config, {workload.id: workload for workload in config.workloads}, rule_book(config), values)
    found: dict[str, _Manifest] = {}
    faults: list[str] = []
    scaled_objects: list[Mapping[str, Any]] = []
    for file in manifest_files(paths):
        try:
            given = manifests(file)
        except ConfigError as error:
            faults += error.faults
            continue
        scaled_objects += [item for item, _ in given if item.get("kind") == "ScaledObject"]
        for item, repeated in given:
            if item.get("kind") != "HorizontalPodAutoscaler":
                continue
            manifest = _read(file, item, known)
            first = found.setdefault(manifest.name, manifest) if manifest.name else manifest
            copies = [] if first is manifest else [f"is also in {first.file}; name each file once, or remove a copy"]
            faults += [f"{file}: HPA {_name(item)}: {sentence}" for sentence in (*repeated, *manifest.faults, *copies)]
    faults += [*_conflicts(found.values()), *_shared_targets(found.values())]
    if faults:
        raise ConfigError(faults)
    warnings = [
        f"{each.file}: HPA {each.name}: {hint}"
        for each in found.values()
        for hint in (*each.hints, *(scaled_object_hints(each.name, each.target, scaled_objects) if each.own else ()))
    ]
    if not warnings and not scaled_objects and not any(each.own for each in found.values()):
        names = _listed([str(path) for path in paths])
        warnings = [f"no HPA in {names} scales by a metric of the adapter; name the files of those that do"]
    for warning in warnings:
        log.warning(warning)
    return _summary(found.values(), [_name(item) for item in scaled_objects], known)


def contents(config: Config) -> str:
    """What a configuration names, as the end of a sentence."""
    parts = {"source": config.sources, "workload": config.workloads, "fleet": config.fleets}
    counts = ", ".join(counted(len(each), name) for name, each in parts.items())
    is_idle = not config.workloads and not config.fleets
    return f"{counts}; name a workload or a fleet, otherwise nothing is scaled" if is_idle else counts


def _name(item: Mapping[str, Any]) -> str:
    """The name of a manifest, after its namespace if it has one."""
    metadata = item.get("metadata")
    given = metadata if isinstance(metadata, Mapping) else {}
    parts = [str(given[key]) for key in ("namespace", "name") if given.get(key)]
    return "/".join(parts) if given.get("name") else "without a name"


def _read(file: Path, item: Mapping[str, Any], known: _Known) -> _Manifest:
    version = item.get("apiVersion")
    if version not in VERSIONS:
        return _Manifest(file=file, faults=(f"expected apiVersion {VERSIONS[0]}, got {version}",))
    corrected, unknown = with_known_fields(item)
    try:
        hpa = hpa_of(corrected)
    except ConfigError as error:
        return _Manifest(file=file, faults=(*unknown, *error.faults))
    namespace, target = hpa.metadata.namespace or _namespace(hpa, known), hpa.spec.scale_target_ref
    whole = hpa.as_json(namespace)
    own = autoscaler(whole)
    found = (*_metric_faults(hpa, whole, known), *_bounds(hpa, own), *_own_faults(own, whole, known))
    return _Manifest(
        file=file,
        faults=(*unknown, *found),
        hints=(
            *hints(hpa, whole, own, known.workloads, known.rules_of(own)),
            *release_hints(own, own_metrics(whole), known.values),
        ),
        name=f"{namespace}/{hpa.metadata.name}",
        target=(target.kind, namespace, target.name),
        own=own if own.workloads else None,
    )


def _conflicts(found: Collection[_Manifest]) -> Iterator[str]:
    """Each conflict of HPAs that scale by the adapter, once for all its workloads."""
    workloads: dict[str, set[str]] = defaultdict(set)
    for workload, sentence in conflicts(each.own for each in found if each.own).items():
        workloads[sentence].add(workload)
    for sentence, here in workloads.items():
        yield _in_files((each for each in found if each.own and here.intersection(each.own.workloads)), sentence)


def _shared_targets(found: Iterable[_Manifest]) -> Iterator[str]:
    """Scale targets of several HPAs of which one scales by the adapter. conflicts() has those with several."""
    by_target: dict[tuple[str, ...], list[_Manifest]] = defaultdict(list)
    for each in found:
        by_target[each.target].append(each)
    for (kind, namespace, name), here in by_target.items():
        if len(here) > 1 and sum(each.own is not None for each in here) == 1:
            text = f"HPAs {' and '.join(each.name for each in here)} scale {kind} {namespace}/{name}"
            yield _in_files(here, f"{text}, so Kubernetes stops them; write all their metrics into one HPA")


def _in_files(here: Iterable[_Manifest], sentence: str) -> str:
    return f"{' and '.join(dict.fromkeys(str(each.file) for each in here))}: {sentence}"


def _namespace(hpa: Hpa, known: _Known) -> str:
    """The namespace that kubectl probably adds: that of the only workload of its name, or that of all fleets."""
    named = _selected_names(hpa)
    configured = {workload.namespace for workload in known.workloads.values() if workload.name in named}
    spaces = configured or known.fleet_namespaces
    return (spaces.pop() if len(spaces) == 1 else None) or "default"


def _selected_names(hpa: Hpa) -> set[str]:
    """The workloads that its selectors name, whatever the metric."""
    return {name for source in hpa.sources if (name := source.metric.workload)}


def _metric_faults(hpa: Hpa, whole: Json, known: _Known) -> Iterator[str]:
    """Metrics without a workload, and misspelt metrics of an HPA that names one. Others may be of another adapter."""
    for source in own_metrics(whole):
        if selected_workload(source) is None:
            may_match = any(term["key"] == "workload" for term in selector_terms(source))
            text = "may select several workloads; write" if may_match else "names no single workload; add"
            yield f"{source['metric']['name']} {text} selector: {{matchLabels: {{workload: NAME}}}}"
    is_named = not _selected_names(hpa).isdisjoint(workload.name for workload in known.workloads.values())
    for name in (source.metric.name for source in hpa.sources) if is_named else ():
        if name not in METRICS and (hint := suggestion(name, METRICS)):
            yield f"the adapter has no metric {name}{hint}"


def _bounds(hpa: Hpa, own: Autoscaler) -> Iterator[str]:
    """Minima above a maximum, which then decides. The rules have those of two annotations."""
    spec, rules = hpa.spec, own.annotations.rules
    for low, least, high, most in (
        ("minReplicas", spec.min_replicas, "maxReplicas", spec.max_replicas),
        ("the annotation rules.min_workers", rules.get("min_workers"), "maxReplicas", spec.max_replicas),
        ("minReplicas", spec.min_replicas, "the annotation rules.max_workers", rules.get("max_workers")),
    ):
        if least is not None and most is not None and least > most:
            yield f"expected {low} <= {high} = {most:g}, got {least:g}"


def _own_faults(own: Autoscaler, whole: Json, known: _Known) -> Iterator[str]:
    yield from own.faults
    if own.workloads and own.target.fault:
        yield own.target.fault
    yield from _unknown_workloads(own, known)
    yield from _ignored_rules(own, known)
    yield from _label_faults(own, whole, known)


def _unknown_workloads(own: Autoscaler, known: _Known) -> Iterator[str]:
    """Workloads that the file does not configure and that no fleet can find."""
    for workload in own.workloads:
        if workload not in known.workloads and not known.fleet_namespaces & {None, workload.partition("/")[0]}:
            yield f"{workload} is not configured{_elsewhere(workload, known) or suggestion(workload, known.workloads)}"


def _elsewhere(workload: str, known: _Known) -> str:
    """The end of a message about a workload whose name only another namespace has."""
    name = workload.partition("/")[2]
    others = [other for other in known.workloads if other.partition("/")[2] == name]
    return f", but {others[0]} is; an HPA reads workloads of its own namespace" if others else ""


def _ignored_rules(own: Autoscaler, known: _Known) -> Iterable[str]:
    """The contradictions for which the pipeline ignores annotations."""
    if known.rules_of(own) is None:
        return ()
    overrides = {name: np.array([value]) for name, value in own.annotations.rules.items()}
    return columns(own.workloads[:1], np.zeros(1), known.rules, 0.0, overrides)[1].values()


def _label_faults(own: Autoscaler, whole: Json, known: _Known) -> Iterator[str]:
    """Labels of a selector that its workload or metric does not have. Those of a discovered workload are unknown."""
    labels = {name: each.labels for name in own.workloads if (each := known.workloads.get(name))}
    for source in own_metrics(whole):
        metric, name = source["metric"]["name"], f"{whole['metadata']['namespace']}/{selected_workload(source)}"
        terms = (term for term in selector_terms(source) if term["operator"] == "In")
        for key, values in ((term["key"], term.get("values", [])) for term in terms):
            if key == "stage" and METRICS[metric].read_stage is None:
                text = f"{metric} is a number of the whole workload, so the API answers 400"
                yield f"{text}; leave stage out of the selector"
            if key not in _SELECTED and name in labels and labels[name].get(key) not in values:
                wanted = " or ".join(f"{key}={value}" for value in values)
                text = f"{metric} selects {wanted}, a label that {name} does not have"
                yield f"{text}, so the API answers 404; remove it, or add it to the labels of the workload"


def _summary(found: Collection[_Manifest], scaled_objects: list[str], known: _Known) -> str:
    own = [each.own for each in found if each.own]
    scaled = {workload for each in own for workload in each.workloads}
    free = [workload for workload in known.workloads if workload not in scaled]
    discovered = sorted(scaled - known.workloads.keys())
    parts = {
        "without an HPA": free,
        "not configured, so only a fleet can find it": [f"{each}{_similar(each, free)}" for each in discovered],
        "HPAs without a metric of the adapter": sorted(each.name for each in found if not each.own),
        "ScaledObjects of KEDA, which are not checked": scaled_objects,
    }
    lists = "".join(f"; {text}: {_listed(names)}" for text, names in parts.items() if names)
    return f"{counted(len(own), 'HPA')} without a fault for {counted(len(scaled), 'workload')}{lists}"


def _similar(workload: str, others: Iterable[str]) -> str:
    """A suggestion in brackets: the workload with the most similar name, if possible of the same namespace."""
    namespace, _, name = workload.partition("/")
    own_last = sorted(others, key=lambda other: other.startswith(f"{namespace}/"))
    by_name = {other.partition("/")[2]: other for other in own_last}
    near = nearest(name, by_name)
    return f" (did you mean {by_name[near]}?)" if near else ""


def _listed(names: list[str]) -> str:
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return ", ".join([*names[:_MOST_NAMED], *more])
