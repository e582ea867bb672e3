import pickle
import re

import pytest

from adapter.config import (
    Config,
    Fleet,
    Pipeline,
    PravegaReading,
    PravegaSource,
    PrometheusReading,
    PrometheusSource,
    Timing,
    Workload,
)
from adapter.sources import presets, promql
from adapter.sources.prometheus_plan import (
    LONGEST_MATCH,
    ConfiguredWorkloads,
    DiscoveredWorkloads,
    check,
    queries,
)

SIGNALS = len(presets.load("kafka-exporter").signals)


MATCH = "match: expected labels that only this workload has, such as"


def reading(**given: object) -> PrometheusReading:
    return PrometheusReading.model_validate({"source": "main", **given})


def config(*workloads: Workload, fleets: tuple[Fleet, ...] = (), tick_s: int = 15) -> Config:
    return Config(
        sources={name: PrometheusSource(kind="prometheus", url="http://p.test") for name in ("main", "other")},
        workloads=workloads,
        fleets=fleets,
        timing=Timing(tick_s=tick_s),
        pipeline=Pipeline(checkpoint="unused"),
    )


def group(name: str, **match: str) -> Workload:
    return Workload(name=name, read=(reading(preset="kafka-exporter", match={"consumergroup": name, **match}),))


def test_a_fleet_is_one_query_a_signal() -> None:
    fleet = Fleet(name="groups", source="main", preset="kafka-exporter", match={"cluster": "a"}, namespace="shop")
    plan = queries(config(fleets=(fleet,)), "main")
    assert [query.signal for query in plan] == [
        "processed_records",
        "appended_records",
        "backlog_records",
        "highest_partition_backlog_records",
        "stuck_backlog_records",
        "hottest_partition_ratio",
        "partitions",
    ]
    assert plan[-1].text == (
        "count by (consumergroup) (max by (consumergroup, topic, partition) "
        '(kafka_consumergroup_current_offset{cluster="a"}))'
    )
    assert plan[-1].owners == DiscoveredWorkloads(0, "consumergroup", None, "shop")
    assert plan[-1].path == "fleets[0]"


def test_labels_of_a_fleet_replace_those_of_its_preset() -> None:
    fleet = Fleet(
        name="jobs",
        source="main",
        preset="flink",
        workload_label="app",
        namespace_label="ns",
        stage_label="operator_name",
    )
    by_signal = {query.signal: query for query in queries(config(fleets=(fleet,)), "main")}
    assert "by (ns, app, operator_name)" in by_signal["backlog_records"].text
    assert by_signal["backlog_records"].stage_label == "operator_name"
    assert "by (ns, app)" in by_signal["workers"].text
    assert by_signal["workers"].stage_label is None


def test_a_source_has_only_its_own_queries() -> None:
    assert queries(config(group("orders")), "other") == ()


def test_a_thousand_workloads_are_a_handful_of_queries() -> None:
    names = [f"team-{n}.orders" for n in range(1000)]
    plan = queries(config(*(group(name) for name in names)), "main")
    assert len(plan) < 3 * SIGNALS
    assert max(len(query.text) for query in plan) < 40_000
    matched = [
        w for query in plan if query.signal == "partitions" for ids in query.owners.workloads.values() for w in ids
    ]
    assert matched == [f"default/{name}" for name in names]


@pytest.mark.parametrize(
    ("template", "many"),
    [("max(a{$match}) by ($by)", False), ("max(a{${match}} - b{$match}) by (${by})", True)],
    ids=["one placeholder", "two, also in braces"],
)
def test_workloads_share_queries_up_to_the_length_that_all_placeholders_give(template: str, many: bool) -> None:
    names = [f"{n:05}-{'x' * 44}" for n in range(400)]
    read = {n: reading(match={"job": n}, signals={"backlog_records": template}) for n in names}
    plan = queries(config(*(Workload(name=n, read=(read[n],)) for n in names)), "main")
    assert len(plan) == 1 + many
    assert max(len(query.text) for query in plan) < LONGEST_MATCH + 100


