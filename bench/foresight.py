"""Compute the cost of plans that know the load and are as punctual as `drain`: at most 1 % of the time over 60 s.

A plan knows the whole load. With --minutes it knows that of the next minutes, and another one follows after five
minutes. In the oracle of the comparison, records may wait for five minutes. In these plans they may wait for one, so
the plans show how much foresight alone saves. With --late they may wait for five minutes too: the limit of profiles
whose pauses last a minute. The plans work in the simulator, but are not lower bounds. Prints the means over the
traces of half a day and more, for several prices of a rescale.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from adapter.backtest.trace import Trace, TraceError, windows
from adapter.backtest.unit_simulation import input_rates
from adapter.backtest.units import Unit
from adapter.core.samples import Array
from adapter.errors import AdapterError
from adapter.simulator.profiles import PROFILES
from adapter.simulator.score import Tally, scores
from bench import policies
from bench.machine import description
from bench.oracle import SLOT_S
from bench.oracle_comparison import ORACLE
from bench.overview import LEAST_DAYS, markdown
from bench.played_plan import LATE, MARGINS, PRICE_S, PlanLimit, play

ON_TARGET = PlanLimit(slo_s=60.0, price_s=PRICE_S, score="over_60s_pct", most_pct=1.0)
MOST_DAYS = 4.0  # a longer trace has several windows
PRICES_S = (120.0, 300.0, 600.0, 900.0, 1800.0)
_HEADS = ("price of a rescale, s", "× oracle", "rescales a day", "late %", "time over 60 s %", "traces over the limit")
_SCORES = ("worker_hours", "rescales_per_day", "late_pct", "over_60s_pct")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForesightTask:
    """A trace to plan for."""

    trace: Trace
    profile: str
    seed: int
    prices_s: tuple[float, ...] = PRICES_S  # of a rescale
    known_s: float = np.inf  # a plan knows the load of this time ahead when it is made
    limit: PlanLimit = ON_TARGET

    def limits(self) -> tuple[PlanLimit, ...]:
        """The limit of each plan, the oracle's first."""
        return LATE, *(replace(self.limit, price_s=price_s, known_s=self.known_s) for price_s in self.prices_s)


def main(words: Sequence[str] | None = None) -> None:
    """Plan for every trace, and print the means."""
    arguments = _parse_arguments(words)
    try:
        sys.stdout.write(f"{description()}\n")
        tasks = _tasks(arguments)
        with ProcessPoolExecutor() as pool:
            found = list(pool.map(plan, tasks))
    except AdapterError as error:
        sys.exit(f"foresight: {error}")
    sys.stdout.write(f"{table(found, tasks[0])}\n")


def _tasks(arguments: argparse.Namespace) -> list[ForesightTask]:
    """A task for each long trace. Raises AdapterError without any."""
    if not LEAST_DAYS <= arguments.days <= MOST_DAYS:
        raise TraceError(f"expected --days from {LEAST_DAYS:g} to {MOST_DAYS:g}, got {arguments.days:g}")
    known_s = 60 * arguments.minutes
    if not known_s >= SLOT_S:
        raise AdapterError(f"expected --minutes of at least {SLOT_S / 60:g}, got {arguments.minutes:g}")
    if not min(arguments.prices) >= 0:
        raise AdapterError("expected --prices of at least 0")
    tasks = [
        ForesightTask(
            trace=trace,
            profile=arguments.profile,
            seed=arguments.seed,
            prices_s=arguments.prices,
            known_s=known_s,
            limit=LATE if arguments.late else ON_TARGET,
        )
        for trace in policies.traces_of(arguments.traces, arguments.days)
        if policies.days_of(trace) >= LEAST_DAYS
    ]
    if not tasks:
        raise TraceError(f"{arguments.traces}: expected a trace of {LEAST_DAYS:g} days or more, got shorter ones")
    return tasks


def plan(task: ForesightTask) -> list[list[float]]:
    """The scores of the plan of each limit, with worker-hours as a ratio to those of the oracle."""
    unit = Unit(
        trace=task.trace.name,
        digest=task.trace.digest,
        window=windows(task.trace)[0],
        policy=ORACLE,
        profile=PROFILES[task.profile],
        seed=task.seed,
        normalised=True,
    )
    (rate,) = input_rates([unit], {task.trace.name: task.trace})
    played = [_scores_in_time(unit, rate, limit) for limit in task.limits()]
    rows = [[float(score[name][0]) for name in _SCORES] for score in played]
    hours = rows[0][0]
    return [[row[0] / hours, *row[1:]] for row in rows]


def _scores_in_time(unit: Unit, rate: Array, limit: PlanLimit) -> Mapping[str, Array]:
    """The scores of the plan with the smallest margin that keeps the limit; of the least late one if none does.

    Unlike `play`, it tries one margin after the other, because a plan with little foresight takes long to make.
    """
    found: list[Mapping[str, Array]] = []
    for margin in MARGINS if limit.known_s == np.inf else MARGINS[::2]:
        (played,) = play([unit], [rate], (margin,), limit)
        found.append(scores(Tally({name: np.asarray(values)[None] for name, values in played.sums.items()})))
        if found[-1][limit.score][0] <= limit.most_pct:
            return found[-1]
    return min(found, key=lambda score: float(score[limit.score][0]))


def table(found: Sequence[Sequence[Sequence[float]]], task: ForesightTask) -> str:
    """The means over the traces in Markdown, the oracle first.

    found: the rows of `plan` for each trace. task: one of the planned, which have the same limits.
    """
    names = (f"{LATE.price_s:g}, the oracle: records wait up to {LATE.slo_s:g} s", *(f"{p:g}" for p in task.prices_s))
    means = np.mean(np.array(found), axis=0)
    missed = (np.array(found)[:, :, _SCORES.index(task.limit.score)] > task.limit.most_pct).sum(axis=0)
    rows = [
        [name, f"{cost:.2f}", f"{rescales:.0f}", f"{late:.2f}", f"{over:.2f}", str(count)]
        for name, (cost, rescales, late, over), count in zip(names, means, missed, strict=True)
    ]
    return markdown(_HEADS, rows)


def _prices(text: str) -> tuple[float, ...]:
    return tuple(float(each) for each in text.split(","))


def _parse_arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.foresight", description=__doc__)
    parser.add_argument("--traces", type=Path, default=policies.TRACES, help="folder of `seconds,rate` files")
    parser.add_argument("--profile", choices=sorted(PROFILES), default="consumer-group")
    parser.add_argument("--days", type=float, default=2.0, help="plan for at most the first days of a trace")
    parser.add_argument("--minutes", type=float, default=np.inf, help="what a plan knows of the load")
    parser.add_argument("--late", action="store_true", help="records may wait for five minutes, as in the oracle")
    parser.add_argument(
        "--prices", type=_prices, default=PRICES_S, help="of a rescale, in seconds of all workers: 900,1800"
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
