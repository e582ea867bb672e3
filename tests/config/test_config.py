"""The file as a whole: the example, all faults at once, lines, rules, schema, secrets."""

import contextlib
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter import config
from adapter.config import (
    Config,
    KafkaReading,
    PrometheusReading,
    json_schema,
    load,
    load_serving,
    parse,
    rule_book,
)
from adapter.config.hints import (
    excluded_events,
    globs,
    lone_prices,
    long_targets,
    missing_namespaces,
    unlikely_times,
    unused_matches,
    unused_parameters,
)
from adapter.core.periods import Event, Period
from adapter.core.rules import POLICIES, Rules
from adapter.errors import ConfigError
from adapter.sources import needs, prometheus_plan

EXAMPLE = Path(__file__).parents[2] / "examples" / "config.yaml"

FLEET = 'fleets:\n  - {name: reports, source: kafka, groups: "report-.*", rules: {min_workers: 3}}\n'
SOUND = f"""
sources:
  kafka: {{kind: kafka, bootstrap_servers: "a:9092"}}
  prom: {{kind: prometheus, url: "http://prom:9090"}}
workloads:
  - name: orders
    read: [{{source: kafka, group: orders, topics: [orders]}}]
    rules: {{max_workers: 12}}
  - {{name: scores, namespace: shop, read: [{{source: prom, preset: flink}}]}}
{FLEET}rules: {{min_workers: 2, time_to_reduce_backlog_s: 120}}
pipeline: {{checkpoint: /tmp/checkpoint}}
"""


