"""Numbers of panels, computed by promtool from given series."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.queries import ALL, FOLDER, NAMES, TIMES, panel_queries, substituted

Promtool = Callable[..., subprocess.CompletedProcess[str]]


def workload(metric: str, name: str, values: str, **labels: str) -> dict[str, str]:
    """A series of a workload, with a value every minute."""
    given = {"instance": "10.0.0.1:8443", "namespace": "shop", "workload": name, **labels}
    text = ", ".join(f'{label}="{value}"' for label, value in given.items())
    return {"series": f"backlog_adapter_{metric}{{{text}}}", "values": values}


def held(name: str, reason: str) -> dict[str, str]:
    """A workload whose size a gate holds."""
    return workload("decision_info", name, "1x180", policy="drain", reason=reason, bound="")


# `new` exists for the last of three hours, `gone` for the first; both need ten workers for a minute.
HOURS = [
    workload("current_workers", "new", "_x121 6x59"),
    workload("required_workers", "new", "_x121 6x57 10 6"),
    workload("current_workers", "gone", "3x60 stale"),
    workload("required_workers", "gone", "3 10 3x58 stale"),
]
HELD = [held("unknown", "Expired"), held("late", "Stuck"), workload("backlog_time_seconds", "late", "90x180")]
# 25 workloads; the largest has no number.
MANY = [workload("decision_info", f"w{n}", "1x180", policy="drain", reason="Hold", bound="") for n in range(25)]
MANY += [workload("required_workers", f"w{n}", f"{n}x180") for n in range(24)]
UNKNOWN, LATE = ({"namespace": "shop", "workload": name} for name in ("unknown", "late"))


@pytest.mark.parametrize(
    ("query", "series", "expected"),
    [
        ("cost / Worker-hours / A", HOURS, [({}, 9)]),
        ("cost / Static peak / A", HOURS, [({}, 20)]),
        ("cost / Saved / A", HOURS, [({}, 0.55)]),
        ("fleet / Held, and why / A", HELD, [(LATE, 90)]),
        (
            "fleet / Held, and why / D",
            HELD,
            [
                ({**UNKNOWN, "policy": "drain", "reason": "Expired"}, 1),
                ({**LATE, "policy": "drain", "reason": "Stuck"}, 1),
            ],
        ),
        (
            "workload / Newest decision / A",
            MANY,
            [({"namespace": "shop", "workload": f"w{n}"}, n) for n in range(5, 24)],
        ),
        (
            "workload / Newest decision / C",
            MANY,
            [
                ({"namespace": "shop", "workload": f"w{n}", "policy": "drain", "reason": "Hold"}, 1)
                for n in range(5, 25)
            ],
        ),
    ],
)
def test_a_panel_shows(query: str, series: list, expected: list, promtool: Promtool, tmp_path: Path) -> None:
    (expr,) = [each.expr for name in NAMES for each in panel_queries(name) if each.name == query]
    done = promtool("test", "rules", written(tmp_path, series, substituted(expr, {**ALL, **TIMES}), expected))
    assert done.returncode == 0, done.stdout + done.stderr


def written(folder: Path, series: list, expr: str, expected: list[tuple[dict[str, str], float]]) -> Path:
    """The file of a unit test: what a query over three hours returns at their end."""
    samples = [{"labels": labels_of(labels), "value": value} for labels, value in expected]
    check = {"expr": expr, "eval_time": "3h", "exp_samples": samples}
    case: dict[str, Any] = {"interval": "1m", "input_series": series, "promql_expr_test": [check]}
    path = folder / "test.yaml"
    rules = [str(FOLDER / "rules" / "recording.yaml")]
    path.write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": [case]}))
    return path


def labels_of(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{label}="{value}"' for label, value in labels.items()) + "}"
