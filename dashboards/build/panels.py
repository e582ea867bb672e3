"""The kinds of panels that the dashboards consist of, on Grafana's foundation SDK."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from grafana_foundation_sdk.builders import common as shared
from grafana_foundation_sdk.builders import dashboard as sdk
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, timeseries, xychart
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import prometheus as query_model
from grafana_foundation_sdk.models import xychart as xy_model

DATASOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
WORKLOAD_URL = (
    "/d/backlog-adapter-workload?var-datasource=${datasource}&var-namespace=${__data.fields.Namespace}"
    "&var-workload=${__data.fields.Workload}&${__url_time_range}"
)
GREEN, YELLOW, ORANGE, RED, BLUE, GREY = "green", "yellow", "orange", "red", "blue", "text"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its name in Grafana, and in words."""

    grafana: str
    words: str


WORKLOADS = Unit("none", "workloads")
WORKERS = Unit("none", "workers")
WORKER_HOURS = Unit("none", "worker-hours")
COUNT = Unit("none", "count")
RECORDS = Unit("short", "records")
RECORDS_PER_S = Unit("short", "records/s")
SECONDS = Unit("s", "seconds")
DAYS = Unit("d", "days")
RATIO = Unit("percentunit", "ratio, shown as percent")
TIMES = Unit("none", "times")
REQUESTS_PER_S = Unit("reqps", "requests/s")
PER_S = Unit("short", "per second")
NAME = Unit("string", "name")


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL query. legend: of its series, or the title of its column in a table."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold: its value, the color from there on, and what it means."""

    value: float
    meaning: str
    color: str = RED


# Several samples are missing; the default of error_after_s.
SAMPLE_AGES = (Limit(60, "the size is held since the first missing sample", YELLOW), Limit(180, "no number is served"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What every panel has. below: the color under the first limit."""

    title: str
    shows: str
    unit: Unit
    queries: tuple[Query, ...] = ()
    limits: tuple[Limit, ...] = ()
    below: str = GREEN
    width: int = 12
    height: int = 8

    @property
    def description(self) -> str:
        """What the panel shows, its unit and its thresholds."""
        limits = "; ".join(f"{limit.value:g}: {limit.meaning}" for limit in self.limits) or "none"
        return f"{self.shows} Unit: {self.unit.words}. Threshold: {limits}."


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the values of a query. A column without a title only adds the labels of its series."""

    title: str
    expr: str
    unit: Unit
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Panel):
    """A table with a row for each set of labels. The column `sort` comes first, its largest value on top.

    labels: label -> title of its column.
    """

    labels: Mapping[str, str]
    columns: tuple[Column, ...]
    sort: str


Drawn: TypeAlias = timeseries.Panel | stat.Panel | table.Panel | statetimeline.Panel | xychart.Panel
D = TypeVar("D", timeseries.Panel, stat.Panel, table.Panel, statetimeline.Panel, xychart.Panel)


def chart(
    title: str, shows: str, unit: Unit, queries: tuple[Query, ...], *limits: Limit, stacked: bool = False
) -> timeseries.Panel:
    """Numbers over time in half of the width, with the limits as dashed lines."""
    panel = Panel(title=title, shows=shows, unit=unit, queries=queries, limits=limits)
    tooltip = shared.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    legend = shared.VizLegendOptions().show_legend(True).display_mode(common.LegendDisplayMode.TABLE)
    drawn = _common(timeseries.Panel(), panel).axis_label(unit.words).tooltip(tooltip)
    drawn.legend(legend.placement(common.LegendPlacement.BOTTOM).calcs(["lastNotNull", "max"]))
    drawn.color_scheme(sdk.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC)).line_width(1).fill_opacity(5)
    drawn.show_points(common.VisibilityMode.NEVER)
    if limits:
        style = shared.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED)
        drawn.thresholds_style(style)
    if stacked:  # as bars: series that come and go would leave gaps between areas
        drawn.draw_style(common.GraphDrawStyle.BARS).line_width(0).fill_opacity(80)
        drawn.stacking(shared.StackingConfig().mode(common.StackingMode.NORMAL))
    return _with_targets(drawn, panel, instant=False)