def faults_of(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as refused:
        parse(text, "c.yaml")
    return refused.value.faults


def test_the_example_is_valid():
    example = load(EXAMPLE)

    assert {source.kind for source in example.sources.values()} == {"kafka", "prometheus", "kubernetes"}
    assert [fleet.name for fleet in example.fleets] == ["reports", "spark"]


def test_an_entry_has_the_settings_of_its_sources_kind():
    sound = parse(SOUND, "c.yaml")

    assert [type(one.read[0]) for one in sound.workloads] == [KafkaReading, PrometheusReading]


def test_all_faults_are_reported_together_in_the_order_of_the_file_with_their_lines():
    text = """sources:
  kafka: {kind: kafka, bootstrap_server: "a:9092"}
  prom:
    kind: prometheus
    url: prom:9090
    deadline_s: 15
workloads:
  - name: orders
    read: [{source: kafkaa, group: orders}]
    rules:
      policy: dataflw
      down_cpu_ratio: 1.5
      min_workers: 200
  - name: orders
    read: []
rules: {stale_after_s: 10, tolerance_ratio: 2, max_workers: 100}
"""
    faults = faults_of(text)

    found = [(fault.split(": ")[0], int(fault.rstrip(")").split(" line ")[1])) for fault in faults]
    assert sorted(found) == sorted(
        [
            ("pipeline", 1),
            ("sources.kafka.bootstrap_server", 2),
            ("sources.prom.url", 5),
            ("sources.prom.deadline_s", 6),
            ("workloads[0].read[0].source", 9),
            ("workloads[0].rules.policy", 11),
            ("workloads[0].rules.down_cpu_ratio", 12),
            ("workloads[0].rules.min_workers", 13),
            ("workloads[1].name", 14),
            ("workloads[1].read", 15),
            ("rules.stale_after_s", 16),
            ("rules.tolerance_ratio", 16),
        ]
    )
    assert [line for _, line in found] == sorted(line for _, line in found)


def test_the_faults_of_checks_are_reported_beside_the_faults_of_other_entries():
    text = """sources: {sim: {kind: trace, file: f}}
workloads:
  - {name: faulty, read: []}
  - {name: valid, read: [{source: sim}]}
  - {name: valid-too, read: [{source: sim}]}
fleets: 5
serving: {prt: 1}
"""
    with pytest.raises(ConfigError) as refused:
        parse(text, "c.yaml", [lambda given: [f"workloads[{len(given.workloads) - 1}]: reads as workloads[0] does"]])

    assert refused.value.faults == (
        "pipeline: is required: Settings of the process that makes the decisions, such as "
        "{checkpoint: /tmp/checkpoint}. The chart adds the checkpoint to what is below config. (c.yaml line 1)",
        "workloads[0].read: expected at least one entry, got an empty list (c.yaml line 3)",
        "workloads[2]: reads as workloads[1] does (c.yaml line 5)",
        "fleets: expected a list, got 5 (c.yaml line 6)",
        "serving.prt: is not a setting here; did you mean port? (c.yaml line 7)",
    )


FAULTY = """pipeline: {checkpoint: /c}
sources:
  kafka: {kind: kafka, bootstrap_servers: "a:9092"}
  prom: {kind: prometheus, url: "http://prom:9090"}
  old: {kind: prometheus, url: prom}
workloads:
  - {name: a, read: [{source: prom, preset: flnk}]}
  - {name: b, read: [{source: old, preset: flnk}]}
  - {name: c, read: [{source: prom, signals: {backlog_recods: up}}]}
  - {name: d, read: [{source: kafka, group: d, topics: [t]}], rules: {policy: varga}}
  - {name: e, read: [{source: kafka}]}
fleets:
  - {name: f, source: prom, preset: flink, signals: {workers: "up("}}
"""


@pytest.mark.parametrize(
    ("rest", "more"),
    [
        pytest.param("rules: {max_workers: '8'}", ["rules.max_workers"], id="a rule that no check reads"),
        pytest.param("timing: {tick_s: 0}", ["timing.tick_s"], id="the timing"),
        pytest.param("serving: {prt: 1}", ["serving.prt"], id="the serving"),
        pytest.param("timing: {tick_s: 60}", ["rules.rate_window_s", "rules.stale_after_s"], id="a relation"),
        pytest.param("failover: 'on'", ["failover"], id="a switch"),
        pytest.param("ruls: {}", ["ruls"], id="an unknown part"),
    ],
)
def test_one_run_shows_the_faults_of_sources_rules_presets_queries_and_signals(rest: str, more: list[str]) -> None:
    """What reads a faulty source, or has another fault, waits. A misspelt signal is no missing one as well."""
    with pytest.raises(ConfigError) as refused:
        parse(FAULTY + rest, "c.yaml", (prometheus_plan.check, needs.check))

    assert {fault.partition(": ")[0] for fault in refused.value.faults} == {
        "sources.old.url",
        "workloads[0].read[0].preset",
        "workloads[2].read[0].signals.backlog_recods",
        "workloads[3].rules.policy",
        "workloads[4].read[0].group",
        "workloads[4].read[0].topics",
        "fleets[0].signals.workers",
        *more,
    }


def test_a_source_that_reads_a_faulty_source_does_not_hide_the_faults_of_others() -> None:
    text = FAULTY.replace("  old:", "  stores: {kind: pravega, url: 'http://c', prometheus: old}\n  old:")
    with pytest.raises(ConfigError) as refused:
        parse(text, "c.yaml", (prometheus_plan.check, needs.check))

    assert "workloads[0].read[0].preset" in {fault.partition(": ")[0] for fault in refused.value.faults}


def test_a_text_of_the_file_that_looks_like_a_path_stays() -> None:
    text = FAULTY.replace("preset: flnk", "preset: 'workloads[4]'").replace("workloads:", "workloads:\n  - {name: b}")
    with pytest.raises(ConfigError) as refused:
        parse(text, "c.yaml", (prometheus_plan.check,))

    assert any(
        "workloads[1].read[0].preset: there is no preset 'workloads[4]'" in each for each in refused.value.faults
    )


@pytest.mark.parametrize(
    ("shared", "own", "fault"),
    [
        ("max_workers: '500'", "min_workers: 200", "rules.max_workers"),
        ("error_after_s: 15m", "stale_after_s: 300", "rules.error_after_s"),
        ("rate_window_s: 1m", "max_workers: 12", "rules.rate_window_s"),
        ("max_workers: 5", "min_workers: '20'", "workloads[0].rules.min_workers"),
    ],
)
def test_no_contradiction_follows_from_a_faulty_setting(shared: str, own: str, fault: str) -> None:
    text = SOUND.replace("min_workers: 2, time_to_reduce_backlog_s: 120", shared).replace("max_workers: 12", own)
    assert [each.partition(": ")[0] for each in faults_of(text)] == [fault]


def test_a_contradiction_reads_the_valid_settings_of_a_faulty_entry() -> None:
    text = SOUND.replace("max_workers: 12", "min_workers: 20").replace("min_workers: 2,", "max_workers: 5,")
    text += "rules_by_match: [{name: orders, rules: {max_workers: 50, polcy: drain}}]\n"
    assert [each.partition(": ")[0] for each in faults_of(text)] == ["rules_by_match[0].rules.polcy"]


@pytest.mark.parametrize("rules", ["rules: {policy: vrga}", "rules: {polic: varga}", "rules: 5"])
def test_signals_are_not_checked_while_the_policy_is_unknown(rules: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(
            SOUND.replace("rules: {min_workers: 2, time_to_reduce_backlog_s: 120}", rules),
            "c.yaml",
            [lambda given: ["workloads[0]: never seen"]],
        )

    assert not any("never seen" in fault for fault in refused.value.faults)


def test_the_faults_of_checks_have_their_lines():
    def check(_: Config) -> list[str]:
        return ["workloads[1].read[0].preset: no such preset", "fleets[0].groups: too wide"]

    with pytest.raises(ConfigError) as refused:
        parse(SOUND, "c.yaml", [check, lambda sound: [f"sources.prom.url: {sound.timing.tick_s}"]])

    assert refused.value.faults == (
        "sources.prom.url: 15 (c.yaml line 4)",
        "workloads[1].read[0].preset: no such preset (c.yaml line 9)",
        "fleets[0].groups: too wide (c.yaml line 11)",
    )


def test_own_rules_override_the_files_rules_which_override_the_defaults():
    book = rule_book(parse(SOUND, "c.yaml"))

    assert book.by_workload == {
        "default/orders": Rules(min_workers=2, max_workers=12, time_to_reduce_backlog_s=120),
        "shop/scores": Rules(min_workers=2, time_to_reduce_backlog_s=120),
    }
    assert book.by_fleet == (Rules(min_workers=3, time_to_reduce_backlog_s=120),)


@pytest.mark.parametrize(
    ("pause", "up_until_s", "down_until_s"),
    [
        pytest.param("{direction: up}", math.inf, 0.0, id="up without an end is for ever"),
        pytest.param("{direction: down, until: 2026-01-31T18:00:00Z}", 0.0, None, id="down until a time"),
        pytest.param("{direction: both, until: '2026-01-31T20:00:00+02:00'}", None, None, id="both, in another zone"),
    ],
)
def test_a_pause_becomes_two_times(pause: str, up_until_s: float | None, down_until_s: float | None):
    at_s = datetime(2026, 1, 31, 18, tzinfo=UTC).timestamp()

    rules = rule_book(parse(SOUND.replace("rules: {max_workers: 12}", f"pause: {pause}"), "c.yaml"))

    orders = rules.by_workload["default/orders"]
    assert orders.pause_up_until_s == (at_s if up_until_s is None else up_until_s)
    assert orders.pause_down_until_s == (at_s if down_until_s is None else down_until_s)


NIGHT = Period(days=tuple(range(7)), begin_min=22 * 60, end_min=6 * 60)


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        pytest.param("{from: 22:00, to: 06:00}", NIGHT, id="every day in UTC by default"),
        pytest.param("{from: '22:00', to: '6:00'}", NIGHT, id="in quotes"),
        pytest.param(
            "{days: [sun, mon, mon], from: 0:00, to: 00:00, zone: Asia/Kolkata}",
            Period(days=(0, 6), begin_min=0, end_min=0, zone="Asia/Kolkata"),
            id="two whole days of a zone",
        ),
    ],
)
def test_excluded_periods_are_part_of_the_rules(period: str, expected: Period):
    sound = parse(SOUND.replace("rules: {max_workers: 12}", f"excluded_periods: [{period}]"), "c.yaml")

    assert rule_book(sound).by_workload["default/orders"].excluded == (expected,)
    assert rule_book(sound).by_workload["shop/scores"].excluded == ()


