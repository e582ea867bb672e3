"""Adapter health: the processes of the adapter, their inputs and the API that they serve."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.build.frame import dashboard, of_process, of_workload, top
from dashboards.build.panels import (
    COUNT,
    DAYS,
    GREEN,
    PER_S,
    RED,
    REQUESTS_PER_S,
    SAMPLE_AGES,
    SECONDS,
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
from dashboards.build.reasons import UNKNOWN, matcher

_MOST_LINES = 10
_WHO = "{{namespace}}/{{workload}}"
_LATE = (Limit(60, "four ticks of 15 s", YELLOW), Limit(180, "HPAs get errors instead of numbers"))


def health() -> Dashboard:
    """The dashboard."""
    text = (
        "Whether the adapter itself works: ticks, sources, snapshot, API, connections, certificate, owner of the API."
    )
    sections = (("Now", _now()), ("Ticks", _ticks()), ("Sources", _sources()), ("Metrics API", _api()))
    return dashboard("backlog-adapter-health", "backlog-adapter / Adapter health", text, sections, of_processes=True)


def _now() -> tuple[Drawn, ...]:
    expires = "Days until the first serving certificate expires."
    expiry = (Limit(14, "renew it now", YELLOW), Limit(30, "enough", GREEN))
    age, days = of_process("snapshot_age_seconds"), of_process("certificate_days_left")
    return (
        value("Processes", "Scraped processes of the adapter.", COUNT, f"count({of_process('build_info')})").span(6),
        value("Oldest snapshot", "The largest age of a snapshot in a process.", SECONDS, f"max({age})", *_LATE).span(6),
        value("Workloads", "Workloads in the snapshot.", WORKLOADS, f"max({of_process('workloads')})").span(6),
        value("Certificate", expires, DAYS, f"min({days})", *expiry, below=RED).span(6),
        rows(_processes()),
        rows(_owners()),
    )


def _processes() -> Table:
    return Table(
        title="Processes by role and version",
        shows="More than one version is a rollout in progress.",
        unit=COUNT,
        labels={"role": "Role", "version": "Version"},
        columns=(Column("Processes", f"count by (role, version) ({of_process('build_info')})", COUNT),),
        sort="Processes",
        height=5,
    )


def _owners() -> Table:
    return Table(
        title="Owners of the metrics APIs",
        shows="The Service that each APIService names, as serve reads it, and whether it is this one.",
        unit=COUNT,
        labels={"api_service": "APIService", "owner": "Owner", "ours": "Ours"},
        columns=(
            Column("Processes", f"count by (api_service, owner, ours) ({of_process('api_service_info')})", COUNT),
        ),
        sort="Processes",
        height=5,
    )


def _ticks() -> tuple[Drawn, ...]:
    by_process, phases = "{{job}} {{instance}}", of_process("phase_seconds", 'phase!="triggerExecution"')
    return (
        chart(
            "Age of the snapshot",
            "By process.",
            SECONDS,
            (Query(of_process("snapshot_age_seconds"), by_process),),
            *_LATE,
        ),
        chart(
            "Lateness of a tick",
            "From the tick to its publication, and the interval of the ticks.",
            SECONDS,
            (
                Query(of_process("tick_lateness_seconds"), f"lateness {by_process}"),
                Query(f"max({of_process('tick_seconds')})", "interval"),
            ),
        ),
        chart(
            "Phases of the last micro-batch",
            "Durations that Spark reports: addBatch reads the sources, decides and publishes; walCommit and "
            "commitOffsets write the checkpoint. triggerExecution is the whole and is not shown.",
            SECONDS,
            (Query(f"max by (phase) ({phases})", "{{phase}}"),),
            stacked=True,
        ),
        chart(
            "Restarts and failed shards",
            "Restarts of the query within an hour, and shards whose tick failed.",
            COUNT,
            (
                Query(f"sum(increase({of_process('query_restarts_total')}[1h]))", "restarts"),
                Query(f"sum({of_process('failed_shards')})", "failed shards"),
            ),
            Limit(1, "see the log of the pipeline"),
        ),
    )


def _sources() -> tuple[Drawn, ...]:
    faults = f"sum by (namespace) ({of_workload('source_fault')})"
    unknown = f"sum({of_workload('decision_info', matcher(UNKNOWN))}) or 0 * count({of_workload('decision_info')})"
    return (
        chart(
            "Workloads whose source fails",
            "An error of a source explains their missing samples.",
            WORKLOADS,
            (Query(faults, "{{namespace}}"),),
            Limit(1, "at least one source fails"),
        ),
        chart(
            "Age of the newest sample",
            f"The {_MOST_LINES} oldest.",
            SECONDS,
            (Query(top(_MOST_LINES, of_workload("sample_age_seconds")), _WHO),),
            *SAMPLE_AGES,
        ),
        chart(
            "Workloads without samples",
            "No number of workers follows from their samples: NoDataYet or Expired.",
            WORKLOADS,
            (Query(unknown, "workloads"),),
            Limit(1, "check sources"),
        ),
        chart(
            "Annotations that cannot be read",
            f"The {_MOST_LINES} workloads with the most.",
            COUNT,
            (Query(top(_MOST_LINES, of_workload("bad_annotations")), _WHO),),
            Limit(1, "the annotation has no effect"),
        ),
    )


def _api() -> tuple[Drawn, ...]:
    requests, took = of_process("requests_total", _METRICS), of_process("request_seconds_bucket", 'metric!=""')
    errors = of_process("requests_total", _METRICS, 'code=~"5.."')
    every = f"sum(rate({requests}[$__rate_interval]))"
    return (
        chart(
            "Requests",
            "Requests for metrics, by group and code.",
            REQUESTS_PER_S,
            (Query(f"sum by (group, code) (rate({requests}[$__rate_interval]))", "{{group}} {{code}}"),),
        ),
        chart(
            "Requests by metric",
            "Which metrics HPAs read.",
            REQUESTS_PER_S,
            (Query(f"sum by (metric) (rate({requests}[$__rate_interval]))", "{{metric}}"),),
        ),
        chart(
            "Errors",
            "Share of the requests for metrics that got a 5xx: there is no number, or too many requests.",
            _SHARE,
            (Query(f"(sum(rate({errors}[$__rate_interval])) or vector(0)) / {every}", "5xx"),),
            Limit(0.05, "HPAs keep their replicas"),
        ),
        chart(
            "Response time",
            "Of requests for metrics, from the request to the response, without the network.",
            SECONDS,
            tuple(
                Query(f"histogram_quantile({q}, sum by (le) (rate({took}[$__rate_interval])))", f"p{q * 100:g}")
                for q in (0.5, 0.99)
            ),
            Limit(1, "an HPA controller with a thousand HPAs falls behind"),
        ),
        chart(
            "Connections", "Open connections.", COUNT, (Query(of_process("connections"), "{{job}} {{instance}}"),)
        ).span(8),
        chart(
            "Refused requests and closed connections",
            "By code, and by what ended the connection.",
            PER_S,
            (
                Query(f"sum by (code) (rate({of_process('refused_total')}[$__rate_interval]))", "refused {{code}}"),
                Query(
                    f"sum by (cause) (rate({of_process('connections_closed_total')}[$__rate_interval]))",
                    "closed: {{cause}}",
                ),
            ),
            Limit(1, "clients are refused", YELLOW),
        ).span(8),
        chart(
            "Lost log lines",
            "Log lines that could not be written.",
            PER_S,
            (Query(f"sum(rate({of_process('log_lines_lost_total')}[$__rate_interval]))", "lost"),),
            Limit(1, "the log is incomplete", YELLOW),
        ).span(8),
    )


_METRICS = 'group=~"external|custom"'
_SHARE = Unit("percentunit", "share of the requests")
