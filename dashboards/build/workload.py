"""Workload: everything that one decision follows from."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.build.frame import (
    DECISION_LABELS,
    WORKLOAD_UID,
    among,
    by_decision_label,
    dashboard,
    decisions,
    of_workload,
    series,
    top,
)
from dashboards.build.panels import (
    COUNT,
    NAME,
    RATIO,
    RECORDS,
    RECORDS_PER_S,
    SAMPLE_AGES,
    SECONDS,
    WORKERS,
    Column,
    Drawn,
    Limit,
    Panel,
    Query,
    Table,
    Unit,
    chart,
    rows,
    scatter,
    timeline,
    value,
)
from dashboards.build.reasons import COLORS, LEGEND

_MOST_LINES = 20
_WHO = "{{namespace}}/{{workload}}"
_PARTITIONS = Unit("none", "partitions or workers")
_REASON = by_decision_label("reason")
_BOUND = by_decision_label("bound", 'bound!=""')


def workload() -> Dashboard:
    """The dashboard."""
    text = f"The numbers and the decisions of one workload; with All, each panel shows at most {_MOST_LINES} workloads."
    sections = (
        ("Now", _now()),
        ("Decision", _decision()),
        ("Load", _load()),
        ("Capacity", _capacity()),
        ("Inputs", _inputs()),
    )
    return dashboard(WORKLOAD_UID, "backlog-adapter / Workload", text, sections)


def _lines(**names: str) -> tuple[Query, ...]:
    """A query for each metric. names: metric -> its name in the legend."""
    return tuple(Query(top(_MOST_LINES, of_workload(metric)), f"{name} {_WHO}") for metric, name in names.items())


def _now() -> tuple[Drawn, ...]:
    over = f"{of_workload('backlog_time_seconds')} / {of_workload('backlog_time_target_seconds')}"
    behind = Limit(1, "the workload is behind its target")
    why = "Why the size is what it is; docs/decisions.md explains each reason."
    return (
        value("Reason", why, NAME, Query(top(4, _REASON), "{{reason}}")),
        value("Required workers", "What the HPA reads, a sum with All.", WORKERS, _sum("required_workers")),
        value("Desired replicas", "spec.replicas, a sum with All.", WORKERS, _sum("spec_workers")),
        value("Ready workers", "Workers that are ready, a sum with All.", WORKERS, _sum("ready_workers")),
        value("Times target", "Backlog time / its target, the largest with All.", RATIO, f"max({over})", behind),
        value("Sample age", "The oldest with All.", SECONDS, f"max({series('sample_age_seconds')})", *SAMPLE_AGES),
    )


def _sum(metric: str) -> str:
    return f"sum({of_workload(metric)})"


def _decision() -> tuple[Drawn, ...]:
    workers = _chart(
        "Workers",
        "Required: what the HPA reads. Wanted: the policy's size before the bounds. Desired: spec.replicas. "
        "Every rescale is also an annotation.",
        WORKERS,
        required_workers="required",
        wanted_workers="wanted",
        spec_workers="desired",
        current_workers="existing",
        ready_workers="ready",
        min_workers="minimum",
        max_workers="maximum",
    )
    return (
        workers.span(24).height(10),
        timeline(
            "Reasons",
            f"A row for each reason, colored while it holds. {LEGEND}",
            Query(top(_MOST_LINES, _REASON), f"{_WHO}: {{{{reason}}}}"),
            COLORS,
        ),
        timeline(
            "Bounds",
            "A row for each bound, colored while it limits the size; without a row no bound did.",
            Query(top(_MOST_LINES, _BOUND), f"{_WHO}: {{{{bound}}}}"),
            {".*": "orange"},
        ),
        rows(_policies()),
    )


def _policies() -> Table:
    required = of_workload("required_workers")
    # A workload without a number ranks first. The column stays empty: unknown is not a number.
    chosen = top(_MOST_LINES, f"{required} or Inf * {of_workload('decision_info')}")
    return Table(
        title="Newest decision",
        shows=f"At most {_MOST_LINES} workloads: those without a number, then the largest. "
        "`backlog-adapter explain NAMESPACE/NAME` prints the whole decision.",
        unit=WORKERS,
        labels=DECISION_LABELS,
        columns=(
            Column("Required", among(required, chosen), WORKERS),
            Column("Wanted", among(of_workload("wanted_workers"), chosen), WORKERS),
            Column("", among(decisions(), chosen), NAME),
        ),
        sort="Required",
        width=24,
        height=5,
    )


def _load() -> tuple[Drawn, ...]:
    """The last three charts share a row."""
    return (
        _chart(
            "Input and throughput",
            "Records (or bytes) that arrive, and that are processed.",
            RECORDS_PER_S,
            input_rate="input",
            throughput="throughput",
        ),
        _chart(
            "Backlog time against its target",
            "Backlog / throughput, and the time that it may take.",
            SECONDS,
            backlog_time_seconds="backlog time",
            backlog_time_target_seconds="target",
        ),
        _chart(
            "Backlog",
            "Records that wait: all, and those in partitions that do not move.",
            RECORDS,
            backlog="backlog",
            stuck_backlog="stuck",
        ),
        _chart(
            "Forecast",
            "The present input, and the highest one within the horizon of the forecast.",
            RECORDS_PER_S,
            input_rate="input",
            forecast_input_rate="forecast",
        ),
        _chart(
            "Growth of the backlog",
            "Negative while the backlog shrinks.",
            RECORDS_PER_S,
            backlog_growth_signed="growth",
        ).span(8),
        _chart(
            "Drain time",
            "Backlog / (capacity - input), at most a day: the time until the backlog is gone.",
            SECONDS,
            drain_time_seconds="drain time",
        ).span(8),
        _chart(
            "Input relative to throughput",
            "Input / throughput while the backlog is large, else 0.",
            RATIO,
            Limit(1, "the job does not keep up"),
            relative_lag_change="relative lag change",
        ).span(8),
    )


def _chart(title: str, shows: str, unit: Unit, *limits: Limit, **names: str) -> Drawn:
    """A chart over time. names: metric -> its name in the legend."""
    return chart(title, shows, unit, _lines(**names), *limits)


def _capacity() -> tuple[Drawn, ...]:
    by_size = Panel(
        title="Capacity by size",
        shows="A point for each moment: what the present workers process (y), over their number (x). "
        "A line through the origin means that workers do not slow each other down. Select one workload.",
        unit=RECORDS_PER_S,
        queries=(
            Query(f"max({series('current_workers')})", "workers"),
            Query(f"max({series('capacity')})", "capacity, records/s"),
        ),
    )
    return (
        scatter(by_size),
        _chart(
            "Capacity",
            "What the present workers process at most, what they process now, and what arrives.",
            RECORDS_PER_S,
            capacity="capacity",
            throughput="throughput",
            input_rate="input",
        ),
        _chart(
            "Utilization",
            "Busy time, CPU, memory or network of the hottest stage.",
            RATIO,
            Limit(0.9, "little room is left"),
            utilization="utilization",
        ),
        _chart(
            "Capacity of one worker",
            "Configured, estimated or observed.",
            RECORDS_PER_S,
            worker_capacity="worker",
        ),
        _chart(
            "Partitions and workers",
            "More workers than partitions (or segments) do not help.",
            _PARTITIONS,
            segments="partitions",
            required_workers="required",
            current_workers="existing",
        ),
        _chart(
            "Fullest partition",
            "Records that wait in the partition with the largest backlog.",
            RECORDS,
            highest_partition_backlog="fullest",
            backlog="all",
        ),
    )


def _inputs() -> tuple[Drawn, ...]:
    fault = Limit(1, "samples are missing")
    return (
        _chart(
            "Age of the newest sample",
            "The second limit is the default of error_after_s.",
            SECONDS,
            *SAMPLE_AGES,
            sample_age_seconds="age",
        ),
        _chart(
            "Errors of the workload's inputs",
            "An error of a source that explains missing samples (0 or 1), two sources that contradict (0 or 1), and "
            "annotations that cannot be read.",
            COUNT,
            fault,
            source_fault="source",
            source_dispute="dispute",
            bad_annotations="annotations",
        ),
    )