@pytest.mark.parametrize(
    ("own", "periods", "failover"),
    [
        pytest.param("labels: {}", (NIGHT,), True, id="what the file says"),
        pytest.param("excluded_periods: [], failover: false", (), False, id="none of its own"),
        pytest.param("excluded_periods: [{from: 1:00, to: 2:00}]", None, True, id="others of its own"),
    ],
)
def test_s4_30_periods_and_failover_of_the_file_are_defaults_of_workloads(
    own: str, periods: tuple[Period, ...] | None, failover: bool
):
    text = SOUND.replace('groups: "report-.*"', f'groups: "report-.*", {own}')
    book = rule_book(parse(f"{text}failover: true\nexcluded_periods: [{{from: 22:00, to: 6:00}}]\n", "c.yaml"))

    other = (Period(days=NIGHT.days, begin_min=60, end_min=120),)
    assert book.by_fleet[0].excluded == (other if periods is None else periods)
    assert book.by_fleet[0].failover is failover
    assert book.by_workload["shop/scores"].failover


EVENT = "{from: 2026-11-27T18:00:00Z, to: 2026-11-27T20:00:00+01:00, times: 2}"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param("labels: {}", (Event(begin_s=1795802400.0, end_s=1795806000.0, times=2.0),), id="the file's"),
        pytest.param("expected: []", (), id="none of its own"),
    ],
)
def test_s1_expected_events_of_the_file_are_defaults_of_workloads(own: str, expected: tuple[Event, ...]):
    text = SOUND.replace('groups: "report-.*"', f'groups: "report-.*", {own}')
    book = rule_book(parse(f"{text}expected: [{EVENT}]\n", "c.yaml"))

    assert book.by_fleet[0].expected == expected
    assert book.by_workload["shop/scores"].expected


