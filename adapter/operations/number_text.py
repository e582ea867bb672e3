"""Numbers of a record as text: the unit is in the name."""

from adapter.core.formatting import UNKNOWN
from adapter.serving.ui.view import count, duration

_FACTORS = ("relative_lag_change_ratio", "hottest_partition_ratio")  # ratios around 1 that are not shares
_IN_SECONDS_UNTIL_S = 600.0
_SUFFIXES = ("_records_per_s", "_records", "_workers", "_ratio", "_s")


def with_unit(name: str, value: float | None) -> str:
    """A rounded number with its unit."""
    if value is None:
        return UNKNOWN
    if name == "relative_lag_change_ratio" and value < 0:  # core.signals.gated_lag_change
        return "below the threshold"
    if name.endswith("_per_s"):
        return f"{_signed(value)}/s"
    if name.endswith("_ratio"):
        return f"{value:.2f}" if name in _FACTORS else f"{value * 100:.0f} %"
    return time_text(value) if name.endswith("_s") else _signed(value)


def exact(name: str, value: float) -> str:
    """A number with all its digits and its unit."""
    scaled = value * 100 if name.endswith("_ratio") else value
    unit = {"_per_s": "/s", "_ratio": " %", "_s": " s"}
    suffix = next((text for ending, text in unit.items() if name.endswith(ending)), "")
    return f"{scaled:,.10g}".replace(",", " ") + suffix


def title(name: str) -> str:
    """A name without its unit, with spaces."""
    bare = next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)
    return (name if name.endswith("_workers") else bare).replace("_", " ")


def yes_or_no(value: float | None) -> str:
    """A boolean of a record."""
    return "yes" if value == 1 else "no"


def ago(seconds: float | None) -> str:
    """An age."""
    return "never" if seconds is None else f"{time_text(seconds)} ago"


def time_text(seconds: float | None) -> str:
    """A duration; short ones in seconds, so that they compare with a setting."""
    if seconds is not None and seconds < _IN_SECONDS_UNTIL_S:
        return f"{count(seconds)} s"
    return duration(seconds)


def number(workers: float | None) -> str:
    """A number of workers, or that there is none."""
    return "no number" if workers is None else count(round(workers))  # 0, and never -0


def _signed(value: float) -> str:
    return f"-{count(-value)}" if value < 0 else count(value)
