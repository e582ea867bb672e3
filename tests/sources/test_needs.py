"""A policy without a signal that it needs is a fault at the start, with what can provide the signal."""

from collections.abc import Callable

import pytest

from adapter.config import Config, parse
from adapter.core.rules import POLICIES
from adapter.core.samples import STAGE_SIGNALS, WORKLOAD_SIGNALS
from adapter.sources.needs import NEEDS, check, hints

UNCOUNTED = """
sources:
  kafka: {kind: kafka, bootstrap_servers: "a:9092"}
  prom: {kind: prometheus, url: "http://prom:9090"}
  streams: {kind: pravega, url: "http://a"}
  measured: {kind: pravega, url: "http://a", prometheus: prom}
  sim: {kind: trace, file: fleet.jsonl}
"""
SOURCES = f"""{UNCOUNTED}
  cluster: {{kind: kubernetes}}
pipeline: {{checkpoint: /c}}
"""
KAFKA = "source: kafka, group: g, topics: [t]"
PRAVEGA = "source: streams, scope: s, stream: s"
MEASURED = "source: measured, scope: s, stream: s"


def workload(*readings: str, policy: str | None = None) -> Config:
    rules = f", rules: {{policy: {policy}}}" if policy else ""
    read = ", ".join(f"{{{reading}}}" for reading in readings)
    return parse(f"{SOURCES}workloads: [{{name: a, read: [{read}]{rules}}}]", "c.yaml")


def fleet(settings: str, shared: str = "{}") -> Config:
    return parse(f"{SOURCES}fleets: [{{name: many, {settings}}}]\nrules: {shared}", "c.yaml")


def own(*signals: str) -> str:
    return f"source: prom, signals: {{{', '.join(f'{signal}: up' for signal in signals)}}}"


def test_the_needs_of_every_policy_are_known_signals() -> None:
    assert tuple(NEEDS) == POLICIES
    named = {signal for needs in NEEDS.values() for need in needs for signal in need.signals}
    assert named <= {*STAGE_SIGNALS, *WORKLOAD_SIGNALS}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "reading", ["source: prom, preset: flink", "source: prom, preset: flink-varga", "source: sim"], ids=str
)
def test_flink_and_traces_provide_the_needs_of_every_policy(policy: str, reading: str) -> None:
    config = workload(reading, policy=policy)
    assert (check(config), hints(config)) == ([], [])


@pytest.mark.parametrize(
    ("config", "lacking"),
    [
        pytest.param(workload(KAFKA), [], id="drain on Kafka"),
        pytest.param(workload(KAFKA, policy="segments"), [], id="segments on Kafka's partitions, S2-01"),
        pytest.param(workload(KAFKA, policy="netflix"), [], id="netflix on Kafka"),
        pytest.param(workload(KAFKA, policy="varga"), ["cpu_ratio or utilization_ratio"], id="varga on Kafka, S1-14"),
        pytest.param(workload(KAFKA, own("utilization_ratio"), policy="varga"), [], id="varga on two sources"),
        pytest.param(workload(KAFKA, "source: prom, preset: cadvisor", policy="varga"), [], id="varga on containers"),
        pytest.param(workload(PRAVEGA, policy="segments"), [], id="segments on Pravega, S2-01"),
        pytest.param(
            workload(PRAVEGA),
            ["processed_records or throughput_records_per_s", "backlog_records"],
            id="drain on the segments of Pravega alone",
        ),
        pytest.param(workload(MEASURED), ["backlog_records"], id="drain on Pravega with its rates"),
        pytest.param(workload(MEASURED, own("backlog_records")), [], id="drain on Pravega with a backlog"),
        pytest.param(workload("source: prom, preset: spark"), ["backlog_records"], id="drain on Spark"),
        pytest.param(
            workload("source: prom, preset: spark", policy="segments"), ["partitions"], id="segments on Spark"
        ),
        pytest.param(fleet("source: kafka, groups: a"), [], id="a fleet of groups"),
        pytest.param(
            fleet("source: prom, preset: kafka-exporter", "{policy: varga}"),
            ["cpu_ratio or utilization_ratio"],
            id="of an exporter",
        ),
        pytest.param(
            fleet("source: prom, workload_label: app, signals: {backlog_records: up}"),
            ["processed_records or throughput_records_per_s"],
            id="a fleet of own queries",
        ),
    ],
)
def test_a_policy_without_a_signal_it_needs_is_a_fault(config: Config, lacking: list[str]) -> None:
    assert [fault.split(" needs ")[1].split(",")[0] for fault in check(config)] == lacking