MATCHES = """
rules_by_match:
  - {namespace: shop, name: "report-.*", rules: {min_workers: 4}}
  - {name: "report-eu|orders", rules: {min_workers: 5, max_workers: 50}}
  - {labels: {tier: batch}, rules: {min_workers: 6}}
"""


@pytest.mark.parametrize(
    ("workload", "fleet", "least", "most"),
    [
        pytest.param("default/orders", None, 5, 12, id="a workload's own rules override those of its match"),
        pytest.param("shop/scores", None, 2, None, id="a workload that matches nothing"),
        pytest.param("default/report-eu", 1, 5, 50, id="a match overrides the rules of the fleet"),
        pytest.param("default/report-eu-2", 1, 3, None, id="a pattern matches the whole name"),
        pytest.param("shop/report-eu", 1, 4, None, id="the first of two matches"),
        pytest.param("default/report-us", 0, 6, None, id="a label of the fleet"),
    ],
)
def test_rules_apply_by_namespace_name_and_label(workload: str, fleet: int | None, least: int, most: int | None):
    batch = 'fleets:\n  - {name: batch, source: kafka, groups: "batch-.*", labels: {tier: batch, team: a}}'
    book = rule_book(parse(SOUND.replace("fleets:", batch) + MATCHES, "c.yaml"))
    found = book.of(workload, fleet)
    assert (found.min_workers, found.max_workers) == (least, most)
    assert found.time_to_reduce_backlog_s == 120  # of the file


@pytest.mark.parametrize(
    ("match", "fleet", "unmatched"),
    [
        pytest.param("name: order", "", True, id="a part of a name"),
        pytest.param("name: order.*", "", False, id="a pattern of the name"),
        pytest.param("namespace: default, labels: {tier: fast}", "", False, id="a label of the workload"),
        pytest.param("namespace: shop, labels: {tier: fast}", "", True, id="only one of two conditions"),
        pytest.param("name: order", "groups: a.*", False, id="a fleet may find it"),
        pytest.param("labels: {tier: batch}", "groups: a.*", True, id="the fleet has other labels"),
        pytest.param("labels: {tier: batch}", "groups: a.*, labels: {tier: batch}", False, id="a label of the fleet"),
    ],
)
def test_an_entry_of_rules_by_match_that_matches_nothing_is_named(match: str, fleet: str, unmatched: bool) -> None:
    fleets = f"fleets:\n  - {{name: many, source: kafka, {fleet}}}\n" if fleet else ""
    text = SOUND[: SOUND.index("  - {name: scores")].replace(
        "- name: orders", "- name: orders\n    labels: {tier: fast}"
    )
    text += f"{fleets}rules_by_match: [{{{match}, rules: {{min_workers: 1}}}}]\npipeline: {{checkpoint: /c}}\n"
    found = unused_matches(parse(text, "c.yaml"))
    assert [sentence.partition(", so")[0] for sentence in found] == [
        "rules_by_match[0]: matches no workload or fleet"
    ] * unmatched


@pytest.mark.parametrize(
    ("first", "second", "fleet", "unused"),
    [
        pytest.param("name: order.*", "namespace: default", "", True, id="the same workload"),
        pytest.param("name: order.*", "name: orders|scores", "", False, id="one more workload"),
        pytest.param("name: order.*", "name: orders", FLEET, False, id="a fleet may find it"),
        pytest.param("name: .*", "namespace: shop", FLEET, True, id="behind a pattern of everything"),
        pytest.param("name: order.*", "name: order.*, namespace: shop", FLEET, True, id="behind the same pattern"),
        pytest.param("labels: {tier: fast}, name: .*", "name: a", FLEET, False, id="behind labels that no fleet has"),
    ],
)
def test_an_entry_of_rules_by_match_behind_others_is_named(first: str, second: str, fleet: str, unused: bool) -> None:
    matches = [f"{{{match}, rules: {{min_workers: 1}}}}" for match in (first, second)]
    text = f"{SOUND.replace(FLEET, fleet)}rules_by_match: [{', '.join(matches)}]\n"
    found = unused_matches(parse(text, "c.yaml"))
    named = [sentence for sentence in found if sentence.startswith("rules_by_match[1]: has no effect, because earlier")]
    assert len(named) == unused


