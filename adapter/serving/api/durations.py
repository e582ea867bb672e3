"""A duration such as `1m30s` -> seconds, with the grammar and the errors of Go's time package."""

import re

_UNITS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_UNITS_NS |= {"h": 3600 * 10**9}
_TERM = re.compile(r"(\d*)(?:\.(\d*))?([^.\d]*)", re.ASCII)
_LARGEST_NS = 2**63 - 1
_MOST_DIGITS = 19  # more make a number that no int64 holds


class DurationError(ValueError):
    """The text is no duration; the message is Go's."""


def seconds(text: str) -> float:
    """The duration in seconds, negative ones too. Raises DurationError."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0.0
    total_ns = 0
    for found in _TERM.finditer(unsigned or "."):
        total_ns += _term_ns(found, text) if found[0] else 0
        if total_ns > _LARGEST_NS + 1:
            raise _invalid(text)
    if total_ns > _LARGEST_NS and text[0] != "-":
        raise _invalid(text)
    return (-total_ns if text[0] == "-" else total_ns) / 1e9


def _term_ns(found: re.Match[str], text: str) -> int:
    whole, fraction, unit = found.groups()
    if not (whole or fraction) or len(whole.lstrip("0")) > _MOST_DIGITS:
        raise _invalid(text)
    if not unit:
        raise DurationError(f"missing unit in duration {_quoted(text)}")
    if unit not in _UNITS_NS:
        raise DurationError(f"unknown unit {_quoted(unit)} in duration {_quoted(text)}")
    digits = (fraction or "")[:_MOST_DIGITS]
    unit_ns = _UNITS_NS[unit]
    return int(whole.lstrip("0") or 0) * unit_ns + int(int(digits or 0) * unit_ns / 10 ** len(digits))


def _invalid(text: str) -> DurationError:
    return DurationError(f"invalid duration {_quoted(text)}")


def _quoted(text: str) -> str:
    """In quotes, whatever is not printable ASCII as its bytes: unlike the quotes of all other messages."""
    return f'"{"".join(map(_written, text))}"'


def _written(character: str) -> str:
    if character in ('"', "\\"):
        return f"\\{character}"
    plain = " " <= character < "\x80"
    return character if plain else "".join(f"\\x{byte:02x}" for byte in character.encode())
