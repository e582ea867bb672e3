import pytest

from adapter.config import Config, Fleet, Pipeline, PrometheusReading, PrometheusSource, Workload
from adapter.sources import presets
from adapter.sources.query_hints import hints


def reading(**given: object) -> PrometheusReading:
    return PrometheusReading.model_validate({"source": "main", **given})


def config(*workloads: Workload, fleets: tuple[Fleet, ...] = ()) -> Config:
    source = PrometheusSource(kind="prometheus", url="http://p.test")
    pipeline = Pipeline(checkpoint="unused")
    return Config(sources={"main": source}, workloads=workloads, fleets=fleets, pipeline=pipeline)


AGGREGATE = "is the rate of an aggregate, which falls when a worker ends; write sum(rate(METRIC{$match}[$window]))"
INCREASE = "counts the records of a window where records/s are expected; write rate() for increase()"
PERCENT = "is probably a percentage where a share from 0 to 1 is expected; divide it by 100"
NO_COUNTER = "is a rate where a counter is expected; write it below throughput_records_per_s, or leave out rate()"
UNSELECTIVE = "has no $match, so `match` does not limit the series that it reads; write METRIC{$match}"
ZERO = (
    "is 0 while its series are missing, although the number is then unknown; remove the part that returns 0, such as "
    "`or vector(0)`"
)
NO_RATE = "is a counter where a rate is expected; write rate(METRIC{$match}[$window])"


@pytest.mark.parametrize(
    ("signal", "query", "hint"),
    [
        ("backlog_records", "sum(lag{$match})", None),
        ("backlog_records", "sum(lag)", UNSELECTIVE),
        ("throughput_records_per_s", "sum(done_total{$match})", NO_RATE),
        ("throughput_records_per_s", "sum(rate(done_total{$match}[$window]))", None),
        ("throughput_records_per_s", "sum(increase (done_total{$match}[1m])) / 60", None),
        ("throughput_records_per_s", "sum(done_per_second{$match})", None),
        ("throughput_records_per_s", "job:done_total:rate5m{$match}", None),
        ("throughput_records_per_s", 'per_second{$match, of="done_total"}', None),
        ("throughput_records_per_s", "(done_total{$match} - done_total{$match} offset 1m) / 60", None),
        ("cpu_ratio", "sum(cpu_seconds_total{$match})", NO_RATE),
        ("processed_records", "sum(done_total{$match})", None),
        ("processed_records", "sum(rate(done_total{$match}[$window]))", NO_COUNTER),
        ("throughput_records_per_s", "rate(sum(done_total{$match})[1m:])", AGGREGATE),
        ("throughput_records_per_s", "sum(increase(done_total{$match}[$window]))", INCREASE),
        ("throughput_records_per_s", "rate(max by (app) (done_total{$match})[1m:])", None),
        ("throughput_records_per_s", "rate(sum:done_total{$match}[$window])", None),
        ("throughput_records_per_s", "rate(records_increased_total{$match}[$window])", None),
        ("throughput_records_per_s", "sum(increase(done_total{$match}[1m])) * 0.01667", None),
        ("throughput_records_per_s", "sum(done_total{$match}", None),
        ("cpu_ratio", "avg(cpu_percent{$match})", PERCENT),
        ("cpu_ratio", "avg(cpu_percent{$match}) / 1e2", None),
        ("cpu_ratio", 'avg(cpu{$match, panel="percent"})', None),
        ("cpu_ratio", "avg(cpu_percent{$match}) / 100", None),
        ("backlog_records", "sum(lag{$match}) or vector(0)", ZERO),
        ("backlog_records", "sum(lag{$match}) or on () vector( 0 )", ZERO),
        ("backlog_records", "sum by (app) (lag{$match}) OR on (app) (vector(0))", ZERO),
        ("backlog_records", "sum(lag{$match} or other_lag{$match})", None),
        ("backlog_records", "sum(lag{$match}) or or vector(0)", None),
        ("restarts", "sum(restarts{$match}) or vector(0)", None),
    ],
)
def test_a_query_that_probably_returns_something_else_has_a_hint(signal: str, query: str, hint: str | None) -> None:
    own = Workload(name="a", read=(reading(match={"app": "a"}, signals={signal: query}),))
    assert hints(config(own)) == ([f"workloads[0].read[0].signals.{signal}: {hint}"] if hint else [])


WILDCARD = "names one value, because * is no wildcard here; write the whole value"
UNNAMED = "has no job_name, with which the preset flink names each workload; add it unless this is the only workload"