@pytest.mark.parametrize(
    ("shared", "own", "unused"),
    [
        ("{up_backlog_time_s: 20}", "{policy: beam-flink}", []),
        ("{policy: dataflow}", "{quanta: none}", []),
        ("{up_backlog_time_s: 20}", "{}", ["rules.up_backlog_time_s"]),
        ("{policy: varga}", "{quanta: none, min_workers: 2}", ["workloads[0].rules.quanta"]),
        ("{policy: drain}", "{safety: off}", ["workloads[0].rules.safety"]),
        ("{safety: off}", "{policy: varga}", []),
    ],
)
def test_a_parameter_is_unused_where_no_workload_has_a_policy_that_sizes_by_it(
    shared: str, own: str, unused: list[str]
) -> None:
    read = "{source: kafka, group: a, topics: [t]}"
    workloads = f"[{{name: a, read: [{read}], rules: {own}}}, {{name: b, read: [{read}]}}]"
    sources = 'sources: {kafka: {kind: kafka, bootstrap_servers: "a:9092"}}\npipeline: {checkpoint: /c}'
    found = unused_parameters(parse(f"{sources}\nrules: {shared}\nworkloads: {workloads}", "c.yaml"))
    assert [sentence.partition(":")[0] for sentence in found] == unused


def test_an_unused_parameter_is_reported_with_both_policies():
    text = SOUND.replace("min_workers: 2", "forecast_cap_ratio: 2, policy: varga")
    assert unused_parameters(parse(text, "c.yaml")) == [
        "rules.forecast_cap_ratio: changes sizes only with drain or netflix; the policy here is varga; "
        "remove it unless an annotation of its HPA selects the other"
    ]


@pytest.mark.parametrize(
    ("shared", "own", "lone"),
    [
        ("policy: drain, worker_hour_price: 1", "min_workers: 1", ["rules.worker_hour_price"]),
        ("policy: drain", "late_minute_price: 1", ["workloads[0].rules.late_minute_price"]),
        ("policy: drain, worker_hour_price: 1", "late_minute_price: 1", []),
        ("policy: drain, worker_hour_price: 1, late_minute_price: 1", "late_minute_price: null", []),
        ("policy: dataflow, worker_hour_price: 1", "min_workers: 1", []),
        ("rescale_worth_s: 60, worker_hour_price: 1", "min_workers: 1", []),
    ],
)
def test_a_price_without_the_other_one_is_named(shared: str, own: str, lone: list[str]):
    text = SOUND.replace("max_workers: 12", own).replace("min_workers: 2", shared)
    assert [sentence.partition(": ")[0] for sentence in lone_prices(parse(text, "c.yaml"))] == lone


@pytest.mark.parametrize(
    ("pause", "ended"),
    [
        ("{direction: both, until: 2026-01-31T18:00:00Z}", True),
        ("{direction: up, until: 2999-01-31T18:00:00Z}", False),
        ("{direction: up}", False),
        ("null", False),
    ],
)
@pytest.mark.parametrize(
    ("part", "entry"),
    [("workloads", "read: [{source: kafka, group: g, topics: [t]}]"), ("fleets", "source: kafka, groups: '.*'")],
)
def test_a_pause_that_has_ended_is_named(pause: str, ended: bool, part: str, entry: str):
    sources = 'sources: {kafka: {kind: kafka, bootstrap_servers: "a:9092"}}\npipeline: {checkpoint: /c}'
    found = unlikely_times(parse(f"{sources}\n{part}: [{{name: a, {entry}, pause: {pause}}}]", "c.yaml"))

    text = "is in the past, so scaling is not paused; remove the pause, or set a later end"
    assert found == [f"{part}[0].pause.until: {text}"] * ended


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("report-*", "in which -* is any number of -; for any text write report-.*"),
        ("eu-*-orders", "in which -* is any number of -; for any text write eu-.*-orders"),
        ("shop*", "in which p* is any number of p; for any text write shop.*"),
        ("eu-*-orders-*", "in which -* is any number of -; for any text write eu-.*-orders-.*"),
        ("[x*]", ""),
        ("report-.*", ""),
        ("[a-z]*", ""),
        ("(a|b)*", ""),
        (r"orders-\\d*", ""),
    ],
)
def test_a_regular_expression_that_looks_like_a_glob_is_named(pattern: str, hint: str):
    sources = 'sources: {kafka: {kind: kafka, bootstrap_servers: "a:9092"}}\npipeline: {checkpoint: /c}'
    fleets = f'fleets: [{{name: a, source: kafka, groups: "{pattern}"}}]'
    matches = f'rules_by_match: [{{name: "{pattern}", rules: {{max_workers: 9}}}}]'
    found = globs(parse(f"{sources}\n{fleets}\n{matches}", "c.yaml"))

    paths = ("fleets[0].groups", "rules_by_match[0].name") if hint else ()
    assert found == [f"{path}: is a regular expression, {hint}" for path in paths]


