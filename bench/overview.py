"""Means over the traces of a benchmark, as one Markdown table for each profile and metric delay."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from adapter.backtest.summary import Summary
from bench.oracle_comparison import COSTS
from bench.played_plan import LATE_PCT

LEAST_DAYS = 0.5  # a shorter trace is mostly its cold start
_MEANS = (
    ("× oracle", "worker_hours_ratio", "{:.2f}"),
    ("rescales a day", "rescales_per_day", "{:.0f}"),
    ("late %", "late_pct", "{:.2f}"),
    ("time over 60 s %", "over_60s_pct", "{:.2f}"),
    *((f"cost at {price}", f"{name}_ratio", "{:.2f}") for price, name in COSTS.items()),
)


def overview(summaries: Sequence[Summary], policies: Sequence[str]) -> Iterator[str]:
    """The tables, each with a row for every policy in the given order; none without a trace of half a day."""
    long = sorted((row for row in summaries if row.scores["days"].median >= LEAST_DAYS), key=_place)
    for (profile, delay_s), group in groupby(long, key=_place):
        rows = list(group)
        traces = len({row.trace for row in rows})
        title = f"{profile}, metrics {delay_s:g} s late, means over {traces} trace{'s'[: traces != 1]}"
        heads = [title, *(heading for heading, _, _ in _MEANS), f"traces over {LATE_PCT:g} % late"]
        lines = [heads, ["---"] * len(heads), *(_cells(policy, rows) for policy in policies)]
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(policy: str, rows: Sequence[Summary]) -> list[str]:
    own = [row.scores for row in rows if row.policy == policy]
    means = [form.format(np.mean([scores[name].median for scores in own])) for _, name, form in _MEANS]
    return [f"`{policy}`", *means, str(sum(scores["late_pct"].median > LATE_PCT for scores in own))]


def _place(row: Summary) -> tuple[str, float]:
    return row.profile, row.delay_s
