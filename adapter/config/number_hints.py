"""Texts that look like numbers -> the number to write: durations, percentages, quantities of Kubernetes."""

import re
from collections.abc import Callable, Mapping

EXPONENT = re.compile(r"[0-9.]+[eE][-+]?[0-9]+")  # YAML 1.1 reads 1e3, 1e+3 and 1.0e3 as text
_PART = re.compile(r" *([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?) *([A-Za-z%]*)")
_ISO_8601 = re.compile(r"P([0-9]+D)?(?:T(.+))?")  # without weeks, months and years
_DECIMAL_COMMA = re.compile(r"([0-9]+),([0-9]{1,2})")
_THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+")  # 1,000 may also be 1.000
_S = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_SUFFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}  # no m: 5m records/s may be millions
_FORMS = (  # names of settings, the units that they may have, the end of the message
    (re.compile(""), {"": 1}, ", without quotes"),
    (re.compile("(?<!_per)_s$"), _S, ", the seconds without a unit"),
    (re.compile("_ratio$|^times$"), {"%": 0.01, "m": 0.001}, " for {text}"),
    (re.compile("_per_s$|(?<!_s)$"), _SUFFIXES, " for {text}"),
)


def number_hint(text: str, name: str, is_allowed: Callable[[str], bool]) -> str:
    """The end of a message on a setting that is no number: the number to write, "" if its intent is unknown.

    is_allowed: whether the setting may have a number.
    """
    if found := _DECIMAL_COMMA.fullmatch(text):
        number = f"{found[1]}.{found[2]}"
        return f"; write {number}, with a point" if is_allowed(number) else ""
    if _THOUSANDS.fullmatch(text) and not is_allowed(text.replace(",", ".")):
        number = text.replace(",", "")
        return f"; write {number}, without a comma" if is_allowed(number) else ""
    for names, units, how in _FORMS:
        if names.search(name) and (value := _sum(text, units)) is not None:
            number = f"{value:.15g}"
            is_plain = number.replace(".", "").isdigit()
            return f"; write {number}{how.format(text=text)}" if is_plain and is_allowed(number) else ""
    return ""


def _sum(text: str, units: Mapping[str, float]) -> float | None:
    """The sum of the parts of a text such as 1m30s, None if it is something else."""
    iso = _ISO_8601.fullmatch(text)
    plain = "".join(part for part in iso.groups() if part).lower() if iso else text
    parts = _PART.findall(plain)
    is_one = len(parts) == 1 or (len(parts) > 1 and "" not in units)
    is_read = is_one and not _PART.sub("", plain) and all(unit in units for _, unit in parts)
    return sum(float(number) * units[unit] for number, unit in parts) if is_read else None