@pytest.mark.parametrize(
    ("namespaces", "missing"),
    [
        pytest.param(("shop", None), [1], id="beside another one"),
        pytest.param((None, "shop", "shop"), [0], id="beside several"),
        pytest.param((None,), [], id="alone"),
        pytest.param((None, None, "shop"), [], id="most have none"),
        pytest.param(("default", "shop"), [], id="default is written"),
        pytest.param(("default", None), [], id="all are in default"),
    ],
)
def test_a_workload_without_a_namespace_is_named_if_half_have_one(
    namespaces: tuple[str | None, ...], missing: list[int]
) -> None:
    lines = [
        f"  - {{name: w{at}, {f'namespace: {space}, ' if space else ''}read: [{{source: it, group: a, topics: [b]}}]}}"
        for at, space in enumerate(namespaces)
    ]
    sources = 'sources: {it: {kind: kafka, bootstrap_servers: "a:9092"}}\npipeline: {checkpoint: /c}\nworkloads:'
    found = missing_namespaces(parse("\n".join([sources, *lines]), "c.yaml"))
    text = "is default, because it is not written; write the namespace of its HPA, even if it is default"
    assert found == [f"workloads[{at}].namespace: {text}" for at in missing]


def test_a_kubeconfig_may_be_in_the_home_folder_because_the_client_expands_it():
    cluster = 'sources:\n  cluster: {kind: kubernetes, kubeconfig: "~/.kube/config"}'
    config = parse(SOUND.replace("sources:", cluster, 1) + 'serving: {kubeconfig: "~/.kube/config"}\n', "c.yaml")
    assert config.sources["cluster"].kubeconfig == config.serving.kubeconfig == "~/.kube/config"


def test_a_pause_of_the_file_is_that_of_workloads_without_their_own():
    own = SOUND.replace("rules: {max_workers: 12}", "pause: {direction: up}")
    book = rule_book(parse(own + "pause: {direction: down, until: 2999-01-31T18:00:00Z}\n", "c.yaml"))

    orders, scores = (book.by_workload[name] for name in ("default/orders", "shop/scores"))
    assert (orders.pause_up_until_s, orders.pause_down_until_s) == (math.inf, 0.0)
    assert (scores.pause_up_until_s, scores.pause_down_until_s) == (0.0, 32_474_800_800.0)


ENDED = "to: is in the past, so the event has no effect; remove it, or correct its times"


@pytest.mark.parametrize(
    ("days", "fault"), [(-30, ENDED), (300, None), (400, "from: is more than a year away; check the year")]
)
@pytest.mark.parametrize(("indent", "path"), [("", "expected[0]"), ("    ", "workloads[0].expected[0]")])
def test_an_event_that_has_ended_or_is_far_away_is_named(days: int, fault: str | None, indent: str, path: str):
    day = (datetime.now(UTC) + timedelta(days=days)).date()
    event = f"{indent}expected: [{{from: {day}T18:00:00Z, to: {day}T23:00:00Z, times: 1.5}}]\n"
    at = SOUND.index("  - {name: scores") if indent else len(SOUND)
    found = unlikely_times(parse(SOUND[:at] + event + SOUND[at:], "c.yaml"))

    assert found == ([] if fault is None else [f"{path}.{fault}"])


BERLIN = "2027-11-27T23:30:00+01:00, to: 2027-11-28T05:00:00+01:00"
NIGHTS = "{from: '22:00', to: '02:00', zone: Europe/Berlin}, {from: '01:00', to: '05:00', zone: Europe/Berlin}"


@pytest.mark.parametrize(
    ("event", "periods", "own", "named"),
    [
        pytest.param(BERLIN, NIGHTS, "", True, id="inside two periods together"),
        pytest.param(BERLIN.replace("05:00:00", "05:01:00"), NIGHTS, "", False, id="it ends a minute later"),
        pytest.param(BERLIN.replace("23:30", "22:09"), NIGHTS, "", False, id="its scale-up begins a minute earlier"),
        pytest.param(BERLIN, NIGHTS, ", excluded_periods: []", False, id="one workload has no periods"),
        pytest.param(BERLIN, NIGHTS, ", expected: []", True, id="one workload has no events"),
        pytest.param(
            BERLIN.replace("2027-11-28", "2028-11-28"), "{from: '00:00', to: '00:00'}", "", False, id="a year"
        ),
    ],
)
def test_an_event_inside_excluded_periods_is_named(event: str, periods: str, own: str, named: bool):
    text = SOUND.replace("name: scores,", f"name: scores{own},")
    found = excluded_events(
        parse(f"{text}expected: [{{from: {event}, times: 2}}]\nexcluded_periods: [{periods}]\n", "c.yaml")
    )
    text = "has no effect, because excluded periods hold the target until it ends; change its times or the periods"
    assert found == [f"expected[0]: {text}"] * named


def test_an_event_of_a_workload_inside_its_excluded_periods_is_named():
    own = f"expected: [{{from: {BERLIN}, times: 2}}], excluded_periods: [{NIGHTS}]"
    found = excluded_events(parse(SOUND.replace("name: scores,", f"name: scores, {own},"), "c.yaml"))
    assert [sentence.partition(": ")[0] for sentence in found] == ["workloads[1].expected[0]"]


