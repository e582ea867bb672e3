"""Recording rules and alerts: valid, tested by promtool, and each alert with a runbook."""

import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml
from exported import counters, exported_series, families

from adapter.core.metrics import METRICS
from dashboards.promql import Selector, selectors
from dashboards.queries import FOLDER, RULES, Rule, rules

ROOT = FOLDER.parent
UNIT_TESTS = sorted((Path(__file__).parent / "promtool").glob("*.yaml"))
ALERTS = [rule for rule in rules() if rule.is_alert]
EVERY_RULE = pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: rule.name)
EXPORTED = exported_series()
LABELS_OF_RECORDED = {"namespace", "workload", "group"}
EVERY_ALERT = pytest.mark.parametrize("alert", ALERTS, ids=lambda rule: rule.name)
SEVERITIES = {"critical", "warning", "info"}
PARTS = ("Meaning", "Impact", "Diagnosis", "Fix")
OF_THE_SCRAPE = {"job", "instance", "namespace"}
Promtool = Callable[..., subprocess.CompletedProcess[str]]


def own_selectors(rule: Rule) -> list[Selector]:
    """The selectors of series that the program exports."""
    return [each for each in selectors(rule.expr) if each.metric.startswith("backlog_adapter_")]


@cache
def unit_tests() -> list[dict]:
    return [case for path in UNIT_TESTS for case in yaml.safe_load(path.read_text("utf-8"))["tests"]]


def alert_checks(name: str) -> list[list[bool]]:
    """Whether an alert fires at each moment that a unit test looks at, oldest first; one list a test."""
    checks = [
        sorted(
            (minutes(check["eval_time"]), bool(check.get("exp_alerts")))
            for check in case.get("alert_rule_test", ())
            if check["alertname"] == name
        )
        for case in unit_tests()
    ]
    return [[fires for _, fires in case] for case in checks if case]


def minutes(text: str) -> float:
    found = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?", text)
    assert found is not None, text
    return 60 * int(found[1] or 0) + int(found[2] or 0)


def test_promtool_accepts_the_rules(promtool: Promtool) -> None:
    done = promtool(
        "check", "rules", "--lint=all", "--lint-fatal", *(FOLDER / "rules" / f"{name}.yaml" for name in RULES)
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(900)  # seconds on a free machine
@pytest.mark.parametrize("path", UNIT_TESTS, ids=lambda path: path.stem)
def test_the_unit_tests_of_the_rules_pass(path: Path, promtool: Promtool) -> None:
    done = promtool("test", "rules", path)
    assert done.returncode == 0, done.stdout + done.stderr


@EVERY_ALERT
def test_each_alert_is_quiet_fires_and_resolves_in_a_unit_test(alert: Rule) -> None:
    assert [False, True, False] in alert_checks(alert.name)


def test_each_recording_rule_has_a_unit_test() -> None:
    tested = {
        each.metric
        for case in unit_tests()
        for check in case.get("promql_expr_test", ())
        for each in selectors(check["expr"])
    }
    assert {rule.name for rule in rules() if not rule.is_alert} == tested


@pytest.mark.parametrize("path", UNIT_TESTS, ids=lambda path: path.stem)
def test_the_series_of_the_unit_tests_are_those_of_the_program(path: Path) -> None:
    exported = families()
    for case in yaml.safe_load(path.read_text("utf-8"))["tests"]:
        for series in case["input_series"]:
            (found,) = selectors(series["series"])
            if found.metric.startswith("backlog_adapter_"):
                assert found.matchers.keys() <= exported[found.metric] | OF_THE_SCRAPE, series
                assert exported[found.metric] <= found.matchers.keys(), series


@EVERY_RULE
def test_each_selector_of_a_rule_finds_a_series_of_the_program(rule: Rule) -> None:
    """Its name, its labels and their values: a rule on a value that is never exported stays silent."""
    for selector in own_selectors(rule):
        wanted = {label: value for label, value in selector.matchers.items() if label not in OF_THE_SCRAPE}
        assert any(
            name == selector.metric
            and all(re.fullmatch(value, labels.get(label, "")) for label, value in wanted.items())
            for name, labels in EXPORTED
        ), selector


@EVERY_RULE
def test_each_label_that_a_rule_groups_by_or_shows_is_one_of_its_series(rule: Rule) -> None:
    grouped = {label for each in re.findall(r"\b(?:by|on) \(([^)]*)\)", rule.expr) for label in each.split(", ")}
    annotations = " ".join(rule.content.get("annotations", {}).values())
    assert set(re.findall(r"\$labels\.(\w+)", annotations)) <= grouped | LABELS_OF_RECORDED
    for selector in own_selectors(rule):
        assert grouped <= families()[selector.metric] | OF_THE_SCRAPE, selector


@EVERY_RULE
def test_rules_use_the_rate_of_counters_and_of_nothing_else(rule: Rule) -> None:
    for selector in own_selectors(rule):
        assert (selector.metric in counters()) == (selector.function in {"rate", "increase"}), selector


@EVERY_ALERT
def test_each_alert_says_what_happens_and_how_severe_it_is(alert: Rule) -> None:
    assert alert.content["labels"]["severity"] in SEVERITIES
    assert alert.content["annotations"].keys() == {"summary", "description", "runbook"}


@EVERY_ALERT
def test_each_alert_has_a_runbook_section_with_every_part(alert: Rule) -> None:
    path, _, anchor = alert.content["annotations"]["runbook"].partition("#")
    assert anchor == alert.name.lower()
    (section,) = re.findall(rf"^## {alert.name}\n(.*?)(?=^## |\Z)", (ROOT / path).read_text("utf-8"), re.M | re.S)
    assert re.findall(r"^\*\*(\w+)\.\*\*", section, re.M) == list(PARTS)


def test_each_runbook_section_belongs_to_an_alert() -> None:
    sections = {
        name
        for path in (ROOT / "docs" / "runbooks").glob("*.md")
        for name in re.findall(r"^## (\w+)$", path.read_text("utf-8"), re.M)
    }
    assert sections == {alert.name for alert in ALERTS}


def test_recording_rules_are_named_level_metric_operation() -> None:
    for rule in rules():
        if not rule.is_alert:
            level, metric, operation = rule.name.split(":")
            assert level in {"namespace_workload", "group"}
            assert metric.startswith("backlog_adapter_")
            assert re.fullmatch(r"[a-z0-9_]+", operation)


def test_only_the_alerts_of_the_cluster_need_series_of_others() -> None:
    for rule in rules():
        own = all("backlog_adapter_" in each.metric for each in selectors(rule.expr))
        assert own == (rule.file != "alerts-cluster"), rule.name


def test_the_alert_on_hpas_knows_every_metric() -> None:
    (alert,) = [alert for alert in ALERTS if alert.name == "BacklogAdapterHpaCannotRead"]
    (named,) = [each.matchers["metric_name"] for each in selectors(alert.expr) if "metric_name" in each.matchers]
    assert set(named.split("|")) == METRICS.keys()
