"""Requirements X-06 and X-08 at the API's edge: one item, or an error that says why."""

import math

import pytest
from serving_builders import AT_S, entry, snapshot

from adapter.core.decisions import Reason
from adapter.core.metric_names import METRIC_NAMES
from adapter.serving.external import Question, answer
from adapter.serving.metrics import METRICS, NOT_YET
from adapter.serving.selectors import parse
from adapter.serving.snapshot import Entry
from adapter.serving.status import Answer
from adapter.serving.store import SnapshotStore

FLEET = (
    entry("shop/orders", {"team": "red", "stage": "mine"}, required_workers=4.0),
    entry("shop/payments", {"team": "red"}, ("parse", "join")),
    entry("web/clicks", {"team": "blue"}),
)


def ask(
    selector: str, *entries: Entry, metric: str = "required_workers", namespace: str = "shop", age_s: float = 5.0
) -> Answer:
    store = SnapshotStore()
    store.put(snapshot(*(entries or FLEET)))
    return answer(store.current, AT_S + age_s, Question(namespace, metric, parse(selector)))


def message(given: Answer) -> str:
    text = given.document["message"]
    assert isinstance(text, str)
    return text


def test_one_workload_is_one_item() -> None:
    given = ask("workload=orders")
    assert given.code == 200
    assert given.document["items"] == [
        {
            "metricName": "required_workers",
            "metricLabels": {"team": "red", "workload": "orders"},
            "timestamp": "2026-01-02T03:04:05Z",
            "window": 60,
            "value": "4",
        }
    ]


def test_the_only_workload_of_a_namespace_needs_no_selector() -> None:
    assert ask("", namespace="web").document["items"][0]["metricLabels"]["workload"] == "clicks"


def test_x08_several_are_refused_with_their_names() -> None:
    given = ask("team=red")
    assert given.code == 400
    assert "matches 2 in namespace shop" in message(given)
    assert "orders, payments" in message(given)


def test_of_very_many_only_some_names_are_told() -> None:
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
        ("workload=payments,stage=jion", "stage=jion matches nothing in namespace shop; nearest is join"),
        ("workload=orders,stage=join", "each of workload=orders,stage=join matches something in namespace shop"),
    ],
)
def test_no_match_names_the_near_miss(selector: str, near: str) -> None:
    given = ask(selector)
    assert given.code == 404
    assert message(given).startswith(near)


def test_a_namespace_without_workloads_says_so() -> None:
    given = ask("workload=orders", namespace="shopp")
    assert given.code == 404
    assert "no workload is known in namespace shopp" in message(given)


def test_an_unknown_metric_names_the_nearest() -> None:
    given = ask("workload=orders", metric="requird_workers")
    assert given.code == 404
    assert message(given).endswith("nearest is required_workers")


def test_a_stage_has_its_own_numbers() -> None:
    given = ask("workload=payments,stage=join", metric="backlog")
    assert given.document["items"][0]["value"] == "20"
    assert given.document["items"][0]["metricLabels"] == {"stage": "join", "team": "red", "workload": "payments"}


def test_a_stage_has_no_workers_of_its_own() -> None:
    given = ask("workload=payments,stage=join")
    assert given.code == 400
    assert "leave stage out of the selector" in message(given)


def test_x06_no_number_is_a_503_with_workload_reason_age_and_fix() -> None:
    given = ask("workload=orders", entry(required_workers=None, reason=Reason.EXPIRED, sample_age_s=200.0))
    assert given.code == 503
    assert given.document["reason"] == "ServiceUnavailable"
    assert message(given).startswith("no required_workers for shop/orders (Expired): no sample of shop/orders for")


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_x06_a_number_that_is_none_is_never_served(value: float) -> None:
    assert ask("workload=orders", entry(required_workers=value)).code == 503


def test_an_unknown_signal_of_a_decided_workload_is_not_0() -> None:
    given = ask("workload=orders", metric="utilization")
    assert given.code == 503
    assert "no utilization for shop/orders (Hold): what it is made of is not known yet" in message(given)


def test_a_snapshot_older_than_its_limit_is_no_answer() -> None:
    assert ask("workload=orders", age_s=180.0).code == 200
    given = ask("workload=orders", age_s=181.0)
    assert given.code == 503
    assert message(given).startswith(
        "the pipeline published nothing for 181 s, the limit is 180 s; is the pipeline running"
    )


@pytest.mark.parametrize("age_s", [29.0, 31.0])
def test_x06_a_number_expires_by_the_age_of_its_samples_and_not_of_the_snapshot_alone(age_s: float) -> None:
    given = ask("", entry(sample_age_s=150.0, reason=Reason.STALE), age_s=age_s)
    assert given.code == (200 if age_s < 30 else 503)
    if given.code == 503:
        assert message(given).startswith(
            "no required_workers for shop/orders: its newest sample is 181 s old, the limit is 180 s; is the pipeline"
        )


def test_a_paused_size_is_held_whatever_the_age_of_its_samples() -> None:
    paused = entry(sample_age_s=5000.0, reason=Reason.PAUSED)
    assert (ask("", paused).code, ask("", paused, age_s=181.0).code) == (200, 503)


def test_a_strict_workload_shortens_nobody_elses_number() -> None:
    both = entry("shop/lax", error_after_s=600.0), entry("shop/strict", error_after_s=30.0)
    assert [ask("workload=lax", *both, age_s=age_s).code for age_s in (31.0, 600.0, 601.0)] == [200, 200, 503]
    assert [ask("workload=strict", *both, age_s=age_s).code for age_s in (30.0, 31.0)] == [200, 503]


def test_a_snapshot_of_the_future_is_no_answer_and_blames_the_clocks() -> None:
    assert ask("workload=orders", age_s=-30.0).code == 200
    given = ask("workload=orders", age_s=-31.0)
    assert given.code == 503
    assert message(given).startswith("the last decision is 31 s in the future: compare the clocks")


def test_before_the_first_snapshot_there_is_no_answer() -> None:
    given = answer(None, AT_S, Question("shop", "required_workers", parse("")))
    assert given.code == 503
    assert "published nothing since this server started" in message(given)


@pytest.mark.parametrize(
    ("metric", "fields", "value"),
    [
        ("required_workers_padded", {"required_workers": 3.0}, "3300m"),
        ("required_workers_padded", {"required_workers": 20.0}, "22"),
        ("backlog_time_seconds", {"backlog_time_s": 86_400.0}, "86400"),
        ("drain_time_seconds", {"drain_time_s": 12.5}, "12500m"),
        ("backlog_growth", {"growth_records_per_s": -5.0}, "0"),
        ("backlog_growth_signed", {"growth_records_per_s": -0.25}, "-250m"),
        ("segments", {"partitions": 12.0}, "12"),
        ("backlog", {"backlog_records": 1e16}, "9P"),
    ],
)
def test_a_metric_is_read_off_the_decision(metric: str, fields: dict[str, float], value: str) -> None:
    assert ask("", entry(**fields), metric=metric).document["items"][0]["value"] == value


def test_every_name_an_hpa_may_use_is_served_or_named_as_not_yet() -> None:
    unsigned = {name for name, metric in METRICS.items() if not metric.signed}
    assert unsigned | {*NOT_YET} == set(METRIC_NAMES)
    assert not {*METRICS} & {*NOT_YET}