def value(title: str, shows: str, unit: Unit, query: str | Query, *limits: Limit, below: str = "") -> stat.Panel:
    """The newest value of one query, large, in a sixth of the width; the legend instead if the query has one.

    below: the color under the first limit.
    """
    query = Query(query) if isinstance(query, str) else query
    below = below or (GREEN if limits else BLUE)
    panel = Panel(title=title, shows=shows, unit=unit, queries=(query,), limits=limits, below=below, width=4, height=4)
    drawn = _common(stat.Panel(), panel)
    drawn.reduce_options(shared.ReduceDataOptions().calcs(["lastNotNull"])).graph_mode(common.BigValueGraphMode.NONE)
    drawn.color_mode(common.BigValueColorMode.VALUE)
    drawn.text_mode(common.BigValueTextMode.NAME if query.legend else common.BigValueTextMode.AUTO)
    drawn.color_scheme(sdk.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
    return _with_targets(drawn, panel, instant=True)


def timeline(title: str, shows: str, query: Query, colors: Mapping[str, str]) -> statetimeline.Panel:
    """A row for each series, colored while it exists. colors: regular expression over the legend -> color."""
    panel = Panel(title=title, shows=shows, unit=NAME, queries=(query,), height=6)
    active = model.ValueMap({"1": model.ValueMappingResult(text="active", index=0)})
    drawn = _common(statetimeline.Panel(), panel).mappings([active]).show_value(common.VisibilityMode.NEVER)
    drawn.row_height(0.8).legend(shared.VizLegendOptions().show_legend(False))
    for pattern, color in colors.items():
        fixed = {"mode": "fixed", "fixedColor": color}
        drawn.override_by_regexp(f"/{pattern}/", [model.DynamicConfigValue("color", fixed)])
    return _with_targets(drawn, panel, instant=False)


def scatter(panel: Panel) -> xychart.Panel:
    """The second query over the first, a point for each moment."""
    drawn = (
        _common(xychart.Panel(), panel)
        .mapping(xy_model.SeriesMapping.AUTO)
        .point_size(xychart.XychartFieldConfigPointSize().fixed(6))
    )
    drawn.series([]).legend(shared.VizLegendOptions().show_legend(False)).tooltip(shared.VizTooltipOptions())
    drawn.with_transformation(model.DataTransformerConfig("joinByField", options={"byField": "Time", "mode": "inner"}))
    hidden = {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": {}}
    drawn.with_transformation(model.DataTransformerConfig("organize", options=hidden))
    return _with_targets(drawn, panel, instant=False)


def rows(panel: Table) -> table.Panel:
    """A table of the newest values, with a link from each workload to its dashboard."""
    drawn = _common(table.Panel(), panel).show_header(True).filterable(True)
    sort = shared.TableSortByFieldState().display_name(panel.sort).desc(True)
    drawn.sort_by([sort]).with_transformation(model.DataTransformerConfig("merge", options={}))
    drawn.with_transformation(model.DataTransformerConfig("organize", options=_organized(panel)))
    for column in panel.columns:
        if column.title:
            drawn.override_by_name(column.title, _properties(column))
    if "workload" in panel.labels:
        link = [{"title": "Show this workload", "url": WORKLOAD_URL}]
        drawn.override_by_name(panel.labels["workload"], [model.DynamicConfigValue("links", link)])
    queries = tuple(Query(column.expr) for column in panel.columns)
    return _with_targets(drawn, replace(panel, queries=queries), instant=True)


def _organized(panel: Table) -> dict[str, object]:
    """Names, order and visibility of the columns, as Grafana's transformation `organize` reads them.

    Grafana names the values of query A "Value #A" if there are several queries, else "Value".
    """
    several = len(panel.columns) > 1
    values = [f"Value #{letter(place)}" if several else "Value" for place in range(len(panel.columns))]
    names = dict(panel.labels)
    names |= {value: column.title for value, column in zip(values, panel.columns, strict=True) if column.title}
    hidden = {"Time": True} | {value: True for value in values if value not in names}
    return {
        "excludeByName": hidden,
        "indexByName": {name: place for place, name in enumerate(names)},
        "renameByName": names,
    }


def _properties(column: Column) -> list[model.DynamicConfigValue]:
    found = [model.DynamicConfigValue("unit", column.unit.grafana), model.DynamicConfigValue("decimals", 1)]
    if column.limits:
        steps = model.ThresholdsConfig(steps=_steps(GREY, column.limits))
        found.append(model.DynamicConfigValue("thresholds", steps))
        found.append(model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}))
    return found


def letter(number: int) -> str:
    """Grafana's name of a query: A, B, C ..."""
    return chr(ord("A") + number)


def _common(drawn: D, panel: Panel) -> D:
    drawn.title(panel.title).description(panel.description).datasource(DATASOURCE)
    drawn.unit(panel.unit.grafana).span(panel.width).height(panel.height).no_value("no data")
    steps = _steps(panel.below, panel.limits)
    drawn.thresholds(sdk.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))
    return drawn


def _steps(below: str, limits: tuple[Limit, ...]) -> list[model.Threshold]:
    return [model.Threshold(None, below), *(model.Threshold(limit.value, limit.color) for limit in limits)]


def _with_targets(drawn: D, panel: Panel, *, instant: bool) -> D:
    for place, query in enumerate(panel.queries):
        target = prometheus.Dataquery().datasource(DATASOURCE).expr(query.expr).ref_id(letter(place))
        target.legend_format(query.legend)
        if instant:
            target.instant()
        else:
            target.range()
        if isinstance(panel, Table):
            target.format(query_model.PromQueryFormat.TABLE)
        drawn.with_target(target)
    return drawn
