"""The sentence of a decision is user interface: one example of each, word for word."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.decisions import CONFIDENCE, Bound, Decision, Reason
from adapter.core.descriptions import BOUND_DESCRIPTIONS, REASON_DESCRIPTIONS
from adapter.core.messages import sentence
from adapter.core.rules import POLICIES

NUMBERS = tuple(f.name for f in fields(Decision) if f.default is None)


def decision(reason, **changes):
    usual = {"policy": "dataflow", "required_workers": 10, "spec_workers": 10, "workers": 10, "ready_workers": 10}
    return Decision(workload="shop/orders", at_s=60, reason=reason, **usual | changes)


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
OUTLOOK = {"change_workers": 16, "keep_behind_s": 140.0, "keep_after_s": 540.0}
OUTLOOK |= {"change_behind_s": 45.0, "caught_up_s": 240.0}
DRAIN = CALM | {"policy": "drain", "spec_workers": 12, "required_workers": 16, "wanted_workers": 16, **OUTLOOK}
DRAIN |= {"confidence": "observed", "backlog_time_target_s": 60.0}
RATES = "backlog time 0.0 s, input 1 000/s against throughput 1 000/s"
TERMS = "15.0 to keep up + 5.0 to catch up, so 20"

SENTENCES = {
    "paused": (decision(Reason.PAUSED), "keep 10: paused; remove the pause to go on"),
    "excluded": (
        decision(Reason.EXCLUDED),
        "keep 10: an excluded period is on; wait for its end or change excluded_periods",
    ),
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
    "S2-18 segments stale": (
        decision(Reason.STALE, policy="segments", partitions=10, partitions_age_s=15.0, sample_age_s=15.0),
        "keep 10: the segments were last counted 15 s ago",
    ),
    "S2-18 segments expired": (
        decision(
            Reason.EXPIRED,
            policy="segments",
            required_workers=None,
            partitions_age_s=7000.0,
            sample_age_s=7000.0,
            fault="pravega: no answer",
        ),
        "the segments of shop/orders were last counted 117 min ago; check the source that counts them: "
        "pravega: no answer",
    ),
    "S2-18 segments counted, the rest stale": (
        decision(Reason.STALE, policy="segments", partitions=7, partitions_age_s=0.0, sample_age_s=15.0),
        "keep 10: the last sample is 15 s old",
    ),
    "S2-18 segments never counted": (
        decision(Reason.NO_DATA, policy="segments", required_workers=None, sample_age_s=0.0),
        "the segments of shop/orders were never counted; check the source that counts them",
    ),
    "nothing but partitions": (
        decision(Reason.NO_DATA, policy="drain", required_workers=None, partitions=7, partitions_age_s=0.0),
        "of shop/orders only the 7 partitions are told; read what it processes and what waits, too, or set the policy "
        "segments",
    ),
    "S2-18 partitions alone are not told": (
        decision(Reason.HOLD, **CALM, partitions_age_s=195.0, sample_age_s=0.0, fault="pravega: no answer"),
        f"keep 10: {RATES}; the partitions were last counted 195 s ago: check the source that counts them; "
        "pravega: no answer",
    ),
    "S2-18 partitions are not told, and nothing else ever was": (
        decision(Reason.NO_DATA, required_workers=None, partitions_age_s=195.0),
        "no sample of shop/orders yet; check its sources in the configuration; the partitions were last counted 195 s "
        "ago: check the source that counts them",
    ),
    "S2-18 paused, and the segments are not told": (
        decision(Reason.PAUSED, policy="segments", partitions_age_s=195.0, sample_age_s=195.0),
        "keep 10: paused; remove the pause to go on; the partitions were last counted 195 s ago: check the source that "
        "counts them",
    ),
    "nothing is told any more": (
        decision(Reason.EXPIRED, required_workers=None, partitions_age_s=195.0, sample_age_s=195.0),
        "no sample of shop/orders for 195 s; bring its sources back",
    ),
    "workers unknown": (
        decision(Reason.NO_WORKERS, required_workers=None),
        "no target yet: the number of workers is unknown; check the HPA and its scale target",
    ),
    "not running": (
        decision(Reason.NOT_RUNNING),
        "keep 10: the job does not run; start it, or see why it ended",
    ),
    "S4-09 failures": (
        decision(Reason.FAILURES, restarts=3),
        "keep 10: 3 restarts of late; mend what makes the job fail",
    ),
    "in flight": (
        decision(Reason.IN_FLIGHT, spec_workers=12, required_workers=12),
        "keep 12: 10 of 12 workers are there",
    ),
    "on their way out": (decision(Reason.IN_FLIGHT, spec_workers=8), "keep 10: 10 workers are there, 8 will stay"),
    "unschedulable": (
        decision(Reason.UNSCHEDULABLE, spec_workers=20, workers=20, ready_workers=10),
        "20 -> 10: 10 of 20 workers are ready, the others do not come; look at their pods, at quota and nodes",
    ),
    "settling": (
        decision(Reason.SETTLING, changed_age_s=30.0),
        "keep 10: workers changed or stood still 30 s ago, rates are not clean yet",
    ),
    "discontinuity": (
        decision(Reason.DISCONTINUITY, backlog_records=1e6),
        "keep 10: the backlog jumped to 1 000 000 records; the next samples confirm it or not",
    ),
    "stuck": (
        decision(Reason.STUCK, backlog_records=50_000.0),
        "keep 10: 50 000 records wait and none is processed; more workers will not help, look at the job",
    ),
    "not enacted": (
        decision(Reason.NOT_ENACTED, spec_workers=12, required_workers=20, held_workers=20, committed_age_s=900.0),
        "nobody has enacted 20 for 15 min: 12 run; check the HPA's maxReplicas, tolerance, behavior, and quota",
    ),
    "up": (
        decision(Reason.UP, **BEHIND),
        f"10 -> 20: backlog time 30 s, input 1 500/s against throughput 1 000/s: {TERMS}",
    ),
    "up, of a stage, cut": (
        decision(
            Reason.UP, **BEHIND | {"required_workers": 12}, stage="map", bound=Bound.MAX, max_workers=12, partitions=60
        ),
        "10 -> 12: backlog time 30 s, input 1 500/s against throughput 1 000/s of stage map: "
        f"{TERMS}; the maximum is 12",
    ),
    "up, without a spec": (
        decision(Reason.UP, **BEHIND | {"spec_workers": None}),
        f"10 -> 20: backlog time 30 s, input 1 500/s against throughput 1 000/s: {TERMS}",
    ),
    "S3-17 up, to a quantum": (
        decision(Reason.UP, **BEHIND | {"wanted_workers": 30, "required_workers": 30}),
        "10 -> 30: backlog time 30 s, input 1 500/s against throughput 1 000/s: "
        "15.0 to keep up + 5.0 to catch up, so 30, rounded up to an even spread",
    ),
    "up, by the larger term": (
        decision(Reason.UP, **BEHIND | {"policy": "netflix", "wanted_workers": 15, "confidence": "observed"}),
        "10 -> 20: backlog time 30 s, input 1 500/s against throughput 1 000/s: "
        "15.0 to keep up or 5.0 to catch up, so 15",
    ),
    "S2-01 up, by segments and nothing else": (
        decision(Reason.UP, policy="segments", required_workers=12, wanted_workers=12, partitions=12),
        "10 -> 12: 12 segments, so 12",
    ),
    "S2-01 up, by segments": (
        decision(Reason.UP, **CALM, policy="segments", required_workers=12, wanted_workers=12, partitions=12),
        f"10 -> 12: {RATES}: 12 segments, so 12",
    ),
    "S1-16 up, by utilization": (
        decision(
            Reason.UP,
            **CALM,
            policy="varga",
            required_workers=14,
            wanted_workers=14,
            keep_up_workers=10.0,
            utilization_ratio=0.98,
        ),
        f"10 -> 14: {RATES}: 10.0 to keep up, utilization 98 %, so 14",
    ),
    "up, of a policy without terms": (
        decision(Reason.UP, **CALM, policy="varga", required_workers=12, wanted_workers=12),
        f"10 -> 12: {RATES}: 12 wanted",
    ),
    "up, from below the minimum": (
        decision(Reason.UP, spec_workers=2, bound=Bound.MIN, min_workers=10),
        "2 -> 10: raised to the minimum; the minimum is 10",
    ),
    "up, with what would come of it": (
        decision(Reason.UP, **DRAIN),
        f"12 -> 16: {RATES}; keep 12: 140 s behind in 9 min; 16: peak 45 s, caught up in 4 min",
    ),
    "up, of which no end is in sight": (
        decision(Reason.UP, **DRAIN | {"keep_after_s": 0, "keep_behind_s": 86_400.0, "caught_up_s": 86_400.0}),
        f"12 -> 16: {RATES}; keep 12: over a day behind now; 16: peak 45 s, not caught up in sight",
    ),
    "S4-32 up, ahead of the input": (
        decision(Reason.UP, **DRAIN | {"forecast_input_rate_records_per_s": 1400.0}),
        "12 -> 16: backlog time 0.0 s, input 1 000/s (foreseen 1 400/s) against throughput 1 000/s; "
        "keep 12: 140 s behind in 9 min; 16: peak 45 s, caught up in 4 min",
    ),
    "down": (
        decision(Reason.DOWN, **CALM, required_workers=9, wanted_workers=9, utilization_ratio=0.62),
        f"10 -> 9: {RATES}, utilization 62 % leaves room",
    ),
    "down, with what would come of it": (
        decision(
            Reason.DOWN,
            **DRAIN | {"required_workers": 9, "change_workers": 9, "keep_behind_s": 0},
            utilization_ratio=0.5,
        ),
        f"12 -> 9: {RATES}, utilization 50 % leaves room; 9: peak 45 s, caught up in 4 min",
    ),
    "down, by a cap": (
        decision(Reason.DOWN, **CALM, required_workers=8, wanted_workers=10, bound=Bound.MAX, max_workers=8),
        f"10 -> 8: {RATES}; the maximum is 8",
    ),
    "idle": (decision(Reason.IDLE, required_workers=1), "10 -> 1: nothing arrives and nothing waits"),
    "hold": (decision(Reason.HOLD, **CALM, utilization_ratio=0.75), f"keep 10: {RATES}, utilization 75 %"),
    "hold of a slow stream": (
        decision(Reason.HOLD, **CALM | {"input_rate_records_per_s": 0.4, "throughput_records_per_s": 0.0}),
        "keep 10: backlog time 0.0 s, input 0.4/s against throughput 0/s",
    ),
    "hold, though another size would do": (
        decision(
            Reason.HOLD,
            **DRAIN | {"keep_behind_s": 20, "required_workers": 12, "wanted_workers": 12},
            needed_workers=11,
        ),
        f"keep 12: {RATES}, at most 20 s behind; the load needs 11, not worth a rescale now",
    ),
    "hold of an up that a bound took back": (
        decision(Reason.HOLD, **DRAIN | {"required_workers": 12}, bound=Bound.COOLDOWN, asked_age_s=60.0),
        f"keep 12: {RATES}; keep 12: 140 s behind in 9 min; 16: peak 45 s, caught up in 4 min; "
        "too soon, 60 s after the last change",
    ),
    "hold of a down that a bound took back": (
        decision(Reason.HOLD, **CALM, wanted_workers=7, bound=Bound.WINDOW, window_workers=11),
        f"keep 10: {RATES}, 7 wanted; 11 were needed within the window of downs",
    ),
    "hold of a down that does not pay yet": (
        decision(
            Reason.HOLD,
            **CALM,
            policy="drain",
            confidence="observed",
            wanted_workers=7,
            bound=Bound.WINDOW,
            window_workers=10,
        ),
        f"keep 10: {RATES}, 7 wanted; a down does not pay yet: fewer must have been enough for longer",
    ),
}


@pytest.mark.parametrize(("said_of", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_each_reason_has_its_sentence(said_of, expected):
    assert sentence(said_of) == expected


def test_every_reason_has_an_example_and_a_meaning():
    assert {said_of.reason for said_of, _ in SENTENCES.values()} == set(Reason)
    assert list(REASON_DESCRIPTIONS) == list(Reason)
    assert list(BOUND_DESCRIPTIONS) == list(Bound)


TOLD = {
    "min_workers": 3,
    "max_workers": 40,
    "partitions": 12,
    "allowed_workers": 6,
    "hottest_partition_ratio": 6.0,
    "utilization_ratio": 0.12,
    "window_workers": 14,
    "held_workers": 15,
    "committed_age_s": 300.0,
    "asked_age_s": 90.0,
    "blocked_s": 1500.0,
}
CUTS = {
    Bound.NONE: "",
    Bound.WINDOW: "; 14 were needed within the window of downs",
    Bound.LATCH: "; 15 was decided 5 min ago and stands until it is enacted",
    Bound.PAUSE: "; a pause forbids this direction",
    Bound.FAILOVER: "; no down while a failover is on",
    Bound.SINK: "; more workers will not help: the sink is not healthy, mend it first",
    Bound.INEFFECTIVE: (
        "; more workers will not help: the last ones gained too little or found no place, 25 min until the next try"
    ),
    Bound.COOLDOWN: "; too soon, 90 s after the last change",
    Bound.BUDGET: "; downs have paused the job long enough for a day (pause_budget_ratio)",
    Bound.TRIAL: "; behind at utilization 12 %: more workers will hardly help, one is tried",
    Bound.HOT: "; more than 6 workers will not help: one partition takes 6.0 times the mean: split its keys",
    Bound.STEP: "; cut to one step",
    Bound.MAX: "; the maximum is 40",
    Bound.PARTITIONS: "; only 12 partitions, more workers will not help",
    Bound.MIN: "; the minimum is 3",
    Bound.MEMORY: "; memory for 12 partitions takes 3 workers",
}


@pytest.mark.parametrize("bound", Bound)
def test_each_cut_is_named(bound):
    assert sentence(decision(Reason.HOLD, **CALM, **TOLD, bound=bound)) == (
        f"keep 10: {RATES}, utilization 12 %{CUTS[bound]}"
    )


def test_a_sick_sink_holds_downs_for_another_reason():
    told = sentence(decision(Reason.HOLD, **CALM, wanted_workers=8, bound=Bound.SINK))
    assert told.endswith("; no down while the job is behind and its sink is not healthy")


# what the load needs, and what the input can feed -> what is said about it
PARTITIONS = {
    "S0-16 cut": (
        {"bound": Bound.PARTITIONS, "required_workers": 8, "partitions": 8, "max_workers": 8, "wanted_workers": 14},
        "; only 8 partitions, more workers will not help: 14 would be needed",
    ),
    "S4-36 cut, two slots a worker": (
        {"bound": Bound.PARTITIONS, "required_workers": 4, "partitions": 8, "slots_per_worker": 2, "wanted_workers": 7},
        "; only 8 partitions, more workers will not help: 14 would be needed",
    ),
    "S2-18 cut by partitions that are not told any more": (
        {"bound": Bound.PARTITIONS, "required_workers": 8, "max_workers": 8, "wanted_workers": 14},
        "; only the partitions last known, more workers will not help",
    ),
    "no cut": ({"required_workers": 8, "partitions": 9, "keep_up_workers": 13.2, "backlog_time_s": 61.0}, ""),
}


@pytest.mark.parametrize(("known", "expected"), PARTITIONS.values(), ids=PARTITIONS)
def test_more_partitions_are_asked_for_where_they_are_the_remedy(known, expected):
    told = sentence(decision(Reason.HOLD, **CALM | {"backlog_time_target_s": 60.0, "spec_workers": 8} | known))
    assert (
        told.partition("; only")[1:] == ("; only", expected.removeprefix("; only")) if expected else "only" not in told
    )


TRUST = {
    "none": (None, ", capacity not known yet"),
    "carried": (1200.0, ", capacity 1 200/s or more"),
    "prior": (1200.0, ", capacity 1 200/s as configured"),
    "estimated": (1200.0, ", capacity 1 200/s estimated"),
    "observed": (1200.0, ""),
}


@pytest.mark.parametrize("confidence", CONFIDENCE)
def test_a_capacity_that_was_not_observed_is_told_as_such(confidence):
    capacity, expected = TRUST[confidence]
    known = {"confidence": confidence, "capacity_records_per_s": capacity}
    assert sentence(decision(Reason.HOLD, **CALM, policy="drain", **known)) == f"keep 10: {RATES}{expected}"
    assert sentence(decision(Reason.HOLD, **CALM, policy="dataflow", **known)) == f"keep 10: {RATES}"


@pytest.mark.parametrize(("ratio", "told"), [(0.2, True), (0.49, True), (0.5, False), (None, False)])
def test_s4_38_a_worker_half_as_fast_as_the_median_is_named(ratio, told):
    slow = f"; the slowest worker does {(ratio or 0) * 100:.0f} % of the median: replace it"
    for reason in (Reason.UP, Reason.DOWN, Reason.HOLD, Reason.IDLE, Reason.NOT_ENACTED):
        assert sentence(decision(reason, **CALM, slowest_worker_ratio=ratio)).endswith(slow) == told
    assert "slowest" not in sentence(decision(Reason.STALE, sample_age_s=15, slowest_worker_ratio=ratio))


@pytest.mark.parametrize("reason", Reason)
def test_a_fault_is_told_with_every_reason(reason):
    told = sentence(decision(reason, **BEHIND, fault="backlog-adapter/pause: cannot be read"))
    assert told.endswith("backlog-adapter/pause: cannot be read")


numbers = st.one_of(st.none(), st.floats(0, 1e18))


@given(
    st.sampled_from(Reason),
    st.sampled_from(Bound),
    st.sampled_from(POLICIES),
    st.sampled_from(CONFIDENCE),
    st.fixed_dictionaries({}, optional=dict.fromkeys(NUMBERS, numbers)),
)
def test_no_sentence_says_none_or_nan(reason, bound, policy, confidence, known):
    who = {"workload": "shop/orders", "at_s": 0, "policy": policy, "confidence": confidence}
    told = sentence(Decision(**who, reason=reason, bound=bound, **known))
    assert told
    assert not {"None", "nan", "inf"} & set(told.replace(";", " ").replace(":", " ").replace(",", " ").split())
