"""The queries of committed dashboards and rules, with Grafana's variables replaced."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
NAMES = ("fleet", "workload", "health", "cost")
RULES = ("recording", "alerts", "alerts-cluster")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
# All of a variable is its allValue. The times are those of a panel over three hours.
ALL = {"namespace": ".+", "workload": ".+", "job": ".+", "instance": ".+"}
TIMES = {"__rate_interval": "1m", "__interval": "15s", "__range": "3h", "__range_s": "10800"}


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """One query of a panel, or of the annotation of a dashboard."""

    dashboard: str
    panel: str
    letter: str  # refId
    expr: str
    legend: str
    instant: bool

    @property
    def name(self) -> str:
        """Where the query stands."""
        return f"{self.dashboard} / {self.panel} / {self.letter}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A recording rule or an alert."""

    file: str
    name: str
    expr: str
    content: Mapping[str, Any]

    @property
    def is_alert(self) -> bool:
        """Whether it fires; a recording rule does not."""
        return "alert" in self.content


@cache
def dashboard(name: str) -> dict[str, Any]:
    """A committed dashboard."""
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return loaded


def panels(name: str) -> Iterator[dict[str, Any]]:
    """The panels of a dashboard, without its rows."""
    return (panel for panel in dashboard(name)["panels"] if panel["type"] != "row")


def panel_queries(name: str) -> Iterator[PanelQuery]:
    """Every query of a dashboard."""
    for panel in panels(name):
        for target in panel["targets"]:
            yield _query(name, panel["title"], target)
    for annotation in dashboard(name)["annotations"]["list"]:
        yield _query(name, f"annotation {annotation['name']}", annotation["target"])


def _query(name: str, panel: str, target: Mapping[str, Any]) -> PanelQuery:
    legend, instant = target.get("legendFormat", ""), target.get("instant", False)
    return PanelQuery(name, panel, target["refId"], target["expr"], legend, instant)


def rules() -> Iterator[Rule]:
    """Every rule, in the order of the files."""
    for file in RULES:
        for group in yaml.safe_load((FOLDER / "rules" / f"{file}.yaml").read_text("utf-8"))["groups"]:
            for rule in group["rules"]:
                yield Rule(file, rule.get("alert") or rule["record"], rule["expr"], rule)


def substituted(text: str, values: Mapping[str, str]) -> str:
    """The text with Grafana's variables replaced. KeyError for a variable without a value."""
    return _VARIABLE.sub(lambda found: values[found[1] or found[2]], text)