def test_an_event_of_several_weeks_is_named():
    """The year of one end is wrong."""
    begin, end = ((datetime.now(UTC) + timedelta(days=days)).date() for days in (-300, 65))
    event = f"expected: [{{from: {begin}T18:00:00Z, to: {end}T18:00:00Z, times: 1.5}}]\n"
    found = unlikely_times(parse(SOUND + event, "c.yaml"))
    assert found == ["expected[0].to: the event lasts 365 days, in which nothing scales down; check the years"]


@pytest.mark.parametrize(
    ("period", "named"),
    [
        ('{from: "00:00", to: "00:00"}', True),
        ('{from: "06:00", to: "06:00", days: [sat]}', False),
        ('{from: "22:00", to: "06:00"}', False),
    ],
)
def test_a_period_that_never_ends_is_named(period: str, named: bool):
    found = unlikely_times(parse(f"{SOUND}excluded_periods: [{period}]\n", "c.yaml"))
    text = "excluded_periods[0]: holds the target at all times; correct from, to or days, or use pause"
    assert found == ([text] if named else [])


@pytest.mark.parametrize(("target_s", "named"), [(60, False), (60_000, True), (36_000, False)])
def test_a_target_that_looks_like_milliseconds_is_named(target_s: int, named: bool):
    text = SOUND.replace("max_workers: 12", f"backlog_time_target_s: {target_s}")
    expected = "workloads[0].rules.backlog_time_target_s: is 16.7 h; if 60000 is in ms, write 60"
    assert long_targets(parse(text, "c.yaml")) == [expected] * named


def test_equal_rules_are_one_object():
    many = "".join(f"  - {{name: w{n}, read: [{{source: kafka, group: g, topics: [t]}}]}}\n" for n in range(9))
    book = rule_book(parse(SOUND.replace("workloads:\n", f"workloads:\n{many}"), "c.yaml"))

    assert len({id(book.by_workload[f"default/w{n}"]) for n in range(9)}) == 1


@pytest.mark.parametrize("text", ["2026-01-31", "22:00", "1:30:15", "+1:30", "190:20:30.15"])
def test_text_that_looks_like_a_date_or_time_stays_text(text: str):
    sound = parse(SOUND.replace("preset: flink", f"preset: flink, match: {{a: {text}}}"), "c.yaml")

    assert sound.workloads[1].read[0].match == {"a": text}


