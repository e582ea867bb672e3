"""Play `drain` at several values of a rescale beside every other policy, and compare worker-hours and rescales.

A policy without a late trace is beaten if `drain` at one of these values has no more worker-hours and no more rescales,
and is not late either. Draws docs/frontier.svg. Traces, profiles and other options are those of bench.policies, whose
stored results are used.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from adapter.backtest import command
from adapter.backtest.summary import Summary
from bench import frontier_picture, overview, policies
from bench.frontier_picture import FrontierPoint

FILE = Path(__file__).parents[1] / "docs" / "frontier.svg"
CURVE = tuple(f"drain:rescale_worth_s={worth}" for worth in (1, 3, 10, 30, 60, 120, 300, 900, 3600, 86_400))
_HEADS = ("× oracle", "rescales a day", "time over 60 s %", "late traces", "`drain` needs no more of both at")


def main(words: Sequence[str] | None = None) -> None:
    """Simulate what is missing, print the tables and draw the picture."""
    played = (*CURVE, *policies.POLICIES)
    policies.run(policies.parse_arguments(words, played, "python -m bench.frontier", __doc__), _report)


def points(rows: Sequence[Summary], names: Sequence[str]) -> list[FrontierPoint]:
    """The policies on the traces of one profile and delay."""
    return [
        FrontierPoint(
            policy=name,
            cost_ratio=overview.mean(rows, name, "worker_hours_ratio"),
            rescales_per_day=overview.mean(rows, name, "rescales_per_day"),
            over_60s_pct=overview.mean(rows, name, "over_60s_pct"),
            late_traces=overview.late_traces(rows, name),
        )
        for name in names
    ]


def dominating_point(
    point: FrontierPoint, curve: Sequence[FrontierPoint], slack_ratio: float = 0.0
) -> FrontierPoint | None:
    """Find the point of the curve that beats a policy: no late trace, no more worker-hours, no more rescales; or None.

    slack_ratio: up to this share more still counts as no more.
    """
    more = 1 + slack_ratio
    found = (
        one
        for one in curve
        if not one.late_traces
        and one.cost_ratio <= point.cost_ratio * more
        and one.rescales_per_day <= point.rescales_per_day * more
    )
    return min(found, key=lambda one: one.rescales_per_day, default=None)


def table(title: str, found: Sequence[FrontierPoint]) -> str:
    """The points in Markdown, each with the value at which `drain` beats it."""
    curve = [point for point in found if point.policy in CURVE]
    return overview.markdown((title, *_HEADS), [list(_cells(point, curve)) for point in found])


def _report(backtest: command.TraceBacktest, summaries: Sequence[Summary]) -> None:
    profiles = {title: points(rows, backtest.policies) for title, rows in overview.by_profile(summaries)}
    for title, found in profiles.items():
        sys.stdout.write(f"{table(title, found)}\n\n")
    FILE.write_text(frontier_picture.draw(profiles, CURVE), encoding="utf-8")
    sys.stdout.write(f"{FILE}\n")


def _cells(point: FrontierPoint, curve: Sequence[FrontierPoint]) -> Iterator[str]:
    yield f"`{point.policy}`"
    yield from (f"{point.cost_ratio:.2f}", f"{point.rescales_per_day:.0f}", f"{point.over_60s_pct:.2f}")
    yield str(point.late_traces)
    if point.policy.startswith("drain"):
        yield ""
    elif point.late_traces:
        yield "late"
    else:
        at = dominating_point(point, curve)
        yield "no value" if at is None else at.policy.partition(":")[2].replace("+", ", ")


if __name__ == "__main__":
    main()
