"""Numbers as text with their units; None is unknown."""

UNKNOWN = "unknown"
RESOURCES = {"cpu_ratio": "CPU", "memory_ratio": "memory", "network_ratio": "network"}  # signal -> its name
DAY_S = 86_400.0


def count(value: float | None) -> str:
    """A whole number in groups of three digits."""
    return UNKNOWN if value is None else f"{value:,.0f}".replace(",", " ")


def counted(value: float | None, noun: str) -> str:
    """A whole number with its noun, which is singular only for 1."""
    return f"{count(value)} {noun}{'' if count(value) == '1' else 's'}"


def workers(value: float | None) -> str:
    """A number of workers with its noun."""
    return counted(value, "worker")


def waiting_records(value: float | None) -> str:
    """A number of records with its noun and verb."""
    return f"{counted(value, 'record')} wait{'s' if count(value) == '1' else ''}"


def seconds(value: float | None, minutes_from_s: float = 600) -> str:
    """A duration in seconds, minutes or hours, minutes from minutes_from_s on."""
    if value is None:
        return UNKNOWN
    if value >= DAY_S:
        return "over a day"
    if value >= minutes_from_s:
        return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def soon(value: float | None) -> str:
    """A duration, in minutes from two minutes on."""
    return seconds(value, minutes_from_s=120)


def at_most(value: float | None) -> str:
    """The longest of several durations, unless it has no known end."""
    return seconds(value) if value is not None and value >= DAY_S else f"at most {seconds(value)}"


def rate(value: float | None) -> str:
    """A rate in records a second. Only a rate of 0 is shown as 0."""
    if value is None:
        return UNKNOWN
    if 0 < value < 0.05:
        return "below 0.05/s"
    return f"{value:.1f}/s" if 0 < value < 10 else f"{count(value)}/s"


def share(value: float | None) -> str:
    """A ratio in percent."""
    return UNKNOWN if value is None else f"{value * 100:.0f} %"


def times(value: float | None) -> str:
    """A multiple."""
    return "many times" if value is None else f"{value:.1f} times"
