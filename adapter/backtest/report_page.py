"""A Report -> one HTML page. It asks no network: plotly.js is in it, and its own security policy forbids the rest."""

import html
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template

from adapter.backtest.report_charts import figures
from adapter.backtest.report_content import MEASURED, Chapter, Fact, Report, Score, Target

_SIMULATED = ("Simulated", "The job under each policy: what it asks for is done, and has its effect (closed loop).")
_ASKED = (
    "Looking on",
    "What each policy would have asked for while the job ran as it did (open loop). Nobody acts on it, so that a "
    "policy whose number was not enacted goes on asking.",
)
_FACTS = (
    "The simulated job is a fluid model. What is listed here comes from the history or the configuration; the skew of "
    "partitions, the spread of pauses and starts and the noise of workers are the model's own."
)


def page(report: Report) -> str:
    """The page as one text."""
    from plotly.offline import get_plotlyjs  # 5 MB that only this function needs

    chapters = enumerate(report.chapters)
    drawn = [figure for number, chapter in enumerate(report.chapters) for figure in figures(number, chapter)]
    template = Template(files("adapter.backtest").joinpath("report.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=_text(report.title),
        notes=_list(report.notes),
        chapters="\n".join(_chapter(number, chapter, report) for number, chapter in chapters),
        # "</" within a text would end the script element.
        figures=json.dumps(drawn, allow_nan=False, separators=(",", ":")).replace("</", "<\\/"),
        plotly=get_plotlyjs(),
    )


def cost(report: Report, score: Score) -> float | None:
    """What the workers cost; None without a price or without hours."""
    return None if report.price is None or score.worker_hours is None else report.price * score.worker_hours


def _chapter(number: int, chapter: Chapter, report: Report) -> str:
    parts = [f"<h2>{_text(chapter.title)}</h2>"]
    if chapter.target is not None:
        parts.append(_target(chapter.target))
    parts.append(_list(chapter.notes))
    if chapter.scores:
        parts.append(_scores(chapter, report))
    if chapter.simulated:
        parts.append(_figure(f"simulated-{number}", _SIMULATED, "tall"))
    if chapter.asked:
        parts.append(_figure(f"asked-{number}", _ASKED, "low"))
    if chapter.facts:
        parts.append(_facts(chapter.facts))
    return f'<section aria-label="{_text(chapter.title)}">{"".join(parts)}</section>'


def _target(target: Target) -> str:
    value = f'averageValue: "{_text(target.average_value)}"'
    return (
        f'<p class="target"><span>In the HPA, for <b>{_text(target.policy)}</b>:</span> <code>{value}</code> '
        f"<span>{_text(target.why)}</span></p>"
    )


def _figure(place: str, caption: tuple[str, str], height: str) -> str:
    told = f"<figcaption><b>{caption[0]}</b> {caption[1]}</figcaption>"
    return f'<figure>{told}<div class="chart {height}" id="{place}"></div></figure>'


def _scores(chapter: Chapter, report: Report) -> str:
    ran = next((score.worker_hours for score in chapter.scores if score.kind == MEASURED), None)
    late = f"Share of time behind more than {chapter.target_s:g} s"
    titles = ["", "", "Worker-hours", "Against what ran", f"Cost, {report.currency}", late]
    titles += ["99 % of backlog times", "Rescales", "Paused"]
    shown = [True, True, True, bool(ran), report.price is not None, True, True, True, True]
    rows = [_score(score, ran, report) for score in chapter.scores]
    table = [[cell for cell, is_shown in zip(row, shown, strict=True) if is_shown] for row in [titles, *rows]]
    return _table(table, 2)


def _score(score: Score, ran: float | None, report: Report) -> list[str]:
    money, against = cost(report, score), None
    if ran and score.worker_hours is not None:
        against = score.worker_hours / ran - 1
    return [
        score.name,
        score.kind,
        _number(score.worker_hours, "{:,.1f}"),
        "–" if score.kind == MEASURED else _number(against, "{:+.0%}"),
        _number(money, "{:,.2f}"),
        _number(score.late_ratio, "{:.2%}"),
        _number(score.p99_s, "{:,.0f} s"),
        _number(score.rescales, "{:,.0f}"),
        _number(score.pause_s, "{:,.0f} s"),
    ]


def _facts(facts: Sequence[Fact]) -> str:
    rows = [[fact.name, fact.value, _number(fact.seen or None, "{:,}", "none"), fact.how] for fact in facts]
    table = _table([["The job", "Value", "Observations", "Where it comes from"], *rows], 1, "facts")
    return f"<details><summary>What the simulated job was made from</summary><p>{_FACTS}</p>{table}</details>"


def _table(rows: Sequence[Sequence[str]], names: int, kind: str = "scores") -> str:
    """A table; its first row are titles. names: so many columns are no numbers."""
    head = "".join(f'<th scope="col">{_text(cell)}</th>' if cell else "<td></td>" for cell in rows[0])
    body = "".join(
        f'<tr><th scope="row">{_text(row[0])}</th>' + "".join(f"<td>{_text(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows[1:]
    )
    table = f'<table class="{kind} names-{names}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="frame">{table}</div>'


def _list(notes: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(note)}</li>" for note in notes)
    return f'<ul class="notes">{items}</ul>' if items else ""


def _number(value: float | None, form: str, unknown: str = "unknown") -> str:
    return unknown if value is None else form.format(value).replace(",", "\u202f").replace("-", "−")


def _text(text: str) -> str:
    return html.escape(text, quote=True)
