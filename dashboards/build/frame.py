"""What all dashboards share: variables, links, annotations, and the matchers of their queries."""

from collections.abc import Iterable

from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.models import dashboard as model

from dashboards.build.panels import DATASOURCE, Drawn

PREFIX = "backlog_adapter_"
TAG = "backlog-adapter"
WORKLOAD_UID = "backlog-adapter-workload"
WORKLOAD_MATCHERS = 'namespace=~"$namespace", workload=~"$workload"'
PROCESS_MATCHERS = 'job=~"$job", instance=~"$instance"'
BY_WORKLOAD = "by (namespace, workload)"
# Of a decision: label -> title of its column.
DECISION_LABELS = {
    "namespace": "Namespace",
    "workload": "Workload",
    "policy": "Policy",
    "reason": "Reason",
    "bound": "Bound",
}

Section = tuple[str, tuple[Drawn, ...]]


def series(metric: str, *matchers: str) -> str:
    """The selector of a metric of the selected workloads."""
    return f"{PREFIX}{metric}{{{', '.join((WORKLOAD_MATCHERS, *matchers))}}}"


def of_workload(metric: str, *matchers: str) -> str:
    """One number for each workload, whatever the labels of the scraped pod."""
    return f"max {BY_WORKLOAD} ({series(metric, *matchers)})"


def decisions() -> str:
    """One series for each decision, with the labels DECISION_LABELS."""
    return f"max by ({', '.join(DECISION_LABELS)}) ({series('decision_info')})"


def by_decision_label(label: str, *matchers: str) -> str:
    """One series for each workload and value of a label of its decision."""
    return f"max by (namespace, workload, {label}) ({series('decision_info', *matchers)})"


def of_process(metric: str, *matchers: str) -> str:
    """The selector of a metric of the selected processes."""
    return f"{PREFIX}{metric}{{{', '.join((PROCESS_MATCHERS, *matchers))}}}"


def recorded(rule: str) -> str:
    """The selector of a recording rule over workloads (dashboards/rules/recording.yaml)."""
    return f"namespace_workload:{PREFIX}{rule}{{{WORKLOAD_MATCHERS}}}"


def top(count: int, expr: str) -> str:
    """The largest series."""
    return f"topk({count}, {expr})"


def among(expr: str, chosen: str) -> str:
    """The series of the chosen workloads."""
    return f"{expr} and on (namespace, workload) {chosen}"


def dashboard(
    uid: str, title: str, description: str, sections: Iterable[Section], *, of_processes: bool = False
) -> model.Dashboard:
    """A dashboard of sections; each is a row with its panels. of_processes: it selects jobs and instances too."""
    built = sdk.Dashboard(title).uid(uid).description(description).tags([TAG]).readonly()
    built.time("now-3h", "now").refresh("1m").timezone("browser").tooltip(model.DashboardCursorSync.CROSSHAIR)
    link = sdk.DashboardLink("backlog-adapter").type(model.DashboardLinkType.DASHBOARDS).tags([TAG])
    built.link(link.include_vars(True).keep_time(True))
    built.with_variable(sdk.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    for variable in _variables(of_processes):
        built.with_variable(variable)
    if not of_processes:
        built.annotation(_rescales(is_shown=uid == WORKLOAD_UID))
    for name, panels in sections:
        built.with_row(sdk.Row(name))
        for panel in panels:
            built.with_panel(panel)
    return _numbered(built.build())


def _numbered(built: model.Dashboard) -> model.Dashboard:
    """Give each panel the number that Grafana would give it, so that links to panels stay valid."""
    for number, panel in enumerate(built.panels or [], 1):
        panel.id_val = number
    return built


def _variables(of_processes: bool) -> Iterable[sdk.QueryVariable]:
    if of_processes:
        yield _variable("job", "Job", f"label_values({PREFIX}build_info, job)")
        yield _variable("instance", "Instance", f'label_values({PREFIX}build_info{{job=~"$job"}}, instance)')
    yield _variable("namespace", "Namespace", f"label_values({PREFIX}decision_info, namespace)")
    expr = f'label_values({PREFIX}decision_info{{namespace=~"$namespace"}}, workload)'
    yield _variable("workload", "Workload", expr)


def _variable(name: str, label: str, query: str) -> sdk.QueryVariable:
    """A variable that accepts several values and All, and follows the time range."""
    variable = sdk.QueryVariable(name).label(label).query(query).datasource(DATASOURCE)
    variable.multi(True).include_all(True).all_value(".+").sort(model.VariableSort.ALPHABETICAL_ASC)
    variable.current(model.VariableOption(text="All", value="$__all"))
    return variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)


def _rescales(*, is_shown: bool) -> sdk.AnnotationQuery:
    """A mark where spec.replicas changed within the last minute. The marks of a whole fleet would cover a chart."""
    spec = series("spec_workers")
    expr = f"max {BY_WORKLOAD} ({spec}) != max {BY_WORKLOAD} ({spec} offset 1m)"
    target = prometheus.Dataquery().datasource(DATASOURCE).expr(expr).ref_id("Anno").range()
    drawn = sdk.AnnotationQuery().name("Rescales").datasource(DATASOURCE).target(target).expr(expr)
    drawn.enable(is_shown).icon_color("blue").step("60s").use_value_for_time(False)
    return drawn.title_format("rescaled").text_format("{{namespace}}/{{workload}}").tag_keys("workload")
