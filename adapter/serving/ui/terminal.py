"""The live table of `run`, and the summary at its end."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from adapter.core.messages import sentence
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.serving.ui import view
from adapter.serving.ui.view import Urgency, WorkloadRow

MOST_ROWS = 40
_STYLES = {
    Urgency.NO_NUMBER: "bold red",
    Urgency.ATTENTION: "yellow",
    Urgency.BEHIND: "yellow",
    Urgency.MOVING: "cyan",
    Urgency.CALM: "green",
}
_NUMBERS = ("arrival\n/s", "throughput\n/s", "backlog", "backlog\ntime", "target", "required", "current")
_MOST_COUNTS = 10  # of a summary's line


def table(snapshot: Snapshot | None, now_s: float, rows: int = MOST_ROWS) -> Table:
    """One line a workload, most urgent first; what does not fit is counted, not hidden."""
    _, notice = view.freshness(snapshot, now_s)
    entries = view.urgent_first(snapshot.entries) if snapshot is not None else []
    left_out = len(entries) - rows
    more = f"; {left_out:,} more workloads are on the page" if left_out > 0 else ""
    made = Table(box=box.SIMPLE_HEAD, caption=Text(notice + more, style="dim"), caption_justify="left", expand=True)
    made.add_column("workload", no_wrap=True)
    for name in _NUMBERS:
        made.add_column(name, justify="right", no_wrap=True)
    made.add_column("why", ratio=1, min_width=24)
    for entry in entries[:rows]:
        made.add_row(*_cells(view.workload_row(entry.decision)))
    return made


def summary(snapshot: Snapshot | None, moves: Mapping[str, Sequence[int]], ran_s: float) -> str:
    """What happened, a line a workload.

    moves: workload -> its worker counts in order, the one at the start first; empty if they were not observed.
    """
    entries = snapshot.entries if snapshot is not None else ()
    changes = sum(len(counts) - 1 for counts in moves.values())
    lines = [f"{view.duration(ran_s)}, {_plural(len(entries), 'workload')}, {_plural(changes, 'rescale')}"]
    width = max((len(entry.decision.workload) for entry in entries), default=0)
    for entry in entries:
        decision = entry.decision
        lines.append(f"  {decision.workload:<{width}}  {_path(moves.get(decision.workload))}{sentence(decision)}")
    if not entries:
        lines.append(
            "  nothing was decided yet: Spark starts in 20 s on a free machine, later on a busy one; run it for longer"
        )
    return "\n".join(lines)


def _cells(row: WorkloadRow) -> tuple[Text, ...]:
    style = _STYLES[row.urgency]
    numbers = (row.arrival, row.throughput, row.backlog, row.backlog_time, row.target, row.required, row.current)
    return (
        Text(f"{row.workload} {row.stage}".rstrip(), style="bold"),
        *(Text(number, style="dim" if number == view.UNKNOWN else "") for number in numbers),
        Text.assemble((row.reason, style), " ", row.sentence),
    )


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _path(counts: Sequence[int] | None) -> str:
    if counts is None:
        return ""
    words = [str(workers) for workers in counts]
    if len(words) > _MOST_COUNTS:
        words = [*words[:4], f"{len(words) - 8} more", *words[-4:]]
    return f"workers {' → '.join(words)}  "