@pytest.mark.parametrize(
    ("preset", "match", "hint"),
    [
        pytest.param("flink", {"job_name": "fraud"}, None, id="the label of the workload"),
        pytest.param("flink", {"job": "fraud"}, f"match: {UNNAMED} that matches", id="the label of the scrape job"),
        pytest.param("flink", {"namespace": "shop", "app": "fraud"}, None, id="a label of the deployment"),
        pytest.param(
            "flink",
            {"job_name": "fraud-*"},
            f"match.job_name: {WILDCARD}, or use a fleet for many workloads",
            id="a pattern",
        ),
        pytest.param(
            "flink",
            {"jobName": "fraud"},
            "match.jobName: the series of the preset flink have the label job_name; write that, unless your scrape "
            "configuration adds jobName",
            id="another spelling of the label",
        ),
        pytest.param(
            "kminion",
            {"consumergroup": "orders"},
            "match.consumergroup: the series of the preset kminion have the label group_id; write that, unless your "
            "scrape configuration adds consumergroup",
            id="the label of another exporter",
        ),
        pytest.param(
            "kminion",
            {"group_id": '"orders"'},
            "match.group_id: has quotes, which are a part of the value here; write orders",
            id="quotes",
        ),
        pytest.param(
            "flink",
            {"job_name": "=~fraud"},
            "match.job_name: begins with =~, which is a part of the value here; write the whole value, or use a fleet "
            "for many workloads",
            id="an operator",
        ),
        pytest.param(
            "kminion",
            {"group_id": "a|b"},
            "match.group_id: names one value, because | is no regular expression here; write the whole value, or use "
            "a fleet for many workloads",
            id="a regular expression",
        ),
        pytest.param("spark", {"app": "invoices"}, None, id="a label that users add to the series"),
        pytest.param("flink", {"job_name": "fraud_eu:v2"}, None, id="a name as Flink's reporter writes it"),
        pytest.param(
            "flink",
            {"job_name": "fraud-eu v2"},
            "match.job_name: Flink's PrometheusReporter writes fraud-eu v2 as fraud_eu_v2; write fraud_eu_v2, "
            "unless metrics.reporter.prom.filterLabelValueCharacters is false",
            id="a name that Flink's reporter changes",
        ),
    ],
)
def test_a_match_that_probably_selects_something_else_has_a_hint(
    preset: str, match: dict[str, str], hint: str | None
) -> None:
    own = Workload(namespace="shop", name="a", read=(reading(preset=preset, match=match),))
    assert hints(config(own)) == ([f"workloads[0].read[0].{hint}"] if hint else [])


def test_a_fleet_that_matches_a_pattern_has_a_hint_and_needs_no_workload_label() -> None:
    fleet = Fleet(name="f", source="main", preset="flink", match={"cluster": "eu-*"})
    assert hints(config(fleets=(fleet,))) == [f"fleets[0].match.cluster: {WILDCARD}"]


def test_a_query_of_a_workload_without_match_needs_no_match() -> None:
    assert hints(config(Workload(name="a", read=(reading(signals={"backlog_records": "lag"}),)))) == []


@pytest.mark.parametrize(
    ("preset", "match", "has_hint"),
    [
        ("flink", {"namespace": "shop"}, False),
        ("flink", {"namespace": "risk"}, True),
        ("flink", {"namespace": "risk", "exported_namespace": "shop"}, False),
        ("kube-state-metrics", {"namespace": "risk"}, True),
        ("kafka-exporter", {"namespace": "monitoring"}, False),
    ],
)
def test_series_of_workers_in_another_namespace_have_a_hint(preset: str, match: dict[str, str], has_hint: bool) -> None:
    match = {presets.load(preset).workload_label: "fraud"} | match
    own = Workload(namespace="shop", name="fraud", read=(reading(preset=preset, match=match),))
    text = "is risk, but the workload belongs to the namespace shop, where its HPA is; correct one of them"
    assert hints(config(own)) == ([f"workloads[0].read[0].match.namespace: {text}"] if has_hint else [])


@pytest.mark.parametrize(
    ("given", "has_hint"),
    [({}, True), ({"namespace": "risk"}, False), ({"namespace_label": "namespace"}, False)],
)
def test_a_fleet_of_workers_in_another_namespace_has_a_hint(given: dict[str, str], has_hint: bool) -> None:
    fleet = Fleet(name="f", source="main", preset="flink", match={"namespace": "risk"}, **given)
    text = (
        "is default, but match selects the series of workers in risk, where their HPAs are; set namespace: risk, "
        "or namespace_label: namespace"
    )
    assert hints(config(fleets=(fleet,))) == ([f"fleets[0].namespace: {text}"] if has_hint else [])
