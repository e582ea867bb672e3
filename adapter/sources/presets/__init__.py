"""Presets: the PromQL of each signal of a known exporter or engine. Each preset is a YAML file in this folder."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template

import msgspec
import yaml
from msgspec.structs import replace

from adapter.config.faults import suggestion
from adapter.core.samples import COUNTERS, STAGE_SIGNALS, WORKLOAD_SIGNALS
from adapter.errors import ConfigError

PLACEHOLDERS = ("match", "by", "window")
_OURS = {"fleet", *COUNTERS.values()}  # signals that the adapter adds itself
SIGNALS = (*STAGE_SIGNALS, *(signal for signal in WORKLOAD_SIGNALS if signal not in _OURS))


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One exporter or engine. A fleet can replace the labels."""

    name: str
    description: str
    workload_label: str  # the label of the result that names the workload
    signals: dict[
        str, str
    ] = {}  # name of SIGNALS -> a PromQL template with $match, $by and $window; $$ is a dollar sign
    same_as: str | None = None  # preset whose signals this one has too, with other names of series
    series: dict[str, str] = {}  # name of a series in same_as -> its name here
    without: tuple[str, ...] = ()  # signals of same_as that this one does not have
    namespace_label: str | None = None
    stage_label: str | None = None
    match_label: str | None = None  # a label that users add to the series, where no series has the workload_label
    derived_labels: tuple[str, ...] = ()  # labels that the templates create, so that no series has them


def names() -> tuple[str, ...]:
    """The names of all presets."""
    folder = files("adapter.sources.presets")
    return tuple(sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml")))


@cache
def load(name: str) -> Preset:
    """The preset of that name. Raises ConfigError if there is none or its file is invalid."""
    if name not in names():
        raise ConfigError([f"there is no preset {name!r}{_hint(name, names())}"])
    return parse(name, files("adapter.sources.presets").joinpath(f"{name}.yaml").read_text(encoding="utf-8"))


def stream_rates() -> Mapping[str, str]:
    """The rates of a Pravega stream, which its controller does not have."""
    return {signal: text for signal, text in load("pravega").signals.items() if signal != "partitions"}


def parse(name: str, text: str) -> Preset:
    """Parse the text of a preset file. Raises ConfigError with every fault, each with its path."""
    where = f"presets/{name}.yaml"
    try:
        preset = msgspec.convert(yaml.safe_load(text), Preset)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError([f"{where}: {' '.join(str(error).split())}"]) from error
    preset = _with_shared_signals(preset)
    faults = [f"{where}: name: must be the name of the file, got {preset.name!r}"] if preset.name != name else []
    faults += [f"{where}: {fault}" for fault in template_faults(preset.signals)]
    if faults:
        raise ConfigError(faults)
    return preset


def _with_shared_signals(preset: Preset) -> Preset:
    if preset.same_as is None:
        return preset
    shared = load(preset.same_as).signals
    unknown = [signal for signal in preset.without if signal not in shared]
    if unknown:
        raise ConfigError([f"presets/{preset.name}.yaml: without: {preset.same_as} has no {', '.join(unknown)}"])
    renamed = {name: _rename_series(text, preset.series) for name, text in shared.items() if name not in preset.without}
    return replace(preset, signals=renamed | preset.signals)


def _rename_series(template: str, series: Mapping[str, str]) -> str:
    for name, other in series.items():
        template = re.sub(rf"\b{name}\b", other, template)
    return template


def template_faults(signals: Mapping[str, str]) -> list[str]:
    """Faults in the names and placeholders of templates; each sentence begins with its path."""
    unknown_signals = [signal for signal in signals if signal not in SIGNALS]
    faults = [f"signals.{s}: there is no such signal{_hint(s, SIGNALS)}" for s in unknown_signals]
    for signal, template in signals.items():
        unknown = [word for word in Template(template).get_identifiers() if word not in PLACEHOLDERS]
        faults += [
            f"signals.{signal}: ${word} is not $match, $by or $window; {_placeholder_fix(word)}" for word in unknown
        ]
    return faults


def _placeholder_fix(word: str) -> str:
    if word.startswith("__"):
        return "variables of Grafana are unknown here; write [$window] for a range"
    return f"write $match for the labels of a workload, $window for a range, or $${word} for a dollar sign"


def fill(template: str, match: str, by: tuple[str, ...], window: str) -> str:
    """Fill in a template. match: comma-separated matchers; by: labels to group by; window: such as 60s.

    A dollar sign that does not begin a placeholder stays ("$1" of label_replace).
    """
    return Template(template).safe_substitute(match=match, by=", ".join(by), window=window).strip()


def count_placeholder(template: str, placeholder: str) -> int:
    """How often a template has a placeholder, as $name or ${name}."""
    return sum(placeholder in (each["named"], each["braced"]) for each in Template.pattern.finditer(template))


def _hint(given: str, known: tuple[str, ...]) -> str:
    """The end of a sentence about an unknown name: the nearest name, otherwise all names."""
    return suggestion(given, known) or f"; expected {', '.join(known)}"
