"""Cost and SLO: what the workloads used, what a static size would have used, and how long they were behind."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.build.frame import among, dashboard, recorded, top
from dashboards.build.panels import (
    RATIO,
    TIMES,
    WORKER_HOURS,
    WORKERS,
    WORKLOADS,
    YELLOW,
    Column,
    Drawn,
    Limit,
    Query,
    Table,
    Unit,
    chart,
    rows,
    value,
)

_MOST_ROWS = 25
# Hours in which a workload existed, not those of the time range: each recorded sample stands for a minute.
_PER_HOUR = "60"
_USED = f"sum_over_time({recorded('current_workers:max')}[$__range]) / {_PER_HOUR}"
_HOURS = f"count_over_time({recorded('current_workers:max')}[$__range]) / {_PER_HOUR}"
_STATIC = f"max_over_time({recorded('required_workers:max')}[$__range]) * {_HOURS}"
_OVER = f"avg_over_time({recorded('backlog_time_over_target:bool')}[$__range])"
_AT_MINIMUM = f"avg_over_time({recorded('limited_by_minimum:bool')}[$__range])"
_RESCALES = f"changes({recorded('spec_workers:max')}[$__range])"
_WORST = top(_MOST_ROWS, _USED)
_OBJECTIVE = Limit(0.01, "behind for more than 1 % of the time")
_RULES = "From the recording rules (dashboards/rules/recording.yaml)."


def cost() -> Dashboard:
    """The dashboard."""
    text = "Worker-hours against a static peak, time over the target, and rescales. It needs the recording rules."
    sections = (("In the selected time", _totals()), ("By workload", (rows(_workloads()),)), ("Over time", _lines()))
    return dashboard("backlog-adapter-cost", "backlog-adapter / Cost and SLO", text, sections)


def _totals() -> tuple[Drawn, ...]:
    peak = "The largest required_workers of each workload, for as long as the workload existed."
    return (
        _total("Worker-hours", "Existing workers.", WORKER_HOURS, f"sum({_USED})"),
        _total("Static peak", peak, WORKER_HOURS, f"sum({_STATIC})"),
        _total("Saved", "1 - worker-hours / static peak.", RATIO, f"sum({_STATIC} - {_USED}) / sum({_STATIC})"),
        _total("Time over target", "Mean over the workloads.", RATIO, f"avg({_OVER})", _OBJECTIVE),
        _total("Worst time over target", "Of one workload.", RATIO, f"max({_OVER})", _OBJECTIVE),
        _total("Rescales", "Changes of spec.replicas of all workloads.", TIMES, f"sum({_RESCALES})"),
    )


def _total(title: str, shows: str, unit: Unit, expr: str, *limits: Limit) -> Drawn:
    return value(title, f"{shows} {_RULES}", unit, expr, *limits)


def _workloads() -> Table:
    return Table(
        title="Workloads",
        shows=f"The {_MOST_ROWS} workloads with the most worker-hours. At minimum: share of the time in which "
        f"the policy wanted fewer workers than the minimum; a lower minimum saves them. {_RULES}",
        unit=WORKER_HOURS,
        limits=(_OBJECTIVE,),
        labels={"namespace": "Namespace", "workload": "Workload"},
        columns=(
            Column("Worker-hours", _WORST, WORKER_HOURS),
            Column("Static peak", among(_STATIC, _WORST), WORKER_HOURS),
            Column("Saved", among(f"1 - ({_USED}) / ({_STATIC})", _WORST), RATIO),
            Column("Time over target", among(_OVER, _WORST), RATIO, (_OBJECTIVE,)),
            Column("At minimum", among(_AT_MINIMUM, _WORST), RATIO, (Limit(0.9, "the minimum is too high", YELLOW),)),
            Column("Rescales", among(_RESCALES, _WORST), TIMES),
        ),
        sort="Worker-hours",
        width=24,
        height=11,
    )


def _lines() -> tuple[Drawn, ...]:
    static = f"sum(max_over_time({recorded('required_workers:max')}[$__range] @ end()))"
    return (
        _chart(
            "Workers against a static peak",
            "The area between the lines is what scaling saves.",
            WORKERS,
            Query(f"sum({recorded('current_workers:max')})", "existing"),
            Query(f"sum({recorded('required_workers:max')})", "required"),
            Query(static, "static peak"),
        ),
        _chart(
            "Workloads over their target",
            "Workloads that are behind.",
            WORKLOADS,
            Query(f"sum({recorded('backlog_time_over_target:bool')})", "behind"),
        ),
        _chart(
            "Rescales within an hour",
            "Changes of spec.replicas within the last hour: all workloads, and the worst.",
            TIMES,
            Query(f"sum({recorded('spec_workers:changes1h')})", "all workloads"),
            Query(f"max({recorded('spec_workers:changes1h')})", "worst workload"),
        ),
        _chart(
            "Workloads at a limit",
            "At the maximum, and limited by the minimum.",
            WORKLOADS,
            Query(f"sum({recorded('at_maximum:bool')})", "at maximum"),
            Query(f"sum({recorded('limited_by_minimum:bool')})", "limited by the minimum"),
        ),
    )


def _chart(title: str, shows: str, unit: Unit, *queries: Query) -> Drawn:
    return chart(title, f"{shows} {_RULES}", unit, queries)
