"""The annotations of an HPA -> what they ask for, and what is wrong with them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache

import numpy as np

from adapter.config.faults import one_of, shown
from adapter.core.parameters import allowed, expected, number_of
from adapter.core.rules import Rules
from adapter.core.samples import OVERRIDE, OVERRIDES

PREFIX = "backlog-adapter/"
PAUSE = f"{PREFIX}pause"
PAUSE_UNTIL = f"{PREFIX}pause-until"
FAILOVER = f"{PREFIX}failover"
POLICY = f"{PREFIX}policy"
RULES = f"{PREFIX}rules."  # and the name of a parameter
RULES_UNTIL = f"{PREFIX}rules-until"
WORKLOAD = f"{PREFIX}workload"  # read by adapter.sources.autoscalers

_FOREVER_S = float("inf")
_DIRECTIONS = {"up": (True, False), "down": (False, True), "both": (True, True)}
_CHOICES = {setting.name: setting.metadata["one_of"] for setting in fields(Rules) if "one_of" in setting.metadata}
_NAMED = tuple(override.removeprefix(OVERRIDE) for override in OVERRIDES)
_PARAMETERS = {POLICY if name == "policy" else f"{RULES}{name}": name for name in _NAMED}
_FIXED = frozenset(f"{RULES}{setting.name}" for setting in fields(Rules) if setting.metadata.get("fixed"))
_FEW = (PAUSE, PAUSE_UNTIL, FAILOVER, POLICY, RULES_UNTIL, WORKLOAD)
_ENDED: Mapping[str, tuple[Iterable[str], str, str]] = {  # what ends, its name, what holds without a readable end
    PAUSE_UNTIL: ((PAUSE,), PAUSE, "the pause has no end"),
    RULES_UNTIL: (_PARAMETERS, f"{POLICY} or {RULES}<parameter>", "the rules hold without an end"),
}
_KEYS = frozenset((*_FEW, *_PARAMETERS))


@dataclass(frozen=True, slots=True)
class Asked:
    """What the annotations of one HPA ask for; times in Unix seconds, infinite without an expiry.

    rules: parameter -> the number that stands for its value; they hold until rules_until_s.
    complaints: what is wrong, a sentence each annotation that is not understood.
    """

    pause_up: bool = False
    pause_down: bool = False
    pause_until_s: float = _FOREVER_S
    failover: bool = False
    rules: Mapping[str, float] = field(default_factory=dict)
    rules_until_s: float = _FOREVER_S
    complaints: tuple[str, ...] = ()


class _UnreadableError(Exception):
    """What is wrong with one annotation."""


def asked(annotations: Mapping[str, str]) -> Asked:
    """What an HPA's annotations ask for. One that cannot be read is ignored, and the others still hold.

    Whoever wrote a pause wanted no scaling now: a direction that cannot be read pauses both, an expiry that cannot be
    read is none.
    """
    ours = {key: text for key, text in annotations.items() if key.startswith(PREFIX)}
    if not ours:
        return _NOTHING
    faults = [_fixed(key) if key in _FIXED else _unknown(key) for key in sorted(ours.keys() - _KEYS)]
    up, down = _direction(ours, faults)
    rules: dict[str, float] = {}
    for key in sorted(ours.keys() & _PARAMETERS.keys()):
        try:
            rules[_PARAMETERS[key]] = _value(_PARAMETERS[key], ours[key])
        except _UnreadableError as error:
            faults.append(f"annotation {key}: {error}; it is ignored")
    return Asked(
        pause_up=up,
        pause_down=down,
        pause_until_s=_end(ours, PAUSE_UNTIL, faults),
        failover=_claim(ours, faults),
        rules=rules,
        rules_until_s=_end(ours, RULES_UNTIL, faults),
        complaints=tuple(faults),
    )


_NOTHING = Asked()


def _name(key: str) -> str:
    return key.removeprefix(RULES).removeprefix(PREFIX)


_NAMES = {_name(key): key for key in sorted(_KEYS)}


@lru_cache(maxsize=4096)
def _unknown(key: str) -> str:
    """The same wrong key comes again every tick, and the search for the nearest is slow."""
    near = get_close_matches(_name(key), _NAMES, n=1)
    meant = f"did you mean {_NAMES[near[0]]}?" if near else f"there are {', '.join(_FEW)} and {RULES}<parameter>"
    return f"annotation {shown(key)} is none of ours; {meant}"


def _fixed(key: str) -> str:
    where = "the rules of the file, of a workload or of a fleet"
    return f"annotation {key}: the configuration alone sets it ({where}); it is ignored"


def _direction(ours: Mapping[str, str], faults: list[str]) -> tuple[bool, bool]:
    text = ours.get(PAUSE)
    if text is None:
        return False, False
    if text.lower() not in _DIRECTIONS:
        wanted = "expected up, down or both: paused both ways until it is mended"
        faults.append(f"annotation {PAUSE} is {shown(text)}, {wanted}")
    return _DIRECTIONS.get(text.lower(), (True, True))


def _end(ours: Mapping[str, str], key: str, faults: list[str]) -> float:
    text, (ended, named, otherwise) = ours.get(key), _ENDED[key]
    if text is None:
        return _FOREVER_S
    if ours.keys().isdisjoint(ended):  # whoever wrote it believes that something ends
        faults.append(f"annotation {key}: there is no {named} that it could end; it is ignored")
        return _FOREVER_S
    try:
        ends = datetime.fromisoformat(text)
        if ends.tzinfo is not None:
            return ends.timestamp()
    except (ValueError, OverflowError):
        pass
    wanted = "a time with its zone such as 2026-01-31T18:00:00Z"
    faults.append(f"annotation {key}: expected {wanted}, got {shown(text)}; {otherwise}")
    return _FOREVER_S


def _claim(ours: Mapping[str, str], faults: list[str]) -> bool:
    text = ours.get(FAILOVER, "false")
    if text.lower() not in ("true", "false"):
        faults.append(f"annotation {FAILOVER}: expected true or false, got {shown(text)}; it is ignored")
    return text.lower() == "true"


def _value(parameter: str, text: str) -> float:
    """The number that stands for a parameter's value. Raises _UnreadableError with what was expected."""
    if parameter in _CHOICES:
        if text not in _CHOICES[parameter]:
            raise _UnreadableError(one_of(text, _CHOICES[parameter]))
        return number_of(parameter, text)
    number = _number(text)
    if not allowed(parameter, np.array([number])).all():
        raise _UnreadableError(f"expected {expected(parameter)}, got {shown(text)}")
    return number


def _number(text: str) -> float:
    try:
        if "_" not in text:  # to Python 1_0 is 10, to whoever wrote it perhaps 1.0
            return float(text)
    except ValueError:
        pass
    raise _UnreadableError(f"expected a number, got {shown(text)}")
