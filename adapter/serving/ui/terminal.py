"""The live table of `run`, and the summary at its end."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from rich.console import Console, Group
from rich.text import Text

from adapter.core.formatting import counted
from adapter.core.messages import sentence
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.serving.ui import view
from adapter.serving.ui.view import Urgency, WorkloadRow

_STYLES = {
    Urgency.NO_NUMBER: "bold red",
    Urgency.ATTENTION: "yellow",
    Urgency.BEHIND: "yellow",
    Urgency.MOVING: "cyan",
    Urgency.CALM: "green",
}
_HEAD = (
    ("workload", "input", "throughput", "", "backlog", "", "", ""),
    ("", "/s", "/s", "backlog", "time", "target", "required", "current"),
)
_INDENT = "  "
_SHORTEST_NAME = 8
_MOST_COUNTS = 10  # of a summary's line


def table(console: Console, snapshot: Snapshot | None, now_s: float) -> Group:
    """The numbers of each workload in a line and its sentence below, most urgent first, within the console.

    Sentences are shortened first, from the least urgent; then workloads are left out and counted.
    """
    _, notice = view.freshness(snapshot, now_s)
    footer = Text(notice, style="dim").wrap(console, console.width)
    entries = view.urgent_first(snapshot.entries) if snapshot is not None else []
    room = max(console.height - len(_HEAD) - len(footer) - 1, 2)  # the last line is for what is left out
    rows = [view.workload_row(entry.decision) for entry in entries[: room // 2]]
    if len(entries) > len(rows):
        footer.append(Text(f"{len(entries) - len(rows):,} more workloads are on the page", style="dim", no_wrap=True))
    head, numbers = _align(rows, console.width)
    sentences = _shorten([_sentence(row, console) for row in rows], room - len(rows), console.width)
    pairs = zip(numbers, sentences, strict=True)
    return Group(*head, *chain.from_iterable((line, *below) for line, below in pairs), *footer)


def summary(snapshot: Snapshot | None, moves: Mapping[str, Sequence[int]], ran_s: float) -> str:
    """Summarize a run, with a line for each workload.

    moves: workload -> its worker counts in order, the one at the start first; empty if they were not observed.
    """
    entries = snapshot.entries if snapshot is not None else ()
    changes = sum(len(counts) - 1 for counts in moves.values())
    lines = [f"{_whole(ran_s)}, {counted(len(entries), 'workload')}, {counted(changes, 'rescale')}"]
    width = max((len(entry.decision.workload) for entry in entries), default=0)
    for entry in entries:
        decision = entry.decision
        lines.append(f"  {decision.workload:<{width}}  {_path(moves.get(decision.workload))}{sentence(decision)}")
    if not entries:
        lines.append(
            "  nothing was decided yet: on a busy machine Spark starts in up to two minutes; run it for longer"
        )
    return "\n".join(lines)


def _whole(ran_s: float) -> str:
    """A duration to the second, so that the time given with `--for` is recognizable."""
    minutes, seconds = divmod(round(ran_s), 60)
    hours, minutes = divmod(minutes, 60)
    parts = {"h": hours, "min": minutes, "s": seconds}
    return " ".join(f"{value} {unit}" for unit, value in parts.items() if value) or "0 s"


def _align(rows: Sequence[WorkloadRow], width: int) -> tuple[list[Text], list[Text]]:
    """The lines of the head and of the numbers, in columns. A name is cut before a number is."""
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*_HEAD, *cells, strict=True)]
    name_width = max(min(widths[0], width - sum(each + 1 for each in widths[1:])), _SHORTEST_NAME)
    lines = [_line(each, (name_width, *widths[1:])) for each in (*_HEAD, *cells)]
    return lines[: len(_HEAD)], lines[len(_HEAD) :]


def _line(cells: Sequence[str], widths: Sequence[int]) -> Text:
    name = Text(cells[0], style="bold")
    name.truncate(widths[0], overflow="ellipsis", pad=True)
    numbers = "".join(f" {cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
    return Text.assemble(name, numbers, no_wrap=True, overflow="ellipsis")


def _cells(row: WorkloadRow) -> tuple[str, ...]:
    numbers = (row.input_rate, row.throughput, row.backlog, row.backlog_time, row.target, row.required, row.current)
    # Numbers have blanks within, so two blanks stand between them.
    return (f"{row.workload} {row.stage}".rstrip(), *(f" {number}" for number in numbers))


def _sentence(row: WorkloadRow, console: Console) -> list[Text]:
    text = Text.assemble((row.reason, _STYLES[row.urgency]), ": ", row.sentence)
    return [Text.assemble(_INDENT, line) for line in text.wrap(console, console.width - len(_INDENT))]


def _shorten(sentences: Sequence[list[Text]], lines: int, width: int) -> Iterator[list[Text]]:
    """Each sentence in at least one line, and together in at most this number of lines, which is not smaller."""
    spare = lines - len(sentences)
    for whole in sentences:
        shown = whole[: 1 + spare]
        spare -= len(shown) - 1
        if len(shown) < len(whole):
            shown[-1].truncate(width - 1)
            shown[-1].append("…")
        yield shown


def _path(counts: Sequence[int] | None) -> str:
    if counts is None:
        return ""
    words = [str(workers) for workers in counts]
    if len(words) > _MOST_COUNTS:
        words = [*words[:4], f"({len(words) - 8} more)", *words[-4:]]
    return f"workers {' → '.join(words)}  "
