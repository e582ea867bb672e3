"""Fleet: who is behind, and who is held and why."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.build.frame import (
    BY_WORKLOAD,
    DECISION_LABELS,
    among,
    by_decision_label,
    dashboard,
    decisions,
    of_workload,
    series,
    top,
)
from dashboards.build.panels import (
    NAME,
    ORANGE,
    RED,
    SAMPLE_AGES,
    SECONDS,
    TIMES,
    WORKERS,
    WORKLOADS,
    Column,
    Drawn,
    Limit,
    Query,
    Table,
    chart,
    rows,
    value,
)
from dashboards.build.reasons import ATTENTION, GATES, matcher

_MOST_ROWS = 25
_MOST_LINES = 10
_BACKLOG_TIME, _TARGET = of_workload("backlog_time_seconds"), of_workload("backlog_time_target_seconds")
_RATIO = f"{_BACKLOG_TIME} / {_TARGET}"
_WORST = top(_MOST_ROWS, _RATIO)
_SIZE, _MAX = f"({of_workload('spec_workers')} or {of_workload('current_workers')})", of_workload("max_workers")
_HELD = of_workload("decision_info", matcher(GATES))
# An unknown backlog time ranks first. The column stays empty: unknown is not a number.
_HELD_ROWS = top(_MOST_ROWS, f"{_BACKLOG_TIME} and on (namespace, workload) {_HELD} or Inf * {_HELD}")
_BOUNDS = by_decision_label("bound", 'bound!=""')
_CHANGES = f"max {BY_WORKLOAD} (changes({series('spec_workers')}[1h]))"
_BEHIND = Limit(1, "the workload is behind its target")


def fleet() -> Dashboard:
    """The dashboard."""
    text = "All workloads, worst first. Tables and charts have a limit of rows, so that it is readable at a thousand."
    sections = (("Now", _counts()), ("Worst first", _tables()), ("Over time", _lines()))
    return dashboard("backlog-adapter-fleet", "backlog-adapter / Fleet", text, sections)


def _counts() -> tuple[Drawn, ...]:
    any_of = "at least one workload"
    every = of_workload("decision_info")
    held, attention = (of_workload("decision_info", matcher(reasons)) for reasons in (GATES, ATTENTION))
    none = f"0 * count({every})"  # without any decision the number is unknown, not 0
    unknown = f"count({every}) - (count({of_workload('required_workers')}) or vector(0))"
    return (
        _count("Workloads", "Workloads with a decision.", f"count({every})"),
        _count("Behind", "Backlog time above its target.", f"sum({_BACKLOG_TIME} > bool {_TARGET})", any_of),
        _count("At maximum", "The workers are at the maximum.", f"sum({_SIZE} >= bool {_MAX})", any_of, ORANGE),
        _count("Held", "A gate holds the size.", f"sum({held}) or {none}", any_of, ORANGE),
        _count("Need attention", "The reason requires action by an operator.", f"sum({attention}) or {none}", any_of),
        _count("Without a number", "No number of workers is served.", unknown, any_of),
    )


def _count(title: str, shows: str, expr: str, limit: str = "", color: str = RED) -> Drawn:
    return value(title, shows, WORKLOADS, expr, *((Limit(1, limit, color),) if limit else ()))


def _tables() -> tuple[Drawn, ...]:
    return rows(_worst()), rows(_held())


def _worst() -> Table:
    return Table(
        title="Furthest behind",
        shows=f"The {_MOST_ROWS} workloads with the largest backlog time relative to its target, and their decision.",
        unit=TIMES,
        limits=(_BEHIND,),
        labels=DECISION_LABELS,
        columns=(
            Column("Times target", _WORST, TIMES, (_BEHIND,)),
            Column("Backlog time", among(_BACKLOG_TIME, _WORST), SECONDS),
            Column("Required", among(of_workload("required_workers"), _WORST), WORKERS),
            Column("Current", among(_SIZE, _WORST), WORKERS),
            Column("Maximum", among(_MAX, _WORST), WORKERS),
            Column("", among(decisions(), _WORST), NAME),
        ),
        sort="Times target",
        width=24,
        height=10,
    )


def _held() -> Table:
    return Table(
        title="Held, and why",
        shows=f"Workloads whose size a gate holds: at most {_MOST_ROWS}, first those without a backlog time, then the "
        "longest. docs/decisions.md explains each reason.",
        unit=SECONDS,
        labels=DECISION_LABELS,
        columns=(
            Column("Backlog time", among(_BACKLOG_TIME, _HELD_ROWS), SECONDS),
            Column("Sample age", among(of_workload("sample_age_seconds"), _HELD_ROWS), SECONDS),
            Column("Required", among(of_workload("required_workers"), _HELD_ROWS), WORKERS),
            Column("", among(decisions(), _HELD_ROWS), NAME),
        ),
        sort="Backlog time",
        width=24,
        height=9,
    )


def _lines() -> tuple[Drawn, ...]:
    return (
        chart(
            "Workloads by reason",
            "How many workloads have each reason.",
            WORKLOADS,
            (Query(f"count by (reason) ({by_decision_label('reason')})", "{{reason}}"),),
            stacked=True,
        ),
        chart(
            "Workloads by bound",
            "How many sizes each bound limits; docs/decisions.md explains the bounds.",
            WORKLOADS,
            (Query(f"count by (bound) ({_BOUNDS})", "{{bound}}"),),
            stacked=True,
        ),
        chart(
            "Backlog time relative to its target",
            f"The {_MOST_LINES} largest; 10 stands for ten and more.",
            TIMES,
            _largest(f"clamp_max({_RATIO}, 10)"),
            _BEHIND,
        ),
        chart(
            "Age of the newest sample",
            f"The {_MOST_LINES} oldest. After error_after_s (180 s by default) no number is served.",
            SECONDS,
            _largest(of_workload("sample_age_seconds")),
            *SAMPLE_AGES,
        ),
        chart(
            "Workers",
            "The sums over all workloads: required by the policies, existing, and the maxima.",
            WORKERS,
            (
                Query(f"sum({of_workload('required_workers')})", "required"),
                Query(f"sum({of_workload('current_workers')})", "existing"),
                Query(f"sum({_MAX})", "maximum"),
            ),
        ),
        chart(
            "Rescales within an hour",
            f"Changes of spec.replicas within the last hour, the {_MOST_LINES} largest.",
            TIMES,
            _largest(_CHANGES),
            Limit(10, "more than one in six minutes"),
        ),
    )


def _largest(expr: str) -> tuple[Query, ...]:
    return (Query(top(_MOST_LINES, expr), "{{namespace}}/{{workload}}"),)
