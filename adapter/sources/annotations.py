"""The annotations of an HPA -> pauses, rule overrides and failover, and the faults in them. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache, partial

import numpy as np

from adapter.config.faults import one_of, value_text
from adapter.config.number_hints import number_hint
from adapter.core.parameters import CHOICES, allowed, allowed_values, number_of
from adapter.core.rules import Rules
from adapter.core.samples import OVERRIDE, OVERRIDES

PREFIX = "backlog-adapter/"
PAUSE = f"{PREFIX}pause"
PAUSE_UNTIL = f"{PREFIX}pause-until"
FAILOVER = f"{PREFIX}failover"
POLICY = f"{PREFIX}policy"
RULES = f"{PREFIX}rules."  # followed by the name of a parameter
RULES_UNTIL = f"{PREFIX}rules-until"
WORKLOAD = f"{PREFIX}workload"  # read by adapter.sources.autoscalers

_FOREVER_S = float("inf")
_DIRECTIONS = {"up": (True, False), "down": (False, True), "both": (True, True)}
_NAMED = tuple(override.removeprefix(OVERRIDE) for override in OVERRIDES)
_PARAMETERS = {POLICY if name == "policy" else f"{RULES}{name}": name for name in _NAMED}
_FIXED = frozenset(f"{RULES}{setting.name}" for setting in fields(Rules) if setting.metadata.get("fixed"))
_OURS = re.compile("backlog[-_.]?adapt[eo]r")  # also backlog-adapter.io/, backlogadapter/ and backlog-adapter.pause
_FEW = (PAUSE, PAUSE_UNTIL, FAILOVER, POLICY, RULES_UNTIL, WORKLOAD)
# An expiry -> the annotations that it ends, their name, and the consequence of an expiry that cannot be parsed.
_ENDED: Mapping[str, tuple[Iterable[str], str, str]] = {
    PAUSE_UNTIL: ((PAUSE,), PAUSE, "the pause has no end"),
    RULES_UNTIL: (_PARAMETERS, f"{POLICY} or {RULES}<parameter>", "the rules have no end"),
}
_KEYS = frozenset((*_FEW, *_PARAMETERS))


@dataclass(frozen=True, slots=True)
class HpaAnnotations:
    """The parsed annotations of one HPA. Times are Unix seconds, infinite without an expiry."""

    pause_up: bool = False
    pause_down: bool = False
    pause_until_s: float = _FOREVER_S
    failover: bool = False
    rules: Mapping[str, float] = field(default_factory=dict)  # parameter -> its value as a number
    rules_until_s: float = _FOREVER_S
    faults: tuple[str, ...] = ()  # a sentence for each annotation that cannot be parsed


class _InvalidError(Exception):
    """The fault of one annotation."""


def parse(annotations: Mapping[str, str]) -> HpaAnnotations:
    """Parse an HPA's annotations. An annotation that cannot be parsed is ignored; the others still apply.

    Two faults fail safe: an unknown pause direction pauses both, and an unknown expiry never ends the pause.
    """
    ours = {key: text for key, text in annotations.items() if _OURS.match(key)}
    if not ours:
        return _NOTHING
    faults = [_fixed(key) if key in _FIXED else _unknown(key) for key in sorted(ours.keys() - _KEYS)]
    up, down = _direction(ours, faults)
    rules: dict[str, float] = {}
    for key in sorted(ours.keys() & _PARAMETERS.keys()):
        try:
            rules[_PARAMETERS[key]] = _value(_PARAMETERS[key], ours[key])
        except _InvalidError as error:
            faults.append(f"annotation {key}: {error}; it is ignored")
    return HpaAnnotations(
        pause_up=up,
        pause_down=down,
        pause_until_s=_expiry(ours, PAUSE_UNTIL, faults),
        failover=_failover(ours, faults),
        rules=rules,
        rules_until_s=_expiry(ours, RULES_UNTIL, faults),
        faults=tuple(faults),
    )


_NOTHING = HpaAnnotations()


def _name(key: str) -> str:
    return key.rpartition("/")[2].removeprefix("rules.")


_NAMES = {_name(key): key for key in sorted(_KEYS)}


@lru_cache(maxsize=4096)
def _unknown(key: str) -> str:
    """Cached, because a wrong key comes again every tick and the search for the nearest name is slow."""
    near = get_close_matches(_name(key), _NAMES, n=1)
    hint = f"did you mean {_NAMES[near[0]]}?" if near else f"expected {', '.join(_FEW)} or {RULES}<parameter>"
    return f"annotation {value_text(key)} is unknown; {hint}"


def _fixed(key: str) -> str:
    where = "in the rules of the file, of a workload or of a fleet"
    return f"annotation {key}: only the configuration can set it ({where}); it is ignored"


def _direction(ours: Mapping[str, str], faults: list[str]) -> tuple[bool, bool]:
    text = ours.get(PAUSE)
    if text is None:
        return False, False
    if text.lower() not in _DIRECTIONS:
        expectation = "expected up, down or both: both directions are paused until it is corrected"
        faults.append(f"annotation {PAUSE} is {value_text(text)}, {expectation}")
    return _DIRECTIONS.get(text.lower(), (True, True))


def _expiry(ours: Mapping[str, str], key: str, faults: list[str]) -> float:
    text, (ended, name, consequence) = ours.get(key), _ENDED[key]
    if text is None:
        return _FOREVER_S
    if ours.keys().isdisjoint(ended):
        faults.append(f"annotation {key}: there is no {name} for it to end; it is ignored")
        return _FOREVER_S
    try:
        expiry = datetime.fromisoformat(text)
        if expiry.tzinfo is not None:
            return expiry.timestamp()
    except (ValueError, OverflowError):
        pass
    example = "a time with its zone such as 2026-01-31T18:00:00Z"
    faults.append(f"annotation {key}: expected {example}, got {value_text(text)}; {consequence}")
    return _FOREVER_S


def _failover(ours: Mapping[str, str], faults: list[str]) -> bool:
    text = ours.get(FAILOVER, "false")
    if text.lower() not in ("true", "false"):
        faults.append(f"annotation {FAILOVER}: expected true or false, got {value_text(text)}; it is ignored")
    return text.lower() == "true"


def _value(parameter: str, text: str) -> float:
    """A parameter's value as a number. Raises _InvalidError with the expected value."""
    if parameter in CHOICES:
        if text not in CHOICES[parameter]:
            raise _InvalidError(one_of(text, CHOICES[parameter]))
        return number_of(parameter, text)
    number = _number(parameter, text)
    if not _is_allowed(parameter, number):
        raise _InvalidError(f"expected {allowed_values(parameter)}, got {value_text(text)}")
    return number


def _is_allowed(parameter: str, number: str | float) -> bool:
    return bool(allowed(parameter, np.array([float(number)])).all())


def _number(parameter: str, text: str) -> float:
    try:
        if "_" not in text:  # Python reads 1_0 as 10, its author may mean 1.0
            return float(text)
    except ValueError:
        pass
    hint = number_hint(text, parameter, partial(_is_allowed, parameter))
    raise _InvalidError(f"expected a number, got {value_text(text)}{hint}")
