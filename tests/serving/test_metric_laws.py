"""What holds for every snapshot and every question."""

from collections.abc import Sequence
from functools import cache

import pytest
from builders import TICK_S, counts, fold, job, tick
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import AT_S, entry, snapshot
from signal_builders import FLEET, external, objects, readings

from adapter.apiserver.selectors import Requirement, Selector, parse
from adapter.apiserver.status import StatusError
from adapter.core.decisions import Decision, Reason
from adapter.core.metrics import METRICS, OBJECT_KINDS
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import STAGE_SIGNALS
from adapter.serving.metric_api import MetricValue, ObjectQuery, ObjectValue
from adapter.serving.providers import ObjectMetrics
from adapter.serving.snapshots.snapshot import Entry
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.snapshots.workloads import Candidate

WORDS = st.sampled_from(["orders", "payments", "clicks", "red", "blue", "join", "parse", "x", "", "5"])
TERMS = st.builds(
    "".join,
    st.one_of(
        st.tuples(st.sampled_from(["workload", "team", "stage", "zone"]), st.sampled_from(["=", "!=", "=="]), WORDS),
        st.tuples(st.sampled_from(["", "!"]), st.sampled_from(["workload", "team", "stage", "zone"])),
        st.tuples(
            st.sampled_from(["workload", "team", "stage"]),
            st.sampled_from([" in ", " notin "]),
            st.lists(WORDS, min_size=1, max_size=3).map(lambda words: f"({','.join(words)})"),
        ),
        st.tuples(st.sampled_from(["team>1", "zone<7"])),
    ),
)
SELECTORS = st.lists(TERMS, max_size=4).map(",".join)
METRIC_NAMES = st.sampled_from(sorted(METRICS))


def values_of(given_back: object) -> list[str]:
    """The numbers that left, none for a refusal."""
    if isinstance(given_back, StatusError):
        return []
    items = given_back if isinstance(given_back, Sequence) else [given_back]
    assert all(isinstance(item, MetricValue | ObjectValue) for item in items)
    return [item.value for item in items]


@given(SELECTORS, METRIC_NAMES, st.sampled_from(["shop", "web", "none"]))
def test_case_51_any_selector_yields_one_item_or_an_error_with_a_sentence(
    selector: str, metric: str, namespace: str
) -> None:
    found = external(readings(*FLEET), selector, metric, namespace)
    if isinstance(found, StatusError):
        assert found.code in (400, 404, 503)
        assert found.message
        assert found.document["code"] == found.code


def _picked(entries: Sequence[Entry], selector: Selector, namespace: str) -> list[Candidate]:
    """By looking at each."""
    store = SnapshotStore(clock=lambda: AT_S)
    assert store.put(snapshot(*entries))
    assert store.current is not None
    everything = store.current.namespaces[namespace].label_index(stages=selector.mentions("stage"))
    return [candidate for candidate in everything.candidates if selector.matches(candidate.labels)]


@given(SELECTORS)
def test_an_index_finds_the_same_as_a_scan(text: str) -> None:
    selector = parse(text)
    expected = _picked(FLEET, selector, "shop")
    found = external(readings(*FLEET), text, "backlog")
    assert (isinstance(found, StatusError) and found.code == 404) is (not expected)
    assert (isinstance(found, StatusError) and found.code == 400) is (len(expected) > 1)
    if len(expected) > 1 and isinstance(found, StatusError):
        what = "stages" if any(candidate.place is not None for candidate in expected) else "workloads"
        assert f" {len(expected)} {what} in namespace shop, and an HPA would add their values" in found.message


@given(METRIC_NAMES, WORDS.filter(bool), SELECTORS, st.sampled_from(sorted(OBJECT_KINDS)))
def test_an_object_and_an_external_metric_agree(metric: str, name: str, text: str, resource: str) -> None:
    selector = parse(text)
    by_name = Selector((Requirement("workload", "in", (name,)), *selector.requirements))
    same = str(selector if selector.mentions("workload") else by_name)
    question = ObjectQuery("shop", resource, name, metric, metric_selector=selector)
    found = objects(ObjectMetrics(readings(*FLEET)), question)
    assert values_of(found) == values_of(external(readings(*FLEET), same, metric))


@pytest.mark.parametrize("reason", Reason)
def test_x06_any_decision_yields_a_number_or_a_sentence(reason: Reason) -> None:
    for workers in (None, 3.0):
        found = external(readings(entry(required_workers=workers, reason=reason)))
        assert isinstance(found, MetricValue) is (workers is not None)


SEEN = (*STAGE_SIGNALS, "partitions")


@cache
def last_decisions(policy: str, falls_silent: bool) -> dict[str, Decision]:
    """By signal: the last decision of a workload that reports this signal alone, for a minute if it falls silent."""
    ticks = [
        tick(
            at_s,
            *(
                job(f"shop/{seen}", **counts(), **({} if falls_silent and at_s > 60 else {seen: 7.0 + at_s}))
                for seen in SEEN
            ),
        )
        for at_s in (TICK_S * number for number in range(20))
    ]
    rules = RuleBook(by_workload={f"shop/{seen}": Rules(policy=policy) for seen in SEEN})
    return {decision.workload.removeprefix("shop/"): decision for decision in fold(ticks, rules)[-1]}


@pytest.mark.parametrize("policy", ["drain", "segments"])
@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("falls_silent", [True, False])
def test_x06_without_samples_only_segments_have_a_number(policy: str, seen: str, falls_silent: bool) -> None:
    """Without a throughput and a backlog no other sample has an age."""
    decided = last_decisions(policy, falls_silent)[seen]
    followed = policy == "segments" and seen == "partitions"
    assert decided.sample_age_s is None
    assert (decided.decided_age_s is not None) == followed
    sizes = {name for name, metric in METRICS.items() if metric.is_size and followed}
    known = {name for name, metric in METRICS.items() if metric.read(decided) is not None}
    assert known == ({"segments"} | sizes if seen == "partitions" and not falls_silent else set())
