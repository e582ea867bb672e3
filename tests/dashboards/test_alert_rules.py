"""Recording rules and alerts: valid, tested by promtool, and each alert with a runbook."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from exported import families

from adapter.core.metrics import METRICS
from dashboards.promql import selectors
from dashboards.queries import FOLDER, RULES, Rule, rules

ROOT = FOLDER.parent
UNIT_TESTS = sorted((Path(__file__).parent / "promtool").glob("*.yaml"))
ALERTS = [rule for rule in rules() if rule.is_alert]
EVERY_ALERT = pytest.mark.parametrize("alert", ALERTS, ids=lambda rule: rule.name)
SEVERITIES = {"critical", "warning", "info"}
PARTS = ("Meaning", "Impact", "Diagnosis", "Fix")
OF_THE_SCRAPE = {"job", "instance", "namespace"}
Promtool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """Runs promtool with its arguments."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "backlog-adapter" / "tools"
    program = Path(os.environ.get("BACKLOG_ADAPTER_TOOLS", cache)) / "promtool-0.315.0" / "promtool"
    if not program.is_file():
        pytest.skip(f"promtool is not built: no {program}; make tools")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)

    return run


def unit_tests() -> list[dict]:
    return [case for path in UNIT_TESTS for case in yaml.safe_load(path.read_text("utf-8"))["tests"]]


def alert_checks(name: str) -> list[tuple[float, bool]]:
    """When the unit tests look at an alert (in minutes), and whether it fires then; oldest first."""
    checks = [check for case in unit_tests() for check in case.get("alert_rule_test", ())]
    return sorted(
        (minutes(check["eval_time"]), bool(check.get("exp_alerts"))) for check in checks if check["alertname"] == name
    )


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
    assert [fires for _, fires in alert_checks(alert.name)] == [False, True, False]


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


@EVERY_ALERT
def test_each_alert_says_what_happens_and_how_severe_it_is(alert: Rule) -> None:
    assert alert.content["labels"]["severity"] in SEVERITIES
    assert alert.content["annotations"].keys() == {"summary", "description", "runbook_url"}


@EVERY_ALERT
def test_each_alert_has_a_runbook_section_with_every_part(alert: Rule) -> None:
    path, _, anchor = alert.content["annotations"]["runbook_url"].partition("#")
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
