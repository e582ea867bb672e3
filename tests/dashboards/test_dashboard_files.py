"""The committed files agree with their source, and the queries with the metrics of the program."""

import re
from functools import cache
from pathlib import Path

import pytest
from exported import families

from adapter.core.decisions import Bound, Reason
from adapter.core.metrics import METRICS
from dashboards.build.output import CHART_FILES, FOLDER, RULES, documents
from dashboards.promql import Selector, selectors
from dashboards.queries import ALL, NAMES, TIMES, panel_queries, rules, substituted

# Exported and on no dashboard, with the reason.
NOT_SHOWN = {
    "backlog_adapter_required_workers_padded": "required_workers; above 10, raised for an HPA with a tolerance of 10 %",
    "backlog_adapter_backlog_growth": "backlog_growth_signed, without the negative numbers",
    "backlog_adapter_stage_load": "utilization shows how busy the hottest stage is; single stages: docs/flink.md",
    "backlog_adapter_true_rate": "of the bottleneck, for planning",
    "backlog_adapter_required_parallelism": "of the bottleneck, for planning",
    "backlog_adapter_snapshot_tick_timestamp_seconds": "snapshot_age_seconds shows it",
    "backlog_adapter_request_seconds_count": "requests_total counts the same",
    "backlog_adapter_request_seconds_sum": "the quantiles are shown",
}
# Labels that Prometheus adds to what it scrapes, and those of recorded series.
TARGET = {"job", "instance", "namespace"}
OF_OTHERS = ("aggregator_", "kube_")
VALUES = {**ALL, **TIMES}
EXPRESSIONS = {query.name: query.expr for name in NAMES for query in panel_queries(name)} | {
    f"{rule.file} / {rule.name}": rule.expr for rule in rules()
}
RECORDED = {rule.name for rule in rules() if not rule.is_alert}


@cache
def exported() -> dict[str, set[str]]:
    return families()


def own_selectors(expr: str) -> list[Selector]:
    found = selectors(substituted(expr, VALUES))
    return [each for each in found if not each.metric.startswith(OF_OTHERS)]


@pytest.mark.parametrize("name", documents())
def test_the_committed_dashboard_is_what_its_source_builds(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == documents()[name], "run `make dashboards`"


@pytest.mark.parametrize(
    "path", [*(FOLDER / name for name in documents()), *RULES], ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_the_chart_carries_the_same_files(path: Path) -> None:
    folder = "rules" if path in RULES else "dashboards"
    assert (CHART_FILES / folder / path.name).read_text("utf-8") == path.read_text("utf-8"), "run `make dashboards`"


def test_the_chart_carries_no_other_files() -> None:
    carried = {path.name for path in CHART_FILES.rglob("*.*") if path.is_file()}
    assert carried == {*documents(), *(path.name for path in RULES)}


@pytest.mark.parametrize("expr", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_each_query_and_rule_selects_series_and_labels_that_exist(expr: str) -> None:
    for selector in own_selectors(expr):
        if selector.metric in RECORDED:
            continue
        assert selector.metric in exported()
        assert selector.matchers.keys() <= exported()[selector.metric] | TARGET, selector


@pytest.mark.parametrize("expr", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_each_reason_and_bound_in_a_query_exists(expr: str) -> None:
    for selector in own_selectors(expr):
        assert set(selector.matchers.get("reason", Reason.HOLD.value).split("|")) <= {reason.value for reason in Reason}
        assert selector.matchers.get("bound", "") in {bound.value for bound in Bound}


def test_each_exported_series_is_documented() -> None:
    """Those of the metrics API are in the README (tests/test_docs.py)."""
    names = {re.sub(r"^backlog_adapter_|_(bucket|count|sum)$", "", name) for name in exported()}
    text = (FOLDER.parent / "docs" / "dashboards.md").read_text("utf-8")
    assert names == set(re.findall(r"^\| `(\w+)` \|", text, re.M)) | METRICS.keys()


def test_each_exported_metric_is_on_a_dashboard_or_listed_with_a_reason() -> None:
    shown = {each.metric for name in NAMES for query in panel_queries(name) for each in own_selectors(query.expr)}
    assert exported().keys() - shown == NOT_SHOWN.keys()
