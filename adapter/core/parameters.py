"""A rule book -> one array a parameter, so that rules can be applied to all workloads at once."""

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache

import numpy as np

from adapter.core.rules import RuleBook, Rules
from adapter.core.samples import Array

_NAMES = tuple(f.name for f in fields(Rules))
_CHOICES = {f.name: f.metadata["one_of"] for f in fields(Rules) if "one_of" in f.metadata}


def columns(workloads: tuple[str, ...], fleet: Array, book: RuleBook) -> Mapping[str, Array]:
    """Parameter -> shape (workloads,). A choice is the index of its name, an unset limit NaN.

    fleet: (workloads,) the index of the fleet that found each, NaN for a configured one.
    """
    used = [
        book.of(name, None if np.isnan(number) else int(number)) for name, number in zip(workloads, fleet, strict=True)
    ]
    distinct = {id(rules): rules for rules in used}
    place = {key: number for number, key in enumerate(distinct)}
    which = np.array([place[id(rules)] for rules in used], dtype=np.int64)
    table = np.array([_values(rules) for rules in distinct.values()], dtype=np.float64).reshape(
        len(distinct), len(_NAMES)
    )
    return {name: table[which, number] for number, name in enumerate(_NAMES)}


@lru_cache(maxsize=4096)
def _values(rules: Rules) -> tuple[float, ...]:
    return tuple(_number(name, getattr(rules, name)) for name in _NAMES)


def _number(name: str, value: str | float | None) -> float:
    if value is None:
        return np.nan
    return float(_CHOICES[name].index(value)) if name in _CHOICES else float(value)