def test_joined_names_match_only_themselves() -> None:
    odd = Workload(name="odd", read=(reading(preset="kafka-exporter", match={"consumergroup": 'c|"d'}),))
    plan = queries(config(group("a.b"), odd), "main")
    assert r'consumergroup=~"a\\.b|c\\|\"d"' in plan[2].text
    assert plan[2].owners == ConfiguredWorkloads(
        ("consumergroup",), {("a.b",): ("default/a.b",), ('c|"d',): ("default/odd",)}
    )


def test_workloads_of_different_topics_share_a_query_that_keeps_both_labels() -> None:
    plan = queries(config(group("a", topic="x"), group("b", topic="y")), "main")
    assert len(plan) == SIGNALS
    assert 'kafka_consumergroup_lag{consumergroup=~"a|b",topic=~"x|y"}' in plan[2].text
    assert plan[2].text.startswith("sum by (consumergroup, topic) (")
    assert plan[2].owners == ConfiguredWorkloads(
        ("consumergroup", "topic"), {("a", "x"): ("default/a",), ("b", "y"): ("default/b",)}
    )


def test_other_matchers_or_other_signals_are_other_queries() -> None:
    own = Workload(
        name="c",
        read=(reading(preset="kafka-exporter", match={"consumergroup": "c"}, signals={"workers": "w{$match}"}),),
    )
    assert len(queries(config(group("a"), group("b", topic="y"), own), "main")) == SIGNALS + SIGNALS + SIGNALS + 1


def test_a_query_without_placeholders_belongs_to_its_workload_alone() -> None:
    plan = queries(
        config(*(Workload(name=n, read=(reading(signals={"backlog_records": f"depth_{n}"}),)) for n in "ab")), "main"
    )
    assert [(query.text, query.owners) for query in plan] == [
        ("depth_a", ConfiguredWorkloads((), {(): ("default/a",)})),
        ("depth_b", ConfiguredWorkloads((), {(): ("default/b",)})),
    ]


def test_derived_labels_of_a_preset_are_not_matched_on_series() -> None:
    workload = Workload(name="app", read=(reading(preset="spark", match={"spark_application": "my_ns", "pod": "p"}),))
    plan = queries(config(workload), "main")
    assert 'spark_application="my_ns"' not in plan[0].text
    assert '_inputRate_total_Value",pod="p"}' in plan[0].text
    assert plan[0].owners == ConfiguredWorkloads(("pod", "spark_application"), {("p", "my_ns"): ("default/app",)})


@pytest.mark.parametrize(("tick_s", "window"), [(5, "[60s]"), (15, "[60s]"), (30, "[120s]")])
def test_rates_are_taken_over_four_ticks_but_no_less_than_a_minute(tick_s: int, window: str) -> None:
    plan = queries(config(fleets=(Fleet(name="f", source="main", preset="flink"),), tick_s=tick_s), "main")
    assert window in plan[0].text


def test_every_query_of_a_plan_parses_and_crosses_processes() -> None:
    fleets = tuple(Fleet(name=p, source="main", preset=p) for p in ("flink", "spark", "kafka-exporter"))
    plan = queries(config(group("a"), group("b"), fleets=fleets), "main")
    assert [promql.fault(query.text) for query in plan] == [None] * len(plan)
    assert pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301 - our own bytes


def test_a_valid_configuration_has_no_faults() -> None:
    fleet = Fleet(name="f", source="main", workload_label="q", signals={"backlog_records": "sum by (q) (depth)"})
    assert check(config(group("a"), fleets=(fleet, Fleet(name="g", source="main", preset="spark")))) == []


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"signals": {"workers": "sum(depth)"}}, id="a query without $match"),
        pytest.param(
            {"preset": "flink", "match": {"job_name": "b", "container": ""}}, id="an absent label beside others"
        ),
    ],
)
def test_an_entry_that_selects_its_series_is_valid(given: dict[str, object]) -> None:
    assert check(config(Workload(name="b", read=(reading(**given),)))) == []


