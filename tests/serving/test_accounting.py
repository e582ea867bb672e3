"""Counting and logging of requests."""

from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from adapter.apiserver.app import RequestOutcome
from adapter.apiserver.identity import Identity
from adapter.apiserver.request import Request
from adapter.serving.accounting import LONGEST_SHOWN, REPEAT_S, Accounting, Level, log_text
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry

METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/required_workers"
OBJECT = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps/orders/backlog"
HPA = Identity("system:serviceaccount:kube-system:horizontal-pod-autoscaler", ("system:serviceaccounts",) * 100)


TOOK_S = 0.01234


def handled(uri: str = METRIC, code: int = 200, identity: Identity | None = HPA, **headers: str) -> RequestOutcome:
    path, _, query = uri.partition("?")
    sent = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
    metric = path.rpartition("/")[2] if "/namespaces/" in path else ""
    return RequestOutcome(Request("GET", path, query, sent), identity, metric, code, TOOK_S)


def logged(*given: RequestOutcome, level: Level = "refusals") -> list[Any]:
    with structlog.testing.capture_logs() as logs:
        accounting = Accounting(Telemetry(SnapshotStore(), workloads=False), structlog.get_logger(), level)
        for each in given:
            accounting.record(each)
    return logs


@pytest.mark.parametrize(
    ("uri", "metric", "group"),
    [
        (METRIC, "required_workers", "external"),
        (METRIC.replace("required_workers", "s0-kafka"), "other", "external"),
        (OBJECT, "backlog", "custom"),
        ("/apis", "", "discovery"),
        ("/apis/external.metrics.k8s.io/v1beta1", "", "discovery"),
        ("/openapi/v3", "", "discovery"),
        ("/readyz", "", "other"),
        ("/", "", "other"),
    ],
)
def test_a_response_is_counted_by_metric_and_group(uri: str, metric: str, group: str) -> None:
    telemetry = Telemetry(SnapshotStore(), workloads=False)
    Accounting(telemetry, structlog.get_logger(), "none").record(handled(uri, 503))
    families = text_string_to_metric_families(telemetry.exposition().decode())
    labels = [each.labels for family in families for each in family.samples if each.name.endswith("_requests_total")]
    assert labels == [{"metric": metric, "code": "503", "group": group}]


@pytest.mark.parametrize(
    ("level", "codes"),
    [("all", [200, 201, 304, 301, 400, 401, 403, 404, 429, 500, 503]), ("none", [])],
)
def test_the_levels_all_and_none_log_all_and_none(level: Level, codes: list[int]) -> None:
    given = [handled(code=code) for code in (200, 201, 304, 301, 400, 401, 403, 404, 429, 500, 503)]
    assert [log["code"] for log in logged(*given, level=level)] == codes


def test_by_default_refusals_are_logged_and_failures_are_warnings() -> None:
    given = [handled(code=code) for code in (200, 201, 304, 301, 400, 401, 403, 404, 429, 500, 503)]
    assert [(log["code"], log["log_level"]) for log in logged(*given)] == [
        (301, "info"),
        (400, "info"),
        (401, "info"),
        (403, "info"),
        (404, "info"),
        (429, "info"),
        (500, "warning"),
        (503, "warning"),
    ]


def test_a_repeated_refusal_is_logged_once_in_five_minutes() -> None:
    """While the pipeline is down, a thousand HPAs are refused every 15 s."""
    now_s = [0.0]
    with structlog.testing.capture_logs() as logs:
        telemetry = Telemetry(SnapshotStore(), workloads=False)
        accounting = Accounting(telemetry, structlog.get_logger(), clock=lambda: now_s[0])
        for _ in range(3):
            for given in (
                handled(code=503),
                handled(code=503, identity=None),
                handled(OBJECT, 503),
                handled(code=404),
            ):
                accounting.record(given)
        assert len(logs) == 4
        now_s[0] = REPEAT_S
        accounting.record(handled(code=503))
    assert len(logs) == 5


def test_a_log_line_names_user_agent_and_path_without_the_groups() -> None:
    headers = {"user_agent": "kube-controller-manager/v1.36", "audit_id": "4f2a", "authorization": "Bearer secret"}
    uri = f"{METRIC}?labelSelector=workload%3Dorders"
    assert logged(handled(uri, 404, **headers)) == [
        {
            "event": "request",
            "log_level": "info",
            "caller": "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
            "agent": "kube-controller-manager/v1.36",
            "method": "GET",
            "uri": uri,
            "code": 404,
            "took_ms": 12.3,
            "audit_id": "4f2a",
        }
    ]


def test_an_unknown_caller_is_logged_as_none() -> None:
    (line,) = logged(handled(code=401, identity=None))
    assert line["caller"] is None
    assert "audit_id" not in line


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/apis?a=b", "/apis?a=b"),
        ("/métriques", "/métriques"),
        ("a\r\nforged line", "a\\r\\nforged line"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\u202eright to left", "\\u202eright to left"),
        ("a\udcffb", "a\\udcffb"),
        ("x" * LONGEST_SHOWN, "x" * LONGEST_SHOWN),
        ("x" * (LONGEST_SHOWN + 1), "x" * LONGEST_SHOWN + "…"),
    ],
    ids=["plain", "letters", "line feed", "terminal", "direction", "half a character", "as long as may be", "longer"],
)
def test_text_of_a_client_is_logged_as_one_short_line(given: str, expected: str) -> None:
    assert log_text(given) == expected


@given(st.text(max_size=2 * LONGEST_SHOWN))
def test_any_text_of_a_client_is_printable_and_bounded(text: str) -> None:
    line = log_text(text)
    assert line.isprintable()
    assert len(line) <= 12 * LONGEST_SHOWN
    line.encode()
