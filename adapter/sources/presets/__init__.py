"""Presets: which PromQL gives which sample of a known exporter or engine. One YAML file each, beside this module."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template

import msgspec
import yaml

from adapter.config.faults import nearest
from adapter.core.samples import STAGE_SIGNALS, WORKLOAD_SIGNALS
from adapter.errors import ConfigError

PLACEHOLDERS = ("match", "by", "window")
SIGNALS = (*STAGE_SIGNALS, *(signal for signal in WORKLOAD_SIGNALS if signal != "fleet"))


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One exporter or engine.

    workload_label, namespace_label, stage_label: which labels of the result tell them; a fleet may name others.
    derived_labels: labels the templates make themselves, so that no series can be selected by them.
    signals: a name of SIGNALS -> a PromQL template with $match, $by and $window; $$ is a dollar sign.
    """

    name: str
    description: str
    workload_label: str
    signals: dict[str, str]
    namespace_label: str | None = None
    stage_label: str | None = None
    derived_labels: tuple[str, ...] = ()


def names() -> tuple[str, ...]:
    """All presets."""
    folder = files("adapter.sources.presets")
    return tuple(sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml")))


@cache
def load(name: str) -> Preset:
    """The preset of that name. Raises ConfigError when there is none, or when its file is wrong."""
    if name not in names():
        raise ConfigError([f"no preset is named {name!r}{_meant(name, names())}"])
    return parse(name, files("adapter.sources.presets").joinpath(f"{name}.yaml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Preset:
    """A preset from its file's text. Raises ConfigError with every fault, each with its path."""
    where = f"presets/{name}.yaml"
    try:
        preset = msgspec.convert(yaml.safe_load(text), Preset)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError([f"{where}: {' '.join(str(error).split())}"]) from error
    faults = [f"{where}: name: must be that of the file, got {preset.name!r}"] if preset.name != name else []
    faults += [f"{where}: {fault}" for fault in template_faults(preset.signals)]
    if faults:
        raise ConfigError(faults)
    return preset


def template_faults(signals: Mapping[str, str]) -> list[str]:
    """What is wrong with the names and placeholders of some templates; each sentence begins with its path."""
    unknown_signals = [signal for signal in signals if signal not in SIGNALS]
    faults = [f"signals.{s}: no signal is named so{_meant(s, SIGNALS)}" for s in unknown_signals]
    for signal, template in signals.items():
        unknown = [word for word in Template(template).get_identifiers() if word not in PLACEHOLDERS]
        faults += [
            f"signals.{signal}: ${word} is none of $match, $by, $window; write $${word} for a dollar sign"
            for word in unknown
        ]
    return faults


def filled(template: str, match: str, by: tuple[str, ...], window: str) -> str:
    """The query of a template. match: matchers, comma separated, may be empty; by: labels to group by; window: as 60s.

    A dollar sign before anything but a placeholder stays ("$1" of label_replace).
    """
    return Template(template).safe_substitute(match=match, by=", ".join(by), window=window).strip()


def mentions(template: str, placeholder: str) -> bool:
    """Whether a template has a placeholder."""
    return placeholder in Template(template).get_identifiers()


def _meant(given: str, known: tuple[str, ...]) -> str:
    """The end of a sentence about an unknown name: the name that was probably meant, else all there are."""
    return nearest(given, known) or f"; there are {', '.join(known)}"
