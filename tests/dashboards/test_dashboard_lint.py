"""The committed dashboards obey the rules of Grafana's dashboard-linter, and the rules of this project.

The linter is a Go program; its rules are restated here. A rule's name in a test is that of the linter.
"""

import re

import pytest

from dashboards.promql import selectors
from dashboards.queries import ALL, NAMES, TIMES, PanelQuery, dashboard, panel_queries, panels, substituted

EVERY_DASHBOARD = pytest.mark.parametrize("name", NAMES)
QUERIES = [query for name in NAMES for query in panel_queries(name)]
EVERY_QUERY = pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
UNITS = {"none", "short", "s", "d", "percentunit", "reqps", "string"}  # Grafana's identifiers that are in use
RATES = {"rate", "irate", "increase"}
# Stands for $__rate_interval, so that a test can tell it from a literal range.
RATE_INTERVAL = "7m7s"
PROBED = {**ALL, **TIMES, "__rate_interval": RATE_INTERVAL}


def variables(name: str) -> dict[str, dict]:
    return {variable["name"]: variable for variable in dashboard(name)["templating"]["list"]}


def parsed(query: PanelQuery) -> list:
    return selectors(substituted(query.expr, PROBED))


@EVERY_DASHBOARD
def test_template_datasource_rule_one_variable_selects_a_prometheus(name: str) -> None:
    found = [variable for variable in variables(name).values() if variable["type"] == "datasource"]
    assert [(each["name"], each["label"], each["query"]) for each in found] == [
        ("datasource", "Data source", "prometheus")
    ]


@EVERY_DASHBOARD
def test_template_variables_accept_all_and_follow_the_time_range(name: str) -> None:
    queried = [variable for variable in variables(name).values() if variable["type"] == "query"]
    assert {"namespace", "workload"} <= {variable["name"] for variable in queried}
    for variable in queried:
        assert (variable["includeAll"], variable["multi"], variable["allValue"]) == (True, True, ".+")
        assert (variable["refresh"], variable["datasource"]["uid"]) == (2, "${datasource}")


def test_template_job_and_instance_rules_hold_where_processes_are_shown() -> None:
    assert list(variables("health"))[1:3] == ["job", "instance"]


@EVERY_DASHBOARD
def test_template_label_promql_rule_each_variable_queries_a_valid_selector(name: str) -> None:
    for variable in variables(name).values():
        if variable["type"] == "query":
            (inner,) = re.findall(r"^label_values\((.+), \w+\)$", variable["query"])
            assert selectors(substituted(inner, ALL))


@EVERY_DASHBOARD
def test_panel_and_target_datasources_are_the_variable(name: str) -> None:
    drawn = list(panels(name))
    assert {panel["datasource"]["uid"] for panel in drawn} == {"${datasource}"}
    assert {target["datasource"]["uid"] for panel in drawn for target in panel["targets"]} == {"${datasource}"}


@EVERY_DASHBOARD
def test_panel_title_description_and_no_targets_rules(name: str) -> None:
    drawn = list(panels(name))
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in drawn)
    titles = [panel["title"] for panel in drawn]
    assert len(set(titles)) == len(titles)


@EVERY_DASHBOARD
def test_panel_units_rule_each_panel_has_a_unit_and_names_unit_and_threshold(name: str) -> None:
    for panel in panels(name):
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert re.search(r" Unit: .+\. Threshold: .+\.$", panel["description"])


@EVERY_QUERY
def test_target_promql_rule(query: PanelQuery) -> None:
    assert parsed(query)


@EVERY_QUERY
def test_target_rate_interval_rule_and_counters_are_rates(query: PanelQuery) -> None:
    for selector in parsed(query):
        is_counter = selector.metric.endswith(("_total", "_bucket"))
        assert is_counter == (selector.function in RATES), selector
        if selector.function in {"rate", "irate"}:
            assert selector.range is not None
            assert selector.range.total_seconds() == 427, f"{selector} has a range of its own"


@EVERY_QUERY
def test_target_job_and_instance_rules_each_selector_follows_the_variables(query: PanelQuery) -> None:
    for selector in parsed(query):
        chosen = {label: value for label, value in selector.matchers.items() if value == ".+"}
        assert chosen.keys() in ({"namespace", "workload"}, {"job", "instance"}), selector


@EVERY_DASHBOARD
def test_uneditable_dashboard_with_a_fixed_uid_and_without_an_import_prompt(name: str) -> None:
    found = dashboard(name)
    assert (found["uid"], found["editable"]) == (f"backlog-adapter-{name}", False)
    assert not {"__inputs", "__requires", "id"} & found.keys()


@EVERY_DASHBOARD
def test_dashboards_link_to_each_other_with_time_and_variables(name: str) -> None:
    (link,) = dashboard(name)["links"]
    assert (link["type"], link["includeVars"], link["keepTime"]) == ("dashboards", True, True)
    assert set(link["tags"]) <= set(dashboard(name)["tags"])


def test_the_workload_dashboard_marks_rescales() -> None:
    (annotation,) = dashboard("workload")["annotations"]["list"]
    assert (annotation["name"], annotation["enable"]) == ("Rescales", True)
    assert "spec_workers" in annotation["expr"]


@EVERY_DASHBOARD
def test_ids_of_panels_are_unique_and_panels_do_not_overlap(name: str) -> None:
    every = dashboard(name)["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    taken: set[tuple[int, int]] = set()
    for panel in every:
        place = panel["gridPos"]
        cells = {(place["x"] + column, place["y"] + row) for column in range(place["w"]) for row in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("name", ["fleet", "workload"])
def test_a_thousand_workloads_do_not_draw_a_thousand_series(name: str) -> None:
    """A query that yields one series a workload is limited; aggregated ones yield a few."""
    for query in panel_queries(name):
        aggregated = re.match(r"(sum|max|count|avg)( by \((reason|bound)\))? ?\(", query.expr)
        assert "topk(" in query.expr or aggregated or query.panel.startswith("annotation"), query.name
