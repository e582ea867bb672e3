"""Means over the traces of a benchmark, as one Markdown table for each profile and metric delay."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from adapter.backtest.summary import Summary
from adapter.core.formatting import counted
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
    for title, rows in by_profile(summaries):
        heads = [f"{title}, means", *(heading for heading, _, _ in _MEANS), f"traces over {LATE_PCT:g} % late"]
        yield markdown(heads, [_cells(policy, rows) for policy in policies])


def by_profile(summaries: Sequence[Summary]) -> Iterator[tuple[str, list[Summary]]]:
    """The rows of each profile and delay, of the traces of half a day and more, with a title."""
    long = sorted((row for row in summaries if row.scores["days"].median >= LEAST_DAYS), key=_place)
    for (profile, delay_s), group in groupby(long, key=_place):
        rows = list(group)
        traces = len({row.trace for row in rows})
        yield f"{profile}, metrics {delay_s:g} s late, {counted(traces, 'trace')}", rows


def mean(rows: Sequence[Summary], policy: str, name: str) -> float:
    """The mean of a score of a policy."""
    return float(np.mean([row.scores[name].median for row in rows if row.policy == policy]))


def late_traces(rows: Sequence[Summary], policy: str) -> int:
    """The traces on which a policy is late for too many records."""
    return sum(row.scores["late_pct"].median > LATE_PCT for row in rows if row.policy == policy)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a document."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *rows))


def _cells(policy: str, rows: Sequence[Summary]) -> list[str]:
    means = [form.format(mean(rows, policy, name)) for _, name, form in _MEANS]
    return [f"`{policy}`", *means, str(late_traces(rows, policy))]


def _place(row: Summary) -> tuple[str, float]:
    return row.profile, row.delay_s
