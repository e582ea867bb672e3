"""Numbers as text, as Grafana's units show them."""

_TIMES = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))
_SIZES = ((1e9, "G"), (1e6, "M"), (1e3, "K"))
_SUFFIXES = {"reqps": " req/s", "d": " d"}


def formatted(value: float | None, unit: str) -> str:
    """The number with its unit; a dash if it is unknown."""
    if value is None:
        return "–"
    if unit == "s":
        return _seconds(value)
    if unit == "percentunit":
        return f"{_short(100 * value)} %"
    return f"{_short(value)}{_SUFFIXES.get(unit, '')}"


def _seconds(value: float) -> str:
    for size, name in _TIMES:
        if abs(value) >= size:
            return f"{_plain(value / size)} {name}"
    return f"{_plain(1000 * value)} ms" if value else "0 s"


def _short(value: float) -> str:
    for size, letter in _SIZES:
        if abs(value) >= size:
            return f"{_plain(value / size)} {letter}"
    return _plain(value)


def _plain(value: float) -> str:
    """Three significant digits at most, and no decimal point at the end."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