def test_metricsql_is_not_checked_but_its_signals_and_placeholders_are() -> None:
    source = PrometheusSource(kind="prometheus", url="http://p.test", query_language="metricsql")
    signals = {"workers": "sum(a{$match}) by ($by) default 0", "partitions": "rollup_rate(b{$mach})", "load": "c"}
    workload = Workload(name="b", read=(reading(signals=signals, match={"app": "b"}),))
    found = check(config(workload).model_copy(update={"sources": {"main": source}}))
    assert [fault.partition("signals.")[2].partition(":")[0] for fault in found] == ["partitions", "load"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param(
            {"preset": "kafka_exporter"},
            "preset: there is no preset 'kafka_exporter'; did you mean kafka-exporter?",
            id="an unknown preset",
        ),
        pytest.param(
            {"signals": {"backlog": "a"}},
            "signals.backlog: there is no such signal; did you mean backlog_records?",
            id="an unknown signal",
        ),
        pytest.param(
            {"signals": {"workers": "sum by ($by) (a{$mach})"}},
            "signals.workers: $mach is not $match, $by or $window",
            id="an unknown placeholder",
        ),
        pytest.param(
            {"signals": {"workers": "sum(rate(a{$match}[$window)) by ($by)"}, "match": {"app": "b"}},
            "signals.workers: is not valid PromQL, at character 27, ')) by ($by)': unexpected character",
            id="a query that does not parse",
        ),
        pytest.param(
            {"signals": {"workers": "sum by ($by) (rate(a{$match}))"}, "match": {"app": "b"}},
            "signals.workers: is not valid PromQL, at character 15, 'rate(a{$match}))': expected type matrix "
            "in call to function 'rate', got vector; add a range, such as METRIC{$match}[$window]",
            id="a rate without a range",
        ),
        pytest.param(
            {"signals": {"workers": "rate(a{$match}[$__rate_interval])"}, "match": {"app": "b"}},
            "signals.workers: $__rate_interval is not $match, $by or $window; variables of Grafana are unknown "
            "here; write [$window] for a range",
            id="a variable of Grafana",
        ),
        pytest.param(
            {"signals": {"workers": "increase(a{$match}[${__range_s}s])"}, "match": {"app": "b"}},
            "signals.workers: $__range_s is not $match, $by or $window; variables of Grafana are unknown here; "
            "write [$window] for a range",
            id="another variable of Grafana",
        ),
        pytest.param(
            {"signals": {"workers": 'a{job="$job"}'}, "match": {"app": "b"}},
            "signals.workers: $job is not $match, $by or $window; write $match for the labels of a workload",
            id="a variable of a dashboard",
        ),
        pytest.param(
            {"signals": {"workers": "increase(a{$match}[$interval])"}, "match": {"app": "b"}},
            "signals.workers: $interval is not $match, $by or $window; write $match for the labels of a workload, "
            "$window for a range, or $$interval for a dollar sign",
            id="a range of a dashboard",
        ),
        pytest.param(
            {"signals": {"workers": "a{$match}"}, "match": {"bad-label": "x"}},
            "match.bad-label: expected letters",
            id="a label that none can be",
        ),
        pytest.param({"preset": "flink"}, f"{MATCH} job_name: NAME, got none with a value", id="a preset of every job"),
        pytest.param(
            {"preset": "flink", "match": {"job_name": ""}}, f"{MATCH} job_name: NAME", id="a label without a value"
        ),
        pytest.param({"signals": {"workers": "a{$match}"}}, f"{MATCH} app: NAME", id="an own query of all series"),
        pytest.param({"preset": "spark", "match": {"app": ""}}, f"{MATCH} app: NAME", id="a label that users add"),
    ],
)
def test_a_faulty_entry_is_reported_with_its_path(given: dict[str, object], sentence: str) -> None:
    wrong = Workload(name="b", read=(reading(**given),))
    faults = check(config(group("a"), wrong))
    assert len(faults) == 1
    assert faults[0].startswith(f"workloads[1].read[0].{sentence}")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param(
            {"signals": {"workers": "sum(a)"}, "workload_label": "app"},
            "signals.workers: its result lacks the workload label 'app'; aggregate by ($by)",
            id="an aggregation that loses the workload",
        ),
        *(
            pytest.param(
                {"preset": "flink", name: "app.kubernetes.io/name"} | more,
                f"{name}: expected letters, digits and '_', not beginning with a digit, got 'app.kubernetes.io/name'",
                id=f"a {name} that none can be",
            )
            for name, more in (
                ("workload_label", {"signals": {"backlog_records": "sum by ($by) (a{$match})"}}),
                ("namespace_label", {}),
                ("stage_label", {}),
            )
        ),
        pytest.param(
            {"preset": "spark", "match": {"spark_application": "a"}},
            "match.spark_application: the preset creates this label",
            id="a matcher on a derived label",
        ),
    ],
)
def test_a_faulty_fleet_is_reported_with_its_path(given: dict[str, object], sentence: str) -> None:
    faults = check(config(fleets=(Fleet.model_validate({"name": "f", "source": "main", **given}),)))
    assert len(faults) == 1
    assert faults[0].startswith(f"fleets[0].{sentence}")