def properties(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    models = {"Config": schema, **schema["$defs"]}
    return [(f"{model}.{name}", one) for model, body in models.items() for name, one in body["properties"].items()]


@pytest.mark.parametrize("text", ["0.00005", "5e-05", "5.0e-05"])
def test_a_small_number_is_a_number_as_helm_writes_it_too(text: str):
    found = parse(SOUND.replace("min_workers: 2,", f"pause_budget_ratio: {text},"), "c.yaml")
    assert rule_book(found).of("default/orders", None).pause_budget_ratio == 5e-05


def test_every_setting_of_the_schema_has_a_description():
    silent = [name for name, one in properties(json_schema()) if not one.get("description")]

    assert silent == []


def test_the_schema_has_the_bounds_and_descriptions_of_the_visible_rules():
    rules = json_schema()["$defs"]["RuleSettings"]["properties"]

    assert rules["rate_window_s"]["exclusiveMinimum"] == 0
    assert rules["rate_window_s"]["maximum"] == 600
    assert rules["policy"]["enum"] == list(POLICIES)
    assert "time to clear the backlog" in rules["time_to_reduce_backlog_s"]["description"]
    assert not rules.keys() & {"pause_up_until_s", "pause_down_until_s", "failover", "excluded", "expected"}


def unknown_names(value: object, schema: dict[str, Any], defs: dict[str, Any], path: str = "") -> list[str]:
    """Keys of the value that the schema does not know, through its references and alternatives."""
    choices = [schema, *schema.get("anyOf", []), *schema.get("oneOf", [])]
    resolved = [defs[one["$ref"].rsplit("/", 1)[1]] if "$ref" in one else one for one in choices]
    if isinstance(value, list):
        items = next(one["items"] for one in resolved if "items" in one)
        return [name for at, entry in enumerate(value) for name in unknown_names(entry, items, defs, f"{path}[{at}]")]
    if not isinstance(value, dict):
        return []
    open_to = [one["additionalProperties"] for one in resolved if isinstance(one.get("additionalProperties"), dict)]
    open_to += [pattern for one in resolved for pattern in one.get("patternProperties", {}).values()]
    known = {name: one for body in resolved for name, one in body.get("properties", {}).items()}
    if open_to:
        known |= dict.fromkeys(value, open_to[0])
    strangers = [f"{path}.{name}" for name in value if name not in known]
    inner = [unknown_names(one, known[name], defs, f"{path}.{name}") for name, one in value.items() if name in known]
    return strangers + [name for names in inner for name in names]


def test_the_schema_has_every_setting_of_the_example():
    schema = json_schema()
    values = config.document.read(EXAMPLE.read_text(), "example").values

    assert unknown_names(values, schema, schema["$defs"]) == []
    assert unknown_names({**values, "servin": {}}, schema, schema["$defs"]) == [".servin"]


def test_files_in_settings_are_not_read(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    text = f"""
sources:
  prom: {{kind: prometheus, url: "https://p", bearer_token_file: {secret}, tls: {{ca_file: {tmp_path}/absent}}}}
  kafka: {{kind: kafka, bootstrap_servers: "a:9092", properties_file: {secret}}}
pipeline: {{checkpoint: /c, cert_file: {tmp_path}/absent, key_file: {secret}, token_file: {secret}}}
serving:
  snapshot_token_file: {secret}
  snapshot_ca_file: {secret}
"""
    assert "hunter2" not in repr(parse(text, "c.yaml"))


def test_the_settings_of_serving_are_read():
    more = "serving: {service: monitoring/adapter}\n"
    serving = parse(SOUND + more, "c.yaml").serving

    assert serving.service == "monitoring/adapter"
    assert serving.access_log == "refusals"


BROKEN = SOUND.replace("source: kafka, groups", "source: kafak, groups")


def test_a_fault_of_another_part_stops_no_server(tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text(BROKEN + "serving: {service: monitoring/adapter}\n")
    assert load_serving(file).service == "monitoring/adapter"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("serving: {port: -1}\n", "serving.port: expected at least 0, got -1"),
        ("servin: {port: 8443}\n", "servin: is not a setting here; did you mean serving?"),
    ],
)
def test_a_fault_of_serving_stops_a_server(tmp_path: Path, text: str, fault: str):
    file = tmp_path / "c.yaml"
    file.write_text(BROKEN + text)
    with pytest.raises(ConfigError) as refused:
        load_serving(file)
    assert refused.value.faults == (f"{fault} ({file} line {BROKEN.count(chr(10)) + 1})",)


INNER = ["source", "name", "read", "group", "groups", "tls", "deadline_s", "tick_s", "url", "kafka", "prometheus"]
INNER += ["pravega", "kubernetes", "trace", "min_workers", "policy", "until", "labels", "file", "days", "from", "zone"]
NAMES = [*Config.model_fields, "kind", *INNER]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([*NAMES, 10**400, "http://a"]),
)
KEYS = st.one_of(
    st.sampled_from(NAMES), st.sampled_from(NAMES), st.text(max_size=4), st.integers(), st.none(), st.booleans()
)
JUNK = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=8
)


def yaml_of(value: object) -> str:
    """Any value as YAML flow text, without asking the library under test."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"? {yaml_of(key)} : {yaml_of(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(yaml_of, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    if isinstance(value, float):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan" if math.isnan(value) else repr(value))
    return (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or value is True or value is False
        else str(value)
    )


def refused_or_sound(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert rule_book(parse(text, "c.yaml"))


@given(st.dictionaries(st.sampled_from(list(Config.model_fields)), JUNK, max_size=7) | st.dictionaries(KEYS, JUNK))
def test_any_mapping_is_valid_or_a_config_error(junk: dict[object, object]):
    refused_or_sound(yaml_of(junk))


PARTS = st.fixed_dictionaries(
    {
        "sources": st.dictionaries(
            st.sampled_from(["a", "b", "c d"]),
            st.fixed_dictionaries({"kind": st.sampled_from(NAMES)}, optional=dict.fromkeys(INNER, JUNK)),
            max_size=2,
        ),
        "workloads": st.lists(
            st.fixed_dictionaries(
                {}, optional=dict.fromkeys(["name", "read", "rules", "labels", "excluded_periods"], JUNK)
            ),
            max_size=2,
        ),
        "fleets": st.lists(
            st.fixed_dictionaries({"source": st.sampled_from("ab")}, optional=dict.fromkeys(INNER[1:], JUNK)),
            max_size=2,
        ),
    },
    optional={
        "pipeline": JUNK,
        "timing": JUNK,
        "rules": st.dictionaries(st.sampled_from(list(Rules.__slots__)), SCALARS),
    },
)


@given(PARTS)
def test_any_value_of_a_setting_is_valid_or_a_config_error(junk: dict[object, object]):
    refused_or_sound(yaml_of(junk))


@given(st.text(max_size=60))
def test_any_text_is_valid_or_a_config_error(text: str):
    refused_or_sound(text)
