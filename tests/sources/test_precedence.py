"""Sources that are configured and not read."""

import pytest

from adapter.config import parse
from adapter.sources.precedence import unread_sources

SOURCES = """
sources:
  prom: {kind: prometheus, url: "http://prom:9090"}
  other: {kind: prometheus, url: "http://other:9090"}
  measured: {kind: pravega, url: "http://a", prometheus: prom}
  cluster: {kind: kubernetes}
  fleet: {kind: trace, url: "http://fleet:8080"}
pipeline: {checkpoint: /c}
"""
OTHER = "source: other, preset: flink, match: {job: a}"


@pytest.mark.parametrize(
    ("entries", "unread"),
    [
        pytest.param(
            "workloads: [{name: a, read: [{source: measured, scope: s, stream: s}]}]", ["other"], id="a stream's rates"
        ),
        pytest.param(f"workloads: [{{name: a, read: [{{{OTHER}}}]}}]", ["prom", "measured"], id="a workload"),
        pytest.param("fleets: [{name: a, source: other, preset: flink}]", ["prom", "measured"], id="a fleet"),
        pytest.param("workloads: []", [], id="nothing to read for"),
    ],
)
def test_a_source_that_nothing_reads_is_named(entries: str, unread: list[str]) -> None:
    found = unread_sources(parse(f"{SOURCES}{entries}", "c.yaml"))

    assert [sentence.partition(": ")[0] for sentence in found] == [f"sources.{name}" for name in unread]
    assert all("no workload or fleet reads this source" in sentence for sentence in found)
