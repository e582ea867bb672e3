"""The sentence of a decision is user interface: one example of each, word for word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.decisions import Bound, Decision, Reason
from adapter.core.reasons import MEANINGS, sentence
from adapter.core.report import NUMBERS


def decision(reason, **changes):
    usual = {"required_workers": 10, "spec_workers": 10, "workers": 10, "ready_workers": 10}
    return Decision(workload="shop/orders", at_s=60, policy="dataflow", reason=reason, **usual | changes)


BEHIND = {
    "spec_workers": 10,
    "keep_up_workers": 15.0,
    "catch_up_workers": 5.0,
    "wanted_workers": 20,
    "required_workers": 20,
    "backlog_time_s": 30.0,
    "input_rate_records_per_s": 1500.0,
    "throughput_records_per_s": 1000.0,
}
CALM = {"backlog_time_s": 0.0, "input_rate_records_per_s": 1000.0, "throughput_records_per_s": 1000.0}

SENTENCES = {
    "paused": (decision(Reason.PAUSED), "keep 10: paused; remove the pause to go on"),
    "never a sample": (
        decision(Reason.NO_DATA, required_workers=None),
        "no sample of shop/orders yet; check its sources in the configuration",
    ),
    "no rate yet": (
        decision(Reason.NO_DATA, required_workers=None, sample_age_s=0),
        "no target yet: too few samples of shop/orders for a rate; the next ticks bring them",
    ),
    "no rate after a reset": (
        decision(Reason.NO_DATA, sample_age_s=0),
        "keep 10: too few samples of shop/orders for a rate; the next ticks bring them",
    ),
    "expired": (
        decision(Reason.EXPIRED, required_workers=None, sample_age_s=195.0, fault="kafka: no broker answers"),
        "no sample of shop/orders for 195 s; bring its sources back: kafka: no broker answers",
    ),
    "stale": (
        decision(Reason.STALE, sample_age_s=15.0, fault="prometheus: connection refused"),
        "keep 10: the last sample is 15 s old: prometheus: connection refused",
    ),
    "workers unknown": (
        decision(Reason.NO_WORKERS, required_workers=None),
        "no target yet: the number of workers is unknown; check the HPA and its scale target",
    ),
    "in flight": (
        decision(Reason.IN_FLIGHT, spec_workers=12, required_workers=12),
        "keep 12: 10 of 12 workers are there",
    ),
    "on their way out": (decision(Reason.IN_FLIGHT, spec_workers=8), "keep 10: 10 workers are there, 8 will stay"),
    "settling": (
        decision(Reason.SETTLING, changed_age_s=30.0),
        "keep 10: workers changed 30 s ago, rates are not clean yet",
    ),
    "stuck": (
        decision(Reason.NO_PROGRESS, backlog_records=50_000.0),
        "keep 10: 50 000 records wait and none is processed",
    ),
    "up": (
        decision(Reason.UP, **BEHIND),
        "10 -> 20: backlog time 30 s, input 1 500/s against throughput 1 000/s: "
        "15.0 to keep up + 5.0 to catch up, so 20",
    ),
    "up, of a stage, cut": (
        decision(Reason.UP, **BEHIND | {"required_workers": 12}, stage="map", bound=Bound.PARTITIONS, partitions=12),
        "10 -> 12: backlog time 30 s, input 1 500/s against throughput 1 000/s of stage map: "
        "15.0 to keep up + 5.0 to catch up, so 20; only 12 partitions, more workers would idle",
    ),
    "up, without a spec": (
        decision(Reason.UP, **BEHIND | {"spec_workers": None}),
        "10 -> 20: backlog time 30 s, input 1 500/s against throughput 1 000/s: "
        "15.0 to keep up + 5.0 to catch up, so 20",
    ),
    "down": (
        decision(Reason.DOWN, **CALM, required_workers=9, wanted_workers=9, utilization_ratio=0.62),
        "10 -> 9: backlog time 0.0 s, input 1 000/s against throughput 1 000/s, utilization 62% leaves room",
    ),
    "down, by a cap": (
        decision(Reason.DOWN, **CALM, required_workers=8, wanted_workers=10, bound=Bound.MAX, max_workers=8),
        "10 -> 8: backlog time 0.0 s, input 1 000/s against throughput 1 000/s; the maximum is 8",
    ),
    "hold": (
        decision(Reason.HOLD, **CALM, utilization_ratio=0.75),
        "keep 10: backlog time 0.0 s, input 1 000/s against throughput 1 000/s, utilization 75%",
    ),
    "hold of a slow stream": (
        decision(Reason.HOLD, **CALM | {"input_rate_records_per_s": 0.4, "throughput_records_per_s": 0.0}),
        "keep 10: backlog time 0.0 s, input 0.4/s against throughput 0/s",
    ),
}


@pytest.mark.parametrize(("said_of", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_each_reason_has_its_sentence(said_of, expected):
    assert sentence(said_of) == expected


def test_every_reason_has_an_example_and_a_meaning():
    assert {said_of.reason for said_of, _ in SENTENCES.values()} == set(Reason)
    assert set(MEANINGS) == set(Reason)


CUTS = {
    Bound.NONE: "",
    Bound.MIN: "; the minimum is 3",
    Bound.MAX: "; the maximum is 40",
    Bound.PARTITIONS: "; only 12 partitions, more workers would idle",
    Bound.STEP: "; cut to one step",
    Bound.PAUSE: "; a pause forbids this direction",
}


@pytest.mark.parametrize("bound", Bound)
def test_each_cut_is_named(bound):
    limits = {"min_workers": 3, "max_workers": 40, "partitions": 12}
    told = sentence(decision(Reason.HOLD, **CALM, **limits, bound=bound))
    assert told == f"keep 10: backlog time 0.0 s, input 1 000/s against throughput 1 000/s{CUTS[bound]}"


numbers = st.one_of(st.none(), st.floats(0, 1e18))


@given(
    st.sampled_from(Reason),
    st.sampled_from(Bound),
    st.fixed_dictionaries({}, optional=dict.fromkeys(NUMBERS, numbers)),
)
def test_no_sentence_says_none_or_nan(reason, bound, known):
    told = sentence(Decision(workload="shop/orders", at_s=0, policy="dataflow", reason=reason, bound=bound, **known))
    assert told
    assert not {"None", "nan", "inf"} & set(told.replace(";", " ").replace(":", " ").split())
