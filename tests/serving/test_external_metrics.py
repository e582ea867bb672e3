"""External metrics: one item, or an error with the reason (X-06, X-08)."""

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from serving_builders import AT_S, entry, snapshot
from signal_builders import code, external, message, readings

from adapter.apiserver.selectors import parse
from adapter.apiserver.status import StatusError
from adapter.core.decisions import Reason
from adapter.core.metrics import METRICS
from adapter.serving.lookup import Lookup
from adapter.serving.metric_api import MetricValue
from adapter.serving.metric_reader import MetricReader
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.snapshots.workloads import Candidate, Namespace


def ask(
    selector: str, *entries: Entry, metric: str = "required_workers", namespace: str = "shop", age_s: float = 5.0
) -> MetricValue | StatusError:
    return external(readings(*entries, age_s=age_s), selector, metric, namespace)


def value(given: MetricValue | StatusError) -> str:
    assert isinstance(given, MetricValue), given
    return given.value


def test_one_workload_is_one_item() -> None:
    labels = {"team": "red", "workload": "orders"}
    assert ask("workload=orders") == MetricValue("required_workers", labels, "4", AT_S, None)


def test_case_49_a_workload_without_labels_has_its_name_as_label() -> None:
    given = ask("", entry())
    assert isinstance(given, MetricValue)
    assert given.labels == {"workload": "orders"}


def test_labels_are_sorted() -> None:
    given = ask("", entry(labels={"zone": "a", "team": "red", "app": "x"}))
    assert isinstance(given, MetricValue)
    assert list(given.labels or ()) == ["app", "team", "workload", "zone"]


def test_the_only_workload_of_a_namespace_needs_no_selector() -> None:
    given = ask("", namespace="web")
    assert isinstance(given, MetricValue)
    assert given.labels == {"team": "blue", "workload": "clicks"}


def test_x08_case_51_several_matches_are_an_error_with_their_names() -> None:
    given = ask("team=red")
    assert code(given) == 400
    assert "matches 2 workloads in namespace shop" in message(given)
    assert "orders, payments" in message(given)


def test_a_message_lists_only_the_first_names() -> None:
    given = ask("", *(entry(f"shop/job-{n:03}") for n in range(50)))
    assert "job-009 and 40 more" in message(given)


@pytest.mark.parametrize(
    ("selector", "near"),
    [
        ("workload=order", "workload=order matches nothing in namespace shop; nearest is orders"),
        ("team=rad", "team=rad matches nothing in namespace shop; nearest is red"),
        ("teem=red", "teem=red matches nothing in namespace shop; nearest label is team"),
        ("workload=orders,team=blue", "team=blue matches nothing in namespace shop; values are red"),
        ("qqq", "qqq matches nothing in namespace shop; labels are team, workload"),
        ("!team", "!team matches nothing in namespace shop; values are red"),
        ("workload=payments,stage=jion", "stage=jion matches nothing in namespace shop; nearest is join"),
        ("workload=orders,stage=join", "each of stage=join,workload=orders matches something in namespace shop"),
    ],
)
def test_a_404_names_the_nearest_value(selector: str, near: str) -> None:
    given = ask(selector)
    assert code(given) == 404
    assert message(given).startswith(near)


def test_a_namespace_without_workloads_is_an_error_of_its_own() -> None:
    given = ask("workload=orders", namespace="shopp")
    assert code(given) == 404
    assert "no workload is known in namespace shopp" in message(given)


@pytest.mark.parametrize("name", ["requird_workers", "UPPER", "a:b", "a|b", "é", "", "*", "a" * 5000])
def test_case_36_and_38_an_unknown_metric_names_the_nearest(name: str) -> None:
    given = ask("workload=orders", metric=name)
    assert code(given) == 404
    words = "nearest is required_workers" if name == "requird_workers" else f"metrics are {', '.join(METRICS)}"
    assert message(given) == f"the server could not find the metric {name}: {words}"


def test_a_stage_has_its_own_numbers() -> None:
    given = ask("workload=payments,stage=join", metric="backlog")
    assert isinstance(given, MetricValue)
    assert given.value == "20"
    assert given.labels == {"stage": "join", "team": "red", "workload": "payments"}


def test_a_stage_has_no_workers_of_its_own() -> None:
    given = ask("workload=payments,stage=join")
    assert code(given) == 400
    assert "leave stage out of the selector" in message(given)


def test_x06_no_number_is_a_503_with_workload_reason_age_and_fix() -> None:
    given = ask("workload=orders", entry(required_workers=None, reason=Reason.EXPIRED, sample_age_s=200.0))
    assert isinstance(given, StatusError)
    assert given.code == 503
    assert given.document["reason"] == "ServiceUnavailable"
    assert message(given).startswith("no required_workers for shop/orders (Expired): No sample of shop/orders for")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1.0])
