"""A values file of the chart -> the configuration that the chart makes of it."""

from collections.abc import Mapping
from typing import Any

from adapter.config.document import Document

# What every release has: the defaults of values.yaml, and what the chart sets itself and the configuration requires.
RELEASE: Mapping[str, Any] = {
    "sources": {"cluster": {"kind": "kubernetes"}},
    "pipeline": {"checkpoint": "/var/lib/backlog-adapter/checkpoint"},
}


def is_chart_values(document: Document) -> bool:
    """Whether a file is one of values: the configuration is below `config`."""
    return isinstance(document.values.get("config"), Mapping) and "sources" not in document.values


def rendered(document: Document) -> Document:
    """The configuration of a values file, with the lines of that file."""
    return document.below("config", _merge(RELEASE, document.values["config"]))


def _merge(defaults: Mapping[Any, Any], given: Mapping[Any, Any]) -> dict[Any, Any]:
    """The given values over the defaults, as helm merges them: null removes a key."""
    merged = {**defaults, **given}
    for name in defaults.keys() & given.keys():
        if isinstance(defaults[name], Mapping) and isinstance(given[name], Mapping):
            merged[name] = _merge(defaults[name], given[name])
    return {name: value for name, value in merged.items() if value is not None}
