"""Parse one YAML file into a frozen Config, or report all of its faults.

document (YAML) -> checks (between parts) and models (each part) -> Config -> settings (the rules of each workload)
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from pydantic import ValidationError

from adapter.config.chart_hints import overwritten_settings, unmounted_files
from adapter.config.chart_values import VALUES, ChartValues, chart_config, is_chart_values, name_faults, null_faults
from adapter.config.checks import source_kinds, whole_faults
from adapter.config.document import Document, read, text_of
from adapter.config.faults import Fault, nearest, suggestion, value_text
from adapter.config.issuer import Issuer
from adapter.config.models import (
    Config,
    ExcludedPeriod,
    Fleet,
    Pause,
    Pipeline,
    ServerConfig,
    Serving,
    Timing,
    Workload,
)
from adapter.config.settings import RuleSettings, rule_book
from adapter.config.sources import (
    KINDS,
    AnyReading,
    AnySource,
    Basic,
    KafkaReading,
    KafkaSource,
    KubernetesSource,
    PravegaReading,
    PravegaSource,
    PrometheusReading,
    PrometheusSource,
    Tls,
    TraceReading,
    TraceSource,
)
from adapter.errors import ConfigError

__all__ = [
    "AnyReading",
    "AnySource",
    "Basic",
    "ChartValues",
    "Check",
    "Config",
    "ExcludedPeriod",
    "Fleet",
    "Issuer",
    "KafkaReading",
    "KafkaSource",
    "KubernetesSource",
    "Pause",
    "Pipeline",
    "PravegaReading",
    "PravegaSource",
    "PrometheusReading",
    "PrometheusSource",
    "Serving",
    "Timing",
    "Tls",
    "TraceReading",
    "TraceSource",
    "Workload",
    "json_schema",
    "load",
    "load_chart_values",
    "load_serving",
    "parse",
    "rule_book",
]

Check = Callable[[Config], list[str]]  # the faults or hints that a source's module finds; each begins with its path

log = structlog.get_logger(__name__)

_ENTRY = re.compile(r"""(?<!\w)(["'])(?:\\.|(?!\1).)*\1|(?<![.\w])(workloads|fleets)\[(\d+)\]""")  # or a text in quotes


def load(path: Path, checks: Sequence[Check] = (), hints: Sequence[Check] = ()) -> Config:
    """Load the configuration from a file. Raises ConfigError with every fault; reads no other file.

    hints: what they find in a valid configuration is logged as a warning.
    """
    return _check_document(_document(path), checks, hints)


def load_serving(path: Path) -> Serving:
    """Load `serving` alone, so that a fault of another part stops no server. Raises ConfigError with its faults."""
    document = _document(path)
    others = Config.model_fields.keys() - ServerConfig.model_fields.keys()
    try:
        return ServerConfig.model_validate({n: part for n, part in document.values.items() if n not in others}).serving
    except ValidationError as error:
        raise document.error([fault.sentence() for fault in _faults(error)]) from None


def _document(path: Path) -> Document:
    document = read(text_of(path), str(path))
    if is_chart_values(document):  # their paths and addresses exist in the pods alone
        fault = "expected a configuration, got values of the chart"
        fix = "write what is below config into its own file, and add pipeline.checkpoint"
        raise ConfigError([f"{path}: {fault}, which only check and backtest accept; {fix}"])
    if isinstance(text := document.values.get("config"), str):
        raise document.error(
            [f"config: expected settings, got the text {value_text(text)}; remove the | after config:"]
        )
    if document.values.keys().isdisjoint(Config.model_fields):
        fault = "expected a configuration with sources and pipeline, or values of the chart with config; got neither"
        raise ConfigError([f"{path}: {fault}{_misspelt(document.values)}"])
    return document


def _misspelt(names: Iterable[object]) -> str:
    """The end of a message about names of which none is known: the first that resembles a known one."""
    known = VALUES | {"config"} | Config.model_fields.keys()
    similar = (f"; {value_text(name)}: {hint[2:]}" for name in names if (hint := suggestion(name, known)))
    return next(similar, "")


def parse(text: str, where: str, checks: Sequence[Check] = ()) -> Config:
    """Parse the configuration from a text. Raises ConfigError with every fault.

    where: the name of the text in messages. checks: each finds further faults in the valid entries.
    """
    return _check_document(read(text, where), checks)


def load_chart_values(path: Path, checks: Sequence[Check] = (), hints: Sequence[Check] = ()) -> ChartValues | None:
    """Load the `config` of a values file of the chart, with what the chart adds; None if it is no such file.

    hints: as in `load`, besides those on the values. Raises ConfigError with every fault.
    """
    document = read(text_of(path), str(path))
    if not is_chart_values(document):
        return None
    faults = name_faults(document)
    if any("config" in fault for fault in faults):  # faults of config would follow from this one
        raise document.error(faults)
    faults += null_faults(document)
    of_values = (partial(find, document.values) for find in (overwritten_settings, unmounted_files))
    try:
        config = _check_document(chart_config(document), checks, () if faults else (*hints, *of_values))
    except ConfigError as error:
        raise ConfigError([*document.located(faults), *error.faults]) from None
    if faults:
        raise document.error(faults)
    return ChartValues(config, document.values)


def json_schema() -> dict[str, Any]:
    """The JSON schema of the file, without relations between settings."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}


def _check_document(document: Document, checks: Sequence[Check], hints: Sequence[Check] = ()) -> Config:
    config, faults = _validate(document.values)
    if config is None:
        found = _in_valid_parts(document.values, faults, checks)
        raise document.error([*(fault.sentence() for fault in faults), *found])
    sentences = [sentence for check in checks for sentence in check(config)]
    if sentences:
        raise document.error(sentences)
    for hint in document.located(sentence for find in hints for sentence in find(config)):
        log.warning(hint)
    return config


def _validate(values: Mapping[Any, Any]) -> tuple[Config | None, list[Fault]]:
    faults = whole_faults(values)
    try:
        config = Config.model_validate(values, context={"kinds": source_kinds(values)})
    except ValidationError as error:
        explained = [fault.path[:-1] for fault in faults if fault.explains_entry]
        others = (fault for fault in _faults(error) if not any(fault.path[: len(at)] == at for at in explained))
        return None, [*others, *faults]
    return (None, faults) if faults else (config, [])


def _faults(error: ValidationError) -> list[Fault]:
    return [Fault(_without_kind(detail["loc"]), detail["msg"]) for detail in error.errors(include_url=False)]


def _in_valid_parts(values: Mapping[Any, Any], faults: Sequence[Fault], checks: Sequence[Check]) -> list[str]:
    """Run the checks on the workloads and fleets that have no fault and read sources that have none.

    Their messages have the paths of the whole file.
    """
    faulty = {fault.path[:2] for fault in faults}
    of_rules = {path[-1] for path in faulty if path[:1] == ("rules",)}
    if "policy" in of_rules or not of_rules <= RuleSettings.model_fields.keys():
        return []  # an unknown rule may be a misspelt policy, and the signals that it needs are unknown
    # A part with a misspelt name is a fault already, and no other fault may follow from it. Its settings are validated
    # below, but no model has validated its entries.
    meant = {**{nearest(name, Config.model_fields): part for name, part in values.items()}, **values}
    valid = {"pipeline": {"checkpoint": "any"}, "rules_by_match": meant.get("rules_by_match", [])}
    valid |= {part: _valid_settings(meant, part, faulty) for part in ("sources", "rules")}
    entries = {part: _valid_entries(values, part, faulty, valid["sources"]) for part in ("workloads", "fleets")}
    valid |= {part: list(found.values()) for part, found in entries.items()}
    try:  # relations between parts are among the faults already
        config = Config.model_validate(valid, context={"kinds": source_kinds(valid)})
    except ValidationError:  # a fault of rules_by_match: the checks depend on it
        return []

    def in_file(found: re.Match[str]) -> str:
        part, at = found[2], found[3]
        return f"{part}[{list(entries[part])[int(at)]}]" if part else found[0]

    return [_ENTRY.sub(in_file, sentence) for check in checks for sentence in check(config)]


def _valid_settings(values: Mapping[Any, Any], part: str, faulty: Set[tuple[str | int, ...]]) -> dict[Any, Any]:
    """The settings of a part without those that have a fault. A fault names an odd key as text."""
    given = values[part] if isinstance(values.get(part), Mapping) else {}
    return {name: value for name, value in given.items() if not {(part, name), (part, str(name))} & faulty}


def _valid_entries(
    values: Mapping[Any, Any], part: str, faulty: Set[tuple[str | int, ...]], sources: Container[str]
) -> dict[int, Any]:
    """The entries of a part that have no fault and read only these sources, by their index in the file."""
    given = values[part] if isinstance(values.get(part), list) else []
    usable = {at: entry for at, entry in enumerate(given) if (part, at) not in faulty}
    return {at: entry for at, entry in usable.items() if all(name in sources for name in _sources_of(entry))}


def _sources_of(entry: Mapping[str, Any]) -> set[str]:
    """The sources that a valid workload or fleet reads."""
    return {reading["source"] for reading in entry.get("read", [entry])}


def _without_kind(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Remove the kind of a source, which pydantic adds to the path of its settings."""
    return path[:2] + path[3:] if path[0] == "sources" and path[2:3] and path[2] in KINDS else path
