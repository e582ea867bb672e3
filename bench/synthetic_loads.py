"""Write synthetic loads of two days: `python -m bench.synthetic_loads FOLDER`.

`make bench-policies TRACES=FOLDER` then compares the policies on them. In most, steps, batches and bursts come without
warning.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from adapter.backtest.trace import HEADER
from adapter.core.rates import Mask
from adapter.core.samples import Array

DAYS, STEP_S = 2, 15
_DAY_S, _HOUR_S = 86_400, 3_600
_NOISE_RATIO = 0.03
_AT_S = np.arange(0, DAYS * _DAY_S, STEP_S)

Load = Callable[[np.random.Generator], Array]


def main(folder: Path) -> None:
    """Write each load as a file of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in LOADS:
        rows = (f"{at_s},{rate:.3f}\n" for at_s, rate in zip(_AT_S, rates(name), strict=True))
        (folder / f"{name}.csv").write_text(f"{HEADER}\n{''.join(rows)}")


def rates(name: str) -> Array:
    """The records/s of a load in each step: the same in every run."""
    random = np.random.default_rng([*name.encode()])
    noise = 1 + _NOISE_RATIO * random.standard_normal(len(_AT_S))
    return np.maximum(LOADS[name](random) * noise, 0.0)


def _is_within(begin_s: float, length_s: float) -> Mask:
    since_s = _AT_S - begin_s
    within: Mask = (since_s >= 0) & (since_s < length_s)
    return within


def _daily() -> Array:
    return 600 + 350 * np.sin(2 * np.pi * (_AT_S / _DAY_S - 0.3))


def _batches(every_s: int, length_s: int, base: float) -> Load:
    return lambda random: np.where(_AT_S % every_s < length_s, 1000.0, base)


def _batches_on_daily(random: np.random.Generator) -> Array:
    return 0.6 * _daily() + np.where(_AT_S % _HOUR_S < 600, 500.0, 0.0)


def _cron(random: np.random.Generator) -> Array:
    """Jobs of fixed hours, each with its minutes and its multiple of the base."""
    rate = np.full(len(_AT_S), 150.0)
    for hour, minutes, times in ((1, 40, 5), (2, 20, 7), (6, 90, 3), (9, 480, 4), (20, 15, 7), (22, 60, 4)):
        begin_s = hour * _HOUR_S + random.uniform(0, 300)
        rate[(_AT_S % _DAY_S - begin_s) % _DAY_S < minutes * 60] = 150.0 * times
    return rate


def _bursts(random: np.random.Generator) -> Array:
    rate = np.full(len(_AT_S), 300.0)
    for begin_s in random.uniform(0, DAYS * _DAY_S - 1800, 20 * DAYS):
        rate[_is_within(begin_s, random.uniform(240, 1500))] *= random.uniform(1.5, 4)
    return np.where(rate > 1500, 1500.0, rate)


def _flash_crowds(random: np.random.Generator) -> Array:
    rate = 0.3 * _daily()
    for begin_s in random.uniform(0, DAYS * _DAY_S - _HOUR_S, 4 * DAYS):
        since_s = np.maximum(_AT_S - begin_s, 0)
        rate = rate + 900 * np.exp(-since_s / 900) * np.minimum(since_s / 30, 1)
    return rate


def _outages(random: np.random.Generator) -> Array:
    """Three times a day almost no input for a quarter of an hour, and twice as much in the next."""
    rate = 600 + 300 * np.sin(2 * np.pi * _AT_S / _DAY_S)
    for begin_s in (20_000, 50_000, 70_000):
        since_s = _AT_S % _DAY_S - begin_s
        rate = np.select([(since_s >= 0) & (since_s < 900), (since_s >= 900) & (since_s < 1800)], [5, 2 * rate], rate)
    return rate


def _levels(span_s: int) -> Load:
    """Independent levels, each for the same time."""

    def load(random: np.random.Generator) -> Array:
        levels = np.clip(random.lognormal(0, 0.8, DAYS * _DAY_S // span_s), 0.1, 8)
        return 300 * np.repeat(levels, span_s // STEP_S)

    return load


def _wave(period_s: int) -> Load:
    return lambda random: 600 + 500 * np.sin(2 * np.pi * _AT_S / period_s)


def _ramps(random: np.random.Generator) -> Array:
    """Every three hours five times the input within a quarter of an hour, for an hour."""
    at_s = _AT_S % (3 * _HOUR_S)
    return 200 + 800 * np.clip((at_s - 3600) / 900, 0, 1) * (at_s < 8100)


def _spikes(random: np.random.Generator) -> Array:
    """A minute of six times the input, twice an hour at random."""
    rate = np.full(len(_AT_S), 300.0)
    for begin_s in random.uniform(0, DAYS * _DAY_S - 60, 48 * DAYS):
        rate[_is_within(begin_s, 60)] = 1800.0
    return rate


LOADS: Mapping[str, Load] = {
    "batches_15m": _batches(900, 180, 250.0),
    "batches_1h": _batches(_HOUR_S, 480, 150.0),
    "batches_2h": _batches(2 * _HOUR_S, 2400, 200.0),
    "batches_on_daily": _batches_on_daily,
    "bursts": _bursts,
    "cron": _cron,
    "flash_crowds": _flash_crowds,
    "levels_5m": _levels(300),
    "levels_1h": _levels(_HOUR_S),
    "outages": _outages,
    "ramps": _ramps,
    "spikes": _spikes,
    "wave_2h": _wave(2 * _HOUR_S),
    "wave_1d": lambda random: _daily(),
}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