def test_x06_case_45_an_invalid_number_is_never_served(number: float) -> None:
    assert code(ask("workload=orders", entry(required_workers=number))) == 503


@pytest.mark.parametrize(
    ("metric", "cause"),
    [
        (
            "utilization",
            "its sources report neither busy time nor CPU, and the capacity of a worker is not learned yet",
        ),
        (
            "highest_partition_backlog",
            "its sources report no backlog of single partitions; add a Kafka source to its `read`",
        ),
        ("segments", "its sources count no partitions"),
        ("drain_time_seconds", "a signal behind it is not known yet"),
    ],
)
def test_an_unknown_signal_of_a_decided_workload_is_not_0_and_the_message_names_it(metric: str, cause: str) -> None:
    given = ask("workload=orders", entry(), metric=metric)
    assert code(given) == 503
    assert f"no {metric} for shop/orders (Hold): {cause}; the decision was: " in message(given)


def test_case_50_a_snapshot_beyond_its_limit_is_a_503_with_its_age() -> None:
    assert code(ask("workload=orders", age_s=180.0)) == 200
    given = ask("workload=orders", age_s=181.0)
    assert code(given) == 503
    assert message(given).startswith(
        "the pipeline published nothing for 181 s, the limit is 180 s; is the pipeline running"
    )


@pytest.mark.parametrize("age_s", [29.0, 31.0])
def test_x06_a_number_expires_by_the_age_of_its_samples_too(age_s: float) -> None:
    given = ask("", entry(sample_age_s=150.0, reason=Reason.STALE), age_s=age_s)
    assert code(given) == (200 if age_s < 30 else 503)
    if age_s > 30:
        assert message(given).startswith(
            "no required_workers for shop/orders: its newest sample is 181 s old, the limit is 180 s; the decision"
        )


def test_a_number_that_expires_because_the_pipeline_is_late_says_so() -> None:
    given = ask("", entry(sample_age_s=30.0, reason=Reason.STALE), age_s=151.0)
    assert code(given) == 503
    assert "its newest sample is 181 s old, the limit is 180 s; is the pipeline running" in message(given)


@pytest.mark.parametrize("reason", Reason)
def test_only_a_size_that_is_held_on_purpose_does_not_expire_with_its_samples(reason: Reason) -> None:
    held = entry(sample_age_s=5000.0, reason=reason)
    is_on_purpose = reason in (Reason.PAUSED, Reason.EXCLUDED)
    assert (code(ask("", held)), code(ask("", held, age_s=181.0))) == (200 if is_on_purpose else 503, 503)


def test_x06_signals_of_a_paused_workload_expire_with_their_samples() -> None:
    paused = entry(sample_age_s=150.0, reason=Reason.PAUSED, backlog_records=7.0)
    assert [code(ask("", paused, metric="backlog", age_s=age_s)) for age_s in (29.0, 31.0)] == [200, 503]
    assert [code(ask("", paused, metric="required_workers_padded", age_s=age_s)) for age_s in (29.0, 31.0)] == [
        200,
        200,
    ]


def test_s2_18_segments_expire_by_the_age_of_their_own_count() -> None:
    held = entry(partitions=7.0, partitions_age_s=150.0, sample_age_s=0.0)
    assert [code(ask("", held, metric="segments", age_s=age_s)) for age_s in (29.0, 31.0)] == [200, 503]
    alone = entry(partitions=7.0, partitions_age_s=0.0, sample_age_s=5000.0)
    assert [code(ask("", alone, metric="segments", age_s=age_s)) for age_s in (180.0, 181.0)] == [200, 503]


def test_segments_without_any_sample_are_served_while_decisions_arrive() -> None:
    """S2-02: the number of segments may be all that is known of a job; its source reports nothing else."""
    lone = entry(partitions=7.0, required_workers=None, reason=Reason.NO_DATA, sample_age_s=None)
    assert value(ask("", lone, metric="segments")) == "7"
    assert [code(ask("", lone, metric="segments", age_s=age_s)) for age_s in (180.0, 181.0)] == [200, 503]
    assert code(ask("", lone)) == 503


def test_the_age_limit_of_a_workload_applies_to_it_alone() -> None:
    both = entry("shop/lax", error_after_s=600.0), entry("shop/strict", error_after_s=30.0)
    assert [code(ask("workload=lax", *both, age_s=age_s)) for age_s in (31.0, 600.0, 601.0)] == [200, 200, 503]
    assert [code(ask("workload=strict", *both, age_s=age_s)) for age_s in (30.0, 31.0)] == [200, 503]