def test_two_entries_that_read_one_signal_are_a_fault() -> None:
    twice = Workload(name="a", read=(*group("a").read, reading(signals={"partitions": "p"})))
    assert check(config(twice)) == [
        "workloads[0].read[1]: workloads[0].read[0] already reads partitions of default/a; "
        "to read both, add a second source with the same url; the first in `read` counts"
    ]


def test_all_faults_are_reported_together() -> None:
    wrong = Workload(name="b", read=(reading(preset="x"), reading(signals={"y": "("})))
    faults = check(config(wrong, fleets=(Fleet(name="f", source="main", preset="y"),)))
    assert len(faults) == 3
    assert all(re.match(r"(workloads\[0\]\.read\[[01]\]|fleets\[0\])\.", fault) for fault in faults)


def test_all_faults_of_one_entry_are_reported_together() -> None:
    signals = {"workers": "a{$mach}", "partitions": "b{$match"}
    faults = check(config(Workload(name="b", read=(reading(preset="x", match={"bad-label": "x"}, signals=signals),))))
    assert [fault.removeprefix("workloads[0].read[0].").partition(": ")[0] for fault in faults] == [
        "preset",
        "match.bad-label",
        "signals.workers",
        "signals.partitions",
    ]


def streams(*names: str) -> Config:
    main = PrometheusSource(kind="prometheus", url="http://p.test")
    pravega = PravegaSource(kind="pravega", url="http://c.test", prometheus="main")
    workloads = tuple(
        Workload(name=name, read=(PravegaReading(source="pravega", scope="shop", stream=name),)) for name in names
    )
    return Config(
        sources={"main": main, "pravega": pravega}, workloads=workloads, pipeline=Pipeline(checkpoint="unused")
    )


def test_a_pravega_streams_rates_are_in_bytes_on_both_sides_x_12() -> None:
    by_signal = {query.signal: query.text for query in queries(streams("orders"), "main")}
    assert by_signal == {
        "input_rate_records_per_s": "sum by (scope, stream) "
        '(rate(pravega_segmentstore_segment_write_bytes_total{scope="shop",stream="orders"}[60s]))',
        "throughput_records_per_s": "sum by (scope, stream) "
        '(rate(pravega_segmentstore_segment_read_bytes_total{scope="shop",stream="orders"}[60s]))',
    }


def test_streams_are_identified_by_scope_and_stream_s2_04() -> None:
    [query, _] = queries(streams("orders", "returns"), "main")
    assert query.owners == ConfiguredWorkloads(
        ("scope", "stream"),
        {("shop", "orders"): ("default/orders",), ("shop", "returns"): ("default/returns",)},
    )


@pytest.mark.parametrize(
    ("query", "kind", "fix"),
    [
        ("12", "scalar", "write vector(...) around it"),
        ("-(2 * time())", "scalar", "write vector(...) around it"),
        ('"12"', "string", "write it without quotes"),
        ("lag{$match}[1m]", "matrix", "write a function around it, such as rate(...)"),
        ("lag{$match}[5m:1m]", "matrix", "write a function around it, such as rate(...)"),
    ],
)
def test_a_query_without_a_vector_as_its_result_is_a_fault(query: str, kind: str, fix: str) -> None:
    own = Workload(name="a", read=(reading(match={"app": "a"}, signals={"partitions": query}),))
    fault = f"expected a query whose result is a vector, got one whose result is a {kind}; {fix}"
    assert check(config(own)) == [f"workloads[0].read[0].signals.partitions: {fault}"]


@pytest.mark.parametrize("query", ["vector(12)", "-lag{$match}", "lag{$match} * 2", "(max_over_time(lag{$match}[1m]))"])
def test_a_query_with_a_vector_as_its_result_is_valid(query: str) -> None:
    own = Workload(name="a", read=(reading(match={"app": "a"}, signals={"partitions": query}),))
    assert check(config(own)) == []
