"""Sources that are configured and not read, and groups that are read twice."""

import pytest

from adapter.config import parse
from adapter.sources.precedence import shared_inputs, unread_sources

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


@pytest.mark.parametrize(
    ("second", "shared"),
    [
        ("{source: a, group: g, topics: [u, t]}", True),
        ("{source: a, group: g, topics: [u]}", False),
        ("{source: a, group: h, topics: [t]}", False),
        ("{source: b, group: g, topics: [t]}", False),
    ],
)
def test_a_group_that_two_workloads_read_on_one_topic_is_named(second: str, shared: bool) -> None:
    sources = "\n".join(f'  {name}: {{kind: kafka, bootstrap_servers: "{name}:9092"}}' for name in "ab")
    first = "{source: a, group: g, topics: [t]}, {source: a, group: g, topics: [t]}"
    workloads = f"workloads: [{{name: a, read: [{first}]}}, {{name: b, read: [{second}]}}]"
    found = shared_inputs(parse(f"sources:\n{sources}\n{workloads}\npipeline: {{checkpoint: /c}}", "c.yaml"))

    assert [sentence.partition(" reads")[0] for sentence in found] == [
        "workloads[1].read[0].group: workloads[0]"
    ] * shared


@pytest.mark.parametrize(
    ("second", "shared"),
    [
        ("{source: p, preset: flink, match: {namespace: shop, job_name: a}}", True),
        ("{source: p, preset: flink, match: {namespace: shop, job_name: b}}", False),
        ("{source: p, preset: flink-source, match: {job_name: a, namespace: shop}}", False),
        ('{source: p, match: {job_name: a, namespace: shop}, signals: {backlog_records: "lag{$match}"}}', False),
    ],
)
def test_series_that_two_workloads_read_through_one_preset_are_named(second: str, shared: bool) -> None:
    sources = 'sources: {p: {kind: prometheus, url: "http://p:9090"}}'
    first = "{source: p, preset: flink, match: {job_name: a, namespace: shop}}"
    workloads = f"workloads: [{{name: a, read: [{first}]}}, {{name: b, read: [{second}]}}]"
    found = shared_inputs(parse(f"{sources}\n{workloads}\npipeline: {{checkpoint: /c}}", "c.yaml"))

    text = "workloads[0] reads the same series of this preset; correct the match of one of them"
    assert found == [f"workloads[1].read[0].match: {text}"] * shared
