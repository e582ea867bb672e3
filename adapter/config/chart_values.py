"""A values file of the chart -> the configuration that the chart makes of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adapter.config.document import Document
from adapter.config.faults import Fault, Path, nearest
from adapter.config.models import Config

# What every release has: the defaults of values.yaml, and what the chart sets itself and the configuration requires.
RELEASE: Mapping[str, Any] = {
    "sources": {"cluster": {"kind": "kubernetes"}},
    "workloads": [],
    "fleets": [],
    "pipeline": {"checkpoint": "/var/lib/backlog-adapter/checkpoint"},
}
# What the chart adds where the values set the lifetimes of certificates.
_ISSUER: Mapping[str, Any] = {"service": "namespace/name", "issuer": {"lease": "name"}}

# The values of the chart but `config` and `pipeline`. No setting at the top of a configuration has one of these names.
VALUES = frozenset(
    """
    nameOverride fullnameOverride commonLabels commonAnnotations images apiService tls token rbac podSecurityContext
    revisionHistoryLimit serve networkPolicy serviceMonitor podMonitor dashboards prometheusRule extraObjects
    """.split()  # noqa: SIM905 - a list would have a line for each name
)

# Names at the top of other charts' values -> where this chart has the same.
_USUAL_NAMES: Mapping[str, str] = {
    "imagePullSecrets": "images.pullSecrets",
    "replicaCount": "serve.replicas",
    "persistence": "pipeline.persistence",
    **dict.fromkeys(
        [
            "resources",
            "nodeSelector",
            "tolerations",
            "affinity",
            "priorityClassName",
            "podAnnotations",
            "podLabels",
            "serviceAccount",
            "extraEnv",
            "extraVolumes",
            "extraVolumeMounts",
            "podDisruptionBudget",
        ],
        "serve.{0} and pipeline.{0}",
    ),
    "env": "serve.extraEnv and pipeline.extraEnv",
}

# What `apiService.*.create` of values.yaml is.
_SERVED: Mapping[str, bool] = {"external": True, "custom": False}


@dataclass(frozen=True, slots=True)
class ChartValues:
    """A values file with a valid configuration. helm checks the other values, so any of them may be invalid."""

    config: Config
    values: Mapping[Any, Any]

    def serves(self, api: str) -> bool:
        """Whether the chart registers an API of metrics: external or custom."""
        created = value_at(self.values, ("apiService", api, "create"))
        return _SERVED[api] if created is None else created is True

    def may_scale(self, group: str, kind: str) -> bool:
        """Whether the pipeline may read the replicas of objects of a kind; true if other roles may allow it."""
        return value_at(self.values, ("rbac", "create")) is False or not {group, "*"}.isdisjoint(self._groups(kind))

    def _groups(self, kind: str) -> Iterator[str]:
        """The API groups in which the pipeline may read the replicas of this kind."""
        yield "apps"
        stem = kind.lower()[:-2]  # a plural may change the last letters, as vertices of Vertex
        for group, _, resource in (str(target).partition("/") for target in self._rbac("extraScaleTargets")):
            if not resource or resource.startswith(stem):
                yield group
        for rule in self._rbac("extraRules"):
            groups = value_at(rule, ("apiGroups",))
            yield from map(str, groups if isinstance(groups, list) else ())

    def _rbac(self, name: str) -> list[Any]:
        found = value_at(self.values, ("rbac", name))
        return found if isinstance(found, list) else []


def value_at(values: Any, path: Path) -> Any:
    """The value at a path, None without one."""
    for step in path:
        values = values.get(step) if isinstance(values, Mapping) else None
    return values


def is_chart_values(document: Document) -> bool:
    """Whether a file holds values of the chart, with or without `config`.

    A bare configuration has more than `pipeline`. A file without `config` and with `pipeline.checkpoint`, which helm
    refuses, is a configuration.
    """
    names, pipeline = document.values.keys(), document.values.get("pipeline")
    has_checkpoint = isinstance(pipeline, Mapping) and "checkpoint" in pipeline
    if (has_checkpoint and "config" not in names) or not isinstance(document.values.get("config"), Mapping | None):
        return False
    return not names.isdisjoint(VALUES | {"config"}) or names <= {"pipeline"}


def name_faults(document: Document) -> list[str]:
    """A sentence for each name at the top of a values file that helm refuses."""
    known = VALUES | {"config", "pipeline", "global", "enabled"}
    unknown = (name for name in document.values if name not in known)
    faults = [Fault((name,), f"is not a value of the chart{_hint(name, known)}") for name in unknown]
    if document.values.get("config", {}) is None:  # null removes a value that the chart's schema requires
        faults.append(Fault(("config",), "expected settings, got nothing; write them below it, or remove it"))
    return [fault.sentence() for fault in faults]


def null_faults(document: Document) -> list[str]:
    """A sentence for each setting of `config` without a value, which helm refuses unless it removes a default."""
    given = document.values.get("config") or {}
    text = "expected a value, got nothing; write it, or remove it"
    nulls = [name for name, value in given.items() if value is None and name not in RELEASE]
    return [Fault(("config", name), text).sentence() for name in nulls]


def _hint(name: object, known: frozenset[str]) -> str:
    if name in Config.model_fields:
        return "; move it below config"
    if name in _USUAL_NAMES:
        return f"; set {_USUAL_NAMES[str(name)].format(name)}"
    below = {field: f"config.{field}" for field in Config.model_fields if field not in known}
    near = nearest(name, known | below.keys())
    return f"; did you mean {below.get(near, near)}?" if near else ""


def chart_config(document: Document) -> Document:
    """The configuration of a values file, with the paths and lines of that file."""
    config = _merge(RELEASE, document.values.get("config", {}))
    serving = config.get("serving")
    if isinstance(serving, Mapping) and isinstance(serving.get("issuer"), Mapping):
        config["serving"] = _merge(_ISSUER, serving)
    return document.below("config", config)


def _merge(defaults: Mapping[Any, Any], given: Mapping[Any, Any]) -> dict[Any, Any]:
    """The given values over the defaults, as helm merges them: null removes a key."""
    merged = {**defaults, **given}
    for name in defaults.keys() & given.keys():
        if isinstance(defaults[name], Mapping) and isinstance(given[name], Mapping):
            merged[name] = _merge(defaults[name], given[name])
    return {name: value for name, value in merged.items() if value is not None}
