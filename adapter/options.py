"""The options that take a number or many files. The error of a wrong number names the option and what was expected."""

import re
from collections.abc import Callable
from pathlib import Path
from sys import float_info
from typing import Annotated, TypeVar

import typer

from adapter.errors import ConfigError

Number = TypeVar("Number", int, float)

UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def _duration_s(option: str) -> Callable[[str], float]:
    """Parse a duration of more than 0."""

    def parse(text: str) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text)
        seconds = float(found[1]) * UNITS_S[found[2] or "s"] if found else 0.0
        if seconds <= 0:
            raise ConfigError([f"{option}: expected a duration of more than 0, such as 120s, 2m or 1h, got {text!r}"])
        return seconds

    return parse


def _number(
    kind: type[Number], option: str, expected: str, *, least: float = 0.0, most: float = float_info.max
) -> Callable[[str], Number]:
    """Parse a number from `least` to `most`. expected: the end of "expected ...", for the error."""

    def parse(text: str) -> Number:
        try:
            value = kind(text)
        except ValueError:
            value = kind(-1)
        if not least <= value <= most:
            raise ConfigError([f"{option}: expected {expected}, got {text!r}"])
        return value

    return parse


HpaFiles = Annotated[
    list[Path] | None,
    typer.Option("--hpa", metavar="PATH", help="A file or a folder of manifests with HPAs; may be given again."),
]
_PRICE = "a price of at least 0, such as 0.04"

Duration = Annotated[
    float | None,
    typer.Option(
        "--for", parser=_duration_s("--for"), metavar="DURATION", help="Stop after this time, such as 120s or 2m."
    ),
]
Port = Annotated[
    int,
    typer.Option(
        parser=_number(int, "--port", "a port from 0 to 65535", most=65535),
        metavar="PORT",
        help="Port of the page and the API on loopback; 0 selects a free port.",
    ),
]
WorkerCapacity = Annotated[
    float | None,
    typer.Option(
        parser=_number(float, "--worker-capacity", "more than 0 records/s, such as 500", least=float_info.min),
        metavar="RECORDS_PER_S",
        help="With --trace: records/s that one worker processes. Without it, the output states the assumed value.",
    ),
]
Seeds = Annotated[
    int,
    typer.Option(
        parser=_number(int, "--seeds", "a whole number from 1 to 1000", least=1, most=1000),
        metavar="NUMBER",
        help="With --trace: random seeds for each policy, trace and profile.",
    ),
]
Price = Annotated[
    float | None,
    typer.Option(
        parser=_number(float, "--price", _PRICE),
        metavar="PRICE",
        help="Price of a worker-hour; by default rules.worker_hour_price, if set.",
    ),
]
LatePrice = Annotated[
    float | None,
    typer.Option(
        parser=_number(float, "--late-price", _PRICE),
        metavar="PRICE",
        help="Price of a minute over the backlog-time target; by default rules.late_minute_price, if set.",
    ),
]
