"""A Report as one HTML page. It contains plotly.js, and its security policy forbids network access."""

import html
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template

from adapter.backtest.report_charts import figures
from adapter.backtest.report_content import MEASURED, Fact, HpaTarget, Report, Score, Section

_SIMULATED = ("Simulated", "The job under each policy: the HPA enacts the recommendations (closed loop).")
_RECOMMENDED = (
    "Recommended",
    "The recommendations of each policy while the job runs as recorded (open loop). They are not enacted, so a policy "
    "keeps recommending what the job did not do.",
)
_FACTS = (
    "The simulated job is a fluid model. The values listed here come from the history or the configuration. The skew "
    "of partitions, the spread of pauses and starts, and the noise of workers are defaults of the model."
)


def page(report: Report) -> str:
    """Render the page."""
    from plotly.offline import get_plotlyjs  # 5 MB, needed by this function alone

    sections = enumerate(report.sections)
    drawn = [figure for number, section in enumerate(report.sections) for figure in figures(number, section)]
    template = Template(files("adapter.backtest").joinpath("report.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=_text(report.title),
        notes=_list(report.notes),
        sections="\n".join(_section_page(number, section, report) for number, section in sections),
        # "</" in a string would end the script element.
        figures=json.dumps(drawn, allow_nan=False, separators=(",", ":")).replace("</", "<\\/"),
        plotly=get_plotlyjs(),
    )


def costs(section: Section, score: Score) -> tuple[float | None, float | None]:
    """The cost of the workers and of the late time; None without a price or an amount."""
    return section.prices.workers(score.worker_hours), section.prices.lateness(score.late_minutes)


def _section_page(number: int, section: Section, report: Report) -> str:
    parts = [f"<h2>{_text(section.title)}</h2>"]
    if section.target is not None:
        parts.append(_target(section.target))
    parts.append(_list(section.notes))
    if section.scores:
        parts.append(_scores(section, report))
    if section.simulated:
        parts.append(_figure(f"simulated-{number}", _SIMULATED, "tall"))
    if section.recommended:
        parts.append(_figure(f"recommended-{number}", _RECOMMENDED, "low"))
    if section.facts:
        parts.append(_facts(section.facts))
    return f'<section aria-label="{_text(section.title)}">{"".join(parts)}</section>'


def _target(target: HpaTarget) -> str:
    return (
        f'<p class="target"><span>In the HPA, for <b>{_text(target.policy)}</b>:</span> '
        f'<code>averageValue: "1"</code> <span>{_text(target.advice)}</span></p>'
    )


def _figure(place: str, caption: tuple[str, str], height: str) -> str:
    label = f"<figcaption><b>{caption[0]}</b> {caption[1]}</figcaption>"
    return f'<figure>{label}<div class="chart {height}" id="{place}"></div></figure>'


def _scores(section: Section, report: Report) -> str:
    actual = next((_hours_per_time(score) for score in section.scores if score.kind == MEASURED), None)
    late = f"Time with a backlog time over {section.target_s:g} s"
    money = [f"Cost of workers, {report.currency}", f"Cost of lateness, {report.currency}", f"Cost, {report.currency}"]
    titles = ["", "", "Worker-hours", "Compared with actual", *money, late]
    titles += ["p99 backlog time", "Rescales", "Paused"]
    prices = section.prices
    priced = [price is not None for price in (prices.worker_hour, prices.late_minute)]
    shown = [True, True, True, bool(actual), *priced, all(priced), True, True, True, True]
    rows = [_score(score, actual, section) for score in section.scores]
    table = [[cell for cell, is_shown in zip(row, shown, strict=True) if is_shown] for row in [titles, *rows]]
    return _table(table, 2)


def _score(score: Score, actual: float | None, section: Section) -> list[str]:
    workers, lateness = costs(section, score)
    total = None if workers is None or lateness is None else workers + lateness
    against = None
    hours = _hours_per_time(score)
    if actual and hours is not None:
        against = hours / actual - 1
    return [
        score.name,
        score.kind,
        _number(score.worker_hours, "{:,.1f}"),
        "–" if score.kind == MEASURED else _number(against, "{:+.0%}"),
        *(_number(money, "{:,.2f}") for money in (workers, lateness, total)),
        _number(score.late_ratio, "{:.2%}"),
        _number(score.p99_s, "{:,.0f} s"),
        _number(score.rescales, "{:,.0f}"),
        _number(score.pause_s, "{:,.0f} s"),
    ]


def _hours_per_time(score: Score) -> float | None:
    """Worker-hours / the known share of the time: comparable between runs of one period."""
    return None if score.worker_hours is None else score.worker_hours / score.known_ratio


def _facts(facts: Sequence[Fact]) -> str:
    rows = [[fact.name, fact.value, _number(fact.observations or None, "{:,}", "none"), fact.source] for fact in facts]
    table = _table([["Property", "Value", "Observations", "Source"], *rows], 1, "facts")
    return f"<details><summary>How the simulated job was calibrated</summary><p>{_FACTS}</p>{table}</details>"


def _table(rows: Sequence[Sequence[str]], names: int, kind: str = "scores") -> str:
    """A table. rows: the titles first. names: the number of columns that are text."""
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