def test_the_fault_names_the_setting_of_the_policy_and_all_providers_of_the_signal() -> None:
    assert check(workload(PRAVEGA, policy="drain"))[1] == (
        "workloads[0].rules.policy: the policy drain needs backlog_records, which the sources of default/a do not "
        "provide; "
        "a kafka source, the presets beam, flink, flink-varga, kafka-exporter, kafka-lag-exporter, klag, kminion, "
        "pravega-flink, or a query of your own (signals: {backlog_records: ...}) could"
    )


@pytest.mark.parametrize(
    ("shared", "origin"), [("{}", "default"), ("{policy: drain}", "rules.policy")], ids=["default", "shared"]
)
def test_the_fault_of_an_inherited_policy_names_the_entry_and_the_setting(shared: str, origin: str) -> None:
    [fault] = check(fleet("source: prom, preset: spark", shared))
    assert fault.startswith(f"fleets[0]: the policy drain ({origin}) needs backlog_records")


@pytest.mark.parametrize("policy", ["dataflow", "beam-flink", "netflix"])
def test_a_missing_optional_signal_is_a_hint(policy: str) -> None:
    config = workload(KAFKA, policy=policy)
    assert check(config) == []
    [hint] = hints(config)
    assert hint.startswith(
        f"workloads[0].rules.policy: the policy {policy} could use cpu_ratio or utilization_ratio, which "
    )
    assert "; without it " in hint


@pytest.mark.parametrize(
    ("policy", "sentences_of", "missing"),
    [
        pytest.param("varga", check, " needs cpu_ratio or utilization_ratio", id="a fault"),
        pytest.param("netflix", hints, " could use", id="a hint"),
    ],
)
def test_the_missing_signal_of_a_hundred_workloads_is_reported_once(
    policy: str, sentences_of: Callable[[Config], list[str]], missing: str
) -> None:
    shared = f"{{policy: {policy}}}"
    many = ", ".join(f"{{name: w{number}, read: [{{{KAFKA}}}]}}" for number in range(100))
    own = f"{{name: own, read: [{{{KAFKA}}}], rules: {shared}}}"
    first, second = sentences_of(parse(f"{SOURCES}workloads: [{many}, {own}]\nrules: {shared}", "c.yaml"))
    assert first.startswith(f"workloads[0]: the policy {policy} (rules.policy){missing}")
    assert "which the sources of default/w0 and 99 more do not provide" in first
    assert second.startswith(f"workloads[100].rules.policy: the policy {policy}{missing}")


COUNTED = {
    "a kubernetes source": (KAFKA, "  cluster: {kind: kubernetes}"),
    "a preset": ("source: prom, preset: flink", ""),
    "a query of one's own": (own("backlog_records", "throughput_records_per_s", "spec_workers"), ""),
    "a trace": ("source: sim", ""),
}


@pytest.mark.parametrize(("reading", "source"), COUNTED.values(), ids=COUNTED)
def test_workers_that_are_counted_need_no_hint(reading: str, source: str) -> None:
    sources = f"{UNCOUNTED}{source}\npipeline: {{checkpoint: /c}}\n"
    assert hints(parse(f"{sources}workloads: [{{name: a, read: [{{{reading}}}]}}]", "c.yaml")) == []


def test_missing_worker_counts_are_reported_once_with_their_providers() -> None:
    many = ", ".join(f"{{name: w{number}, read: [{{{KAFKA}}}]}}" for number in range(100))
    fleets = "fleets: [{name: found, source: kafka, groups: a}]"
    text = f"{UNCOUNTED}pipeline: {{checkpoint: /c}}\nworkloads: [{many}]\n{fleets}"
    assert check(parse(text, "c.yaml")) == []
    assert hints(parse(text, "c.yaml")) == [
        "sources: the sources of default/w0 and 100 more do not provide the number of workers; a kubernetes source "
        "(cluster: {kind: kubernetes}), the presets beam, flink, flink-varga, kube-state-metrics, pravega-flink, or a "
        "query of your own (signals: {ready_workers: ...}) could; without it required_workers stays unknown, and an "
        "HPA on it keeps its replicas"
    ]


def test_an_unknown_preset_is_the_fault_of_another_check() -> None:
    assert check(workload("source: prom, preset: flnk")) == []


def test_the_fault_of_a_policy_by_match_names_the_match() -> None:
    matched = 'rules_by_match: [{name: "b.*", rules: {policy: varga}}]'
    (fault,) = check(fleet("source: kafka, groups: 'r.*'", f"{{policy: dataflow}}\n{matched}"))
    assert fault.startswith("fleets[0]: the policy varga (rules_by_match[0].rules.policy) needs ")