@pytest.mark.parametrize("set_back_after", [0, 1])
def test_a_server_whose_clock_is_behind_says_that_it_refuses_the_snapshots(set_back_after: int) -> None:
    """A pipeline that publishes every tick must not be searched for a fault: the HPA shows this sentence."""
    true_s = [AT_S]
    behind_s = [0.0]
    store = SnapshotStore(lambda: true_s[0] - behind_s[0], lambda: true_s[0])
    for tick in range(20):
        behind_s[0] = 60.0 if tick >= set_back_after else 0.0
        true_s[0] = AT_S + 15 * tick
        store.put(snapshot(entry(), at_s=true_s[0]))
    given = external(MetricReader(store))
    assert code(given) == 503
    assert "a snapshot in the future is refused: compare the clocks" in message(given)
    assert "published nothing" not in message(given)


def test_before_the_first_snapshot_every_metric_is_a_503() -> None:
    given = external(MetricReader(SnapshotStore()))
    assert code(given) == 503
    assert "published nothing since this server started" in message(given)


@pytest.mark.parametrize(
    ("metric", "fields", "expected"),
    [
        ("required_workers", {"required_workers": 20.0004}, "20"),
        ("required_workers_padded", {"required_workers": 3.0}, "3"),
        ("required_workers_padded", {"required_workers": 20.0}, "20901m"),
        ("backlog_time_seconds", {"backlog_time_s": 86_400.0}, "86400"),
        ("drain_time_seconds", {"drain_time_s": 12.5}, "12500m"),
        ("backlog_growth", {"growth_records_per_s": -5.0}, "0"),
        ("backlog_growth_signed", {"growth_records_per_s": -0.25}, "-250m"),
        ("relative_lag_change", {"relative_lag_change_ratio": -1.0}, "0"),
        ("segments", {"partitions": 12.0}, "12"),
        ("backlog", {"backlog_records": 1e16}, "9P"),
        ("backlog", {"backlog_records": 1_234.567}, "1234567m"),
    ],
)
def test_cases_44_and_46_to_48_a_metric_is_read_from_the_decision(
    metric: str, fields: dict[str, float], expected: str
) -> None:
    assert value(ask("", entry(**fields), metric=metric)) == expected


def test_the_newest_snapshot_is_read_also_by_label() -> None:
    store = SnapshotStore(clock=lambda: AT_S)
    found = MetricReader(store)
    store.put(snapshot(entry(labels={"team": "red"}, required_workers=1.0)))
    assert value(external(found, "team=red")) == "1"
    store.put(snapshot(entry(labels={"team": "blue"}, required_workers=2.0, at_s=AT_S + 15), at_s=AT_S + 15))
    assert code(external(found, "team=red")) == 404
    assert value(external(found, "team=blue")) == "2"


CROWD = tuple(entry(f"shop/job-{n:05}", {"team": f"t{n}"}) for n in range(2_001))


def test_a_label_finds_its_workload_among_2001() -> None:
    assert isinstance(ask("team=t7", *CROWD), MetricValue)
    assert code(ask("team=t7,workload!=job-00007", *CROWD)) == 404


def test_a_selector_that_costs_too_much_is_a_400_with_a_better_one() -> None:
    many = ",".join(f"!label-{n}" for n in range(100))
    given = ask(many, *CROWD)
    assert code(given) == 400
    assert message(given) == (
        "the selector needs 100 terms compared with the labels of 2001 workloads: select one, for example with "
        "workload=NAME"
    )
    assert code(ask(f"{many},team=t7", *CROWD)) == 200


class Unlisted(list[Candidate]):
    def __iter__(self) -> Iterator[Candidate]:
        raise AssertionError("the candidates are listed")


def test_the_cost_of_a_selector_is_checked_before_its_candidates_are_listed() -> None:
    crowd = Unlisted([Candidate({}, entries_of(0.0, ()), 0)] * 2_001)
    index = SimpleNamespace(candidates=crowd, by=lambda key: {"red": crowd})
    lookup = Lookup(cast("Namespace", SimpleNamespace(label_index=lambda stages: index)), stages=False)
    with pytest.raises(StatusError, match="2001 workloads"):
        lookup.matching(parse(",".join(["team=red"] * 101)))


def test_the_advice_of_an_ambiguous_selector_picks_one_stage() -> None:
    job = entry("shop/orders", stages=("join", "map"))
    given = ask("workload=orders,stage in (join,map)", job, metric="backlog")
    assert code(given) == 400
    advice = message(given).rpartition("for example with ")[2]
    assert code(ask(advice, job, metric="backlog")) == 200


def test_an_unknown_namespace_may_be_one_whose_fleet_has_no_sample_yet() -> None:
    """After a start of the pipeline beside a source that is down, the configuration is right."""
    assert "a workload of a fleet is known from its first sample on" in message(
        ask("workload=orders", namespace="other")
    )
