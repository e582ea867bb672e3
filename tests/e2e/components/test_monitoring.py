"""Dashboards, rules and alerts on a real Prometheus that scrapes the running adapter."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.exporter import Exporter
from parts.monitored import SCRAPE_S, Monitored, Servers
from parts.process import until
from parts.prometheus import Prometheus

from dashboards.promql import selectors
from dashboards.queries import ALL, NAMES, TIMES, panel_queries, rules, substituted

# The intervals of Grafana for this scrape interval, and a short time range.
VALUES = {**ALL, **TIMES, "__rate_interval": f"{4 * SCRAPE_S}s", "__range": "2m", "__range_s": "120"}
DATA_WITHIN_S = 1200  # the faults of the fleet recur every three minutes; a loaded machine misses some
# Selectors of alerts that find nothing here, with the reason.
WITHOUT_DATA = {
    'reason="Paused"': "no workload is paused here",
    'bound="pause"': "no workload is paused here",
    'reason="NotEnacted"': "the fleet follows every decision",
    'ours="false"': "no other adapter owns the API here",
    'bound="partitions"': "no job needs more workers than its partitions here",
    "kube_horizontalpodautoscaler_": "no kube-state-metrics runs here",
}


@pytest.fixture(scope="module")
def monitored(run: Path, broker: Broker, exporter: Exporter, controlplane: ControlPlane) -> Iterator[Monitored]:
    with Monitored(run / "monitored", Servers(broker, exporter, controlplane)) as monitored:
        yield monitored


def has_data(prometheus: Prometheus, expr: str) -> bool:
    """Whether a query returns a series. Raises ValueError for a query that Prometheus refuses."""
    answer = httpx.get(f"{prometheus.url}/api/v1/query", params={"query": expr}, timeout=10).json()
    if answer["status"] != "success":
        raise AssertionError(f"{expr}: {answer['error']}")
    return bool(answer["data"]["result"])


def without_data(prometheus: Prometheus, queries: dict[str, str]) -> list[str]:
    """The names of the queries that have returned nothing within DATA_WITHIN_S. Each needs to have data once."""
    waiting = dict(queries)

    def all_have_data() -> bool:
        for name, expr in list(waiting.items()):
            if has_data(prometheus, expr):
                del waiting[name]
        return not waiting

    try:
        until(all_have_data, DATA_WITHIN_S, "every query has data", every_s=SCRAPE_S)
    except AssertionError:
        assert waiting
    return sorted(waiting)


def firing(prometheus: Prometheus) -> set[str]:
    """The alerts that fire now."""
    return {each["metric"]["alertname"] for each in prometheus.query('ALERTS{alertstate="firing"}')}


def test_every_query_of_every_panel_returns_data(monitored: Monitored) -> None:
    queries = {query.name: substituted(query.expr, VALUES) for name in NAMES for query in panel_queries(name)}
    assert without_data(monitored.prometheus, queries) == []


def test_every_recording_rule_and_every_selector_of_an_alert_returns_data(monitored: Monitored) -> None:
    recorded = {rule.name: rule.name for rule in rules() if not rule.is_alert}
    selected = {
        # Some reasons hold for seconds, so any moment of the last minutes counts.
        f"{rule.name}: {each.text}": f"max_over_time({each.text}[10m])"
        for rule in rules()
        for each in selectors(rule.expr)
        if rule.is_alert and not any(part in each.text for part in WITHOUT_DATA)
    }
    assert without_data(monitored.prometheus, recorded | selected) == []


def test_prometheus_evaluates_every_rule_without_an_error(monitored: Monitored) -> None:
    answer = httpx.get(f"{monitored.prometheus.url}/api/v1/rules", timeout=10).json()
    evaluated = {rule["name"]: rule["health"] for group in answer["data"]["groups"] for rule in group["rules"]}
    assert evaluated == dict.fromkeys((rule.name for rule in rules()), "ok")


LASTING = [
    "BacklogAdapterBadAnnotations",
    "BacklogAdapterCertificateExpires",
    "BacklogAdapterInputDataOld",
    "BacklogAdapterSourceFails",
]


@pytest.mark.parametrize("alert", LASTING)
def test_an_alert_on_a_lasting_fault_fires(monitored: Monitored, alert: str) -> None:
    """An annotation cannot be read, the certificate is valid for two days, and a consumer group has no samples."""
    until(lambda: alert in firing(monitored.prometheus), 120, f"{alert} fires")
