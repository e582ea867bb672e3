"""The sentence of a decision is user interface: one example of each, word for word."""

from dataclasses import fields

import pytest
from builders import Fluid, book, closed, counts, flow, job, last, tick
from hypothesis import given
from hypothesis import strategies as st

from adapter.core import policies
from adapter.core.decisions import CONFIDENCE, Bound, Decision, Reason
from adapter.core.formatting import rate
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
OUTLOOK |= {"change_behind_s": 45.0, "caught_up_s": 240.0, "calm": 1.0}
DRAIN = CALM | {"policy": "drain", "spec_workers": 12, "required_workers": 16, "wanted_workers": 16, **OUTLOOK}
DRAIN |= {"confidence": "observed", "capacity_records_per_s": 1000.0, "backlog_time_target_s": 60.0}
SAME = {"required_workers": 12, "wanted_workers": 12, "needed_workers": 16}
SHORT = {"short_backlog_time_s": 10.0, "keep_behind_s": 0.0}
RATES = "backlog time 0.0 s, input 1 000/s, throughput 1 000/s"
TERMS = "the load needs 20 workers: 15.0 to keep up plus 5.0 to catch up"

PAUSED = (
    "scaling is paused; to resume, remove the HPA's annotation backlog-adapter/pause, or `pause` in the configuration"
)

SENTENCES = {
    "paused": (decision(Reason.PAUSED), f"Holding 10 workers: {PAUSED}"),
    "excluded": (
        decision(Reason.EXCLUDED),
        "Holding 10 workers: an excluded period is active; wait for its end or change excluded_periods",
    ),
    "never a sample": (
        decision(Reason.NO_DATA, required_workers=None),
        "No sample of shop/orders yet; check its sources in the configuration",
    ),
    "never a sample, because its source fails": (
        decision(Reason.NO_DATA, required_workers=None, source_failed=1.0, fault="fleet: no answer within 1.5 s"),
        "No sample of shop/orders yet: fleet: no answer within 1.5 s",
    ),
    "no rate yet": (
        decision(Reason.NO_DATA, required_workers=None, sample_age_s=0),
        "No target yet: too few samples of shop/orders for a rate; wait for the next ticks",
    ),
    "no rate after a reset": (
        decision(Reason.NO_DATA, sample_age_s=0),
        "Holding 10 workers: too few samples of shop/orders for a rate; wait for the next ticks",
    ),
    "expired": (
        decision(Reason.EXPIRED, required_workers=None, sample_age_s=195.0, fault="kafka: no broker answers"),
        "No sample of shop/orders for 195 s; check its sources: kafka: no broker answers",
    ),
    "stale": (
        decision(Reason.STALE, sample_age_s=15.0, fault="prometheus: connection refused"),
        "Holding 10 workers: the last sample is 15 s old: prometheus: connection refused",
    ),
    "S2-18 segments stale": (
        decision(Reason.STALE, policy="segments", partitions=10, partitions_age_s=15.0, sample_age_s=15.0),
        "Holding 10 workers: the segments were last counted 15 s ago",
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
        "The segments of shop/orders were last counted 117 min ago; check the source that counts them: "
        "pravega: no answer",
    ),
    "S2-18 segments counted, the rest stale": (
        decision(Reason.STALE, policy="segments", partitions=7, partitions_age_s=0.0, sample_age_s=15.0),
        "Holding 10 workers: the last sample is 15 s old",
    ),
    "S2-18 segments never counted": (
        decision(Reason.NO_DATA, policy="segments", required_workers=None, sample_age_s=0.0),
        "The segments of shop/orders were never counted; check the source that counts them",
    ),
    "nothing but partitions": (
        decision(Reason.NO_DATA, policy="drain", required_workers=None, partitions=7, partitions_age_s=0.0),
        "Only the number of partitions of shop/orders is known (7); also read its throughput and backlog, or set the "
        "policy " + " or ".join(policy.name for policy in policies.POLICIES if policy.follows_partitions),
    ),
    "S2-18 only the partitions are missing": (
        decision(Reason.HOLD, **CALM, partitions_age_s=195.0, sample_age_s=0.0, fault="pravega: no answer"),
        f"Holding 10 workers: {RATES}; the partitions were last counted 195 s ago: check the source that "
        "counts them; pravega: no answer",
    ),
    "S2-18 partitions are missing, and nothing else was ever reported": (
        decision(Reason.NO_DATA, required_workers=None, partitions_age_s=195.0),
        "No sample of shop/orders yet; check its sources in the configuration; the partitions were last "
        "counted 195 s ago: check the source that counts them",
    ),
    "S2-18 paused, and the segments are missing": (
        decision(Reason.PAUSED, policy="segments", partitions_age_s=195.0, sample_age_s=195.0),
        f"Holding 10 workers: {PAUSED}; the partitions were last counted 195 s ago: check the source that counts them",
    ),
    "all samples are missing": (
        decision(Reason.EXPIRED, required_workers=None, partitions_age_s=195.0, sample_age_s=195.0),
        "No sample of shop/orders for 195 s; check its sources",
    ),
    "workers unknown": (
        decision(Reason.NO_WORKERS, required_workers=None),
        "No target yet: the number of workers is unknown; check the HPA and its scale target, or the source that "
        "counts them",
    ),
    "not running": (
        decision(Reason.NOT_RUNNING),
        "Holding 10 workers: the job is not running; start it, or find out why it ended",
    ),
    "S4-09 failures": (
        decision(Reason.FAILURES, restarts=3),
        "Holding 10 workers: the job had 3 recent failures; fix their cause",
    ),
    "in flight": (
        decision(Reason.IN_FLIGHT, spec_workers=12, required_workers=12),
        "Holding 12 workers: 10 of 12 workers are ready; waiting for the rest",
    ),
    "ready, and more or fewer exist": (
        decision(Reason.IN_FLIGHT),
        "Holding 10 workers: 10 of 10 workers are ready, but more or fewer exist; waiting for exactly 10",
    ),
    "on their way out": (
        decision(Reason.IN_FLIGHT, spec_workers=8),
        "Holding 10 workers: more workers exist than the desired 8; waiting for them to stop",
    ),
    "unschedulable": (
        decision(Reason.UNSCHEDULABLE, spec_workers=20, workers=20, ready_workers=10),
        "Scaling down from 20 to 10 workers: 10 of 20 workers are ready and the others do not start; check "
        "their pods, the quota and the nodes",
    ),
    "settling": (
        decision(Reason.SETTLING, changed_age_s=30.0, stopped_age_s=90.0),
        "Holding 10 workers: replicas changed 30 s ago; waiting for stable rates",
    ),
    "settling after a stop": (
        decision(Reason.SETTLING, changed_age_s=30.0, stopped_age_s=30.0),
        "Holding 10 workers: nothing was processed until 30 s ago; waiting for stable rates",
    ),
    "discontinuity": (
        decision(Reason.DISCONTINUITY, backlog_records=1e6),
        "Holding 10 workers: the backlog jumped to 1 000 000 records; waiting for the next samples to confirm it",
    ),
    "stuck": (
        decision(Reason.STUCK, backlog_records=50_000.0),
        "Holding 10 workers: 50 000 records wait and nothing is processed; more workers will not help: check the job",
    ),
    "not enacted": (
        decision(Reason.NOT_ENACTED, spec_workers=12, required_workers=20, held_workers=20, committed_age_s=900.0),
        "The target of 20 workers has not been enacted for 15 min: the scale target has 12; check the HPA's "
        "maxReplicas, tolerance and behavior, and the quota",
    ),
    "up": (
        decision(Reason.UP, **BEHIND),
        f"Scaling up from 10 to 20 workers: backlog time 30 s, input 1 500/s, throughput 1 000/s; {TERMS}",
    ),
    "up, of a stage, cut": (
        decision(
            Reason.UP, **BEHIND | {"required_workers": 12}, stage="map", bound=Bound.MAX, max_workers=12, partitions=60
        ),
        "Scaling up from 10 to 12 workers: stage map has backlog time 30 s, input 1 500/s, throughput 1 "
        f"000/s; {TERMS}; the maximum is 12 workers",
    ),
    "up, without a spec": (
        decision(Reason.UP, **BEHIND | {"spec_workers": None}),
        f"Scaling up from 10 to 20 workers: backlog time 30 s, input 1 500/s, throughput 1 000/s; {TERMS}",
    ),
    "S3-17 up, to a quantum": (
        decision(Reason.UP, **BEHIND | {"wanted_workers": 30, "required_workers": 30}),
        "Scaling up from 10 to 30 workers: backlog time 30 s, input 1 500/s, throughput 1 000/s; the load "
        "needs 30 workers: 15.0 to keep up plus 5.0 to catch up, rounded up to spread the partitions evenly",
    ),
    "up, by the larger term": (
        decision(
            Reason.UP,
            **BEHIND | {"policy": "netflix", "wanted_workers": 15},
            confidence="observed",
            capacity_records_per_s=1000.0,
        ),
        "Scaling up from 10 to 20 workers: backlog time 30 s, input 1 500/s, throughput 1 000/s; the load "
        "needs 15 workers: the larger of 15.0 to keep up and 5.0 to catch up",
    ),
    "S2-01 up, by segments and nothing else": (
        decision(Reason.UP, policy="segments", required_workers=12, wanted_workers=12, partitions=12),
        "Scaling up from 10 to 12 workers: the load needs 12 workers for 12 segments",
    ),
    "S2-01 up, by segments": (
        decision(Reason.UP, **CALM, policy="segments", required_workers=12, wanted_workers=12, partitions=12),
        f"Scaling up from 10 to 12 workers: {RATES}; the load needs 12 workers for 12 segments",
    ),
    "S2-01 down, by segments": (
        decision(Reason.DOWN, **CALM, policy="segments", required_workers=8, wanted_workers=8, partitions=8),
        f"Scaling down from 10 to 8 workers: {RATES}; the load needs 8 workers for 8 segments",
    ),
    "S2-01 hold, by segments": (
        decision(
            Reason.HOLD,
            **CALM,
            policy="segments",
            wanted_workers=12,
            partitions=12,
            utilization_ratio=0.5,
            bound=Bound.MAX,
        ),
        f"Holding 10 workers at 50 % utilization: {RATES}; the load needs 12 workers for 12 segments; the maximum is "
        "10 workers",
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
        f"Scaling up from 10 to 14 workers: {RATES}; the load needs 14 workers: 10.0 to keep up, at 98 % utilization",
    ),
    "up, of a policy without terms": (
        decision(Reason.UP, **CALM, policy="varga", required_workers=12, wanted_workers=12),
        f"Scaling up from 10 to 12 workers: {RATES}; the load needs 12 workers",
    ),
    "up, with what would come of it": (
        decision(Reason.UP, **DRAIN),
        f"Scaling up from 12 to 16 workers: {RATES}; in 9 min, 12 workers would have a backlog time of 140 s; 16 "
        "workers would be at most 45 s behind and catch up in 4 min",
    ),
    "up, of which no end is in sight": (
        decision(Reason.UP, **DRAIN | {"keep_after_s": 0, "keep_behind_s": 86_400.0, "caught_up_s": 86_400.0}),
        f"Scaling up from 12 to 16 workers: {RATES}; 12 workers are over a day behind now; 16 workers "
        "would be at most 45 s behind and not catch up within a day",
    ),
    "S4-32 up, ahead of the input": (
        decision(Reason.UP, **DRAIN | {"forecast_input_rate_records_per_s": 1400.0}),
        "Scaling up from 12 to 16 workers: backlog time 0.0 s, input 1 000/s (forecast 1 400/s), throughput 1"
        " 000/s; in 9 min, 12 workers would have a backlog time of 140 s; 16 workers would be at most 45 s behind"
        " and catch up in 4 min",
    ),
    "up, ahead of an expected event": (
        decision(Reason.UP, **DRAIN | {"keep_behind_s": 0, "keep_after_s": 0}, expected_times=3.0),
        "Scaling up from 12 to 16 workers: backlog time 0.0 s, input 1 000/s (3.0 times in an expected event), "
        "throughput 1 000/s; 12 workers are 0.0 s behind now; 16 workers would be at most 45 s behind and catch up in "
        "4 min",
    ),
    "up, because a backlog below the target does not end": (
        decision(
            Reason.UP,
            **DRAIN | {"keep_behind_s": 12, "keep_after_s": 0, "backlog_time_s": 15},
        ),
        "Scaling up from 12 to 16 workers: backlog time 15 s, input 1 000/s, throughput 1 000/s; 12 workers would not "
        "catch up within 15 min; 16 workers would be at most 45 s behind and catch up in 4 min",
    ),
    "hold, while the backlog still grows": (
        decision(Reason.HOLD, **CALM | {"keep_behind_s": 5, "backlog_time_s": 8}, growth_records_per_s=50),
        "Holding 10 workers: backlog time 8.0 s, input 1 000/s, throughput 1 000/s",
    ),
    "down": (
        decision(Reason.DOWN, **CALM, required_workers=9, wanted_workers=9, utilization_ratio=0.62),
        f"Scaling down from 10 to 9 workers at 62 % utilization: {RATES}",
    ),
    "down, with what would come of it": (
        decision(
            Reason.DOWN,
            **DRAIN | {"required_workers": 9, "change_workers": 9, "keep_behind_s": 0},
            utilization_ratio=0.5,
        ),
        f"Scaling down from 12 to 9 workers at 50 % utilization: {RATES}; 9 workers would be at most 45 s "
        "behind and catch up in 4 min",
    ),
    "down, by a cap": (
        decision(Reason.DOWN, **CALM, required_workers=8, wanted_workers=10, bound=Bound.MAX, max_workers=8),
        f"Scaling down from 10 to 8 workers: {RATES}; the maximum is 8 workers",
    ),
    "idle": (decision(Reason.IDLE, required_workers=1), "Scaling down from 10 to 1 worker: no input and no backlog"),
    "hold": (decision(Reason.HOLD, **CALM, utilization_ratio=0.75), f"Holding 10 workers at 75 % utilization: {RATES}"),
    "hold of a slow stream": (
        decision(Reason.HOLD, **CALM | {"input_rate_records_per_s": 0.4, "throughput_records_per_s": 0.0}),
        "Holding 10 workers: backlog time 0.0 s, input 0.4/s, throughput 0/s",
    ),
    "hold, though another size would do": (
        decision(
            Reason.HOLD,
            **DRAIN | {"keep_behind_s": 20, "required_workers": 12, "wanted_workers": 12},
            needed_workers=11,
        ),
        f"Holding 12 workers: {RATES}; a backlog time of at most 20 s is expected within 15 min. 11 would be "
        "enough; a rescale does not pay yet",
    ),
    "hold of a down until the job has caught up": (
        decision(Reason.HOLD, **DRAIN | SAME | {"needed_workers": 4, "calm": 0.0, "backlog_time_s": 30.0, **SHORT}),
        "Holding 12 workers: backlog time 30 s, input 1 000/s, throughput 1 000/s; the backlog time is expected to "
        "fall. 4 would be enough; no scale-down while there is a backlog",
    ),
    "hold of a down while records wait for the end of a transaction": (
        decision(
            Reason.HOLD, **DRAIN | SAME | {"needed_workers": 4, "calm": 0.0, "throughput_records_per_s": 0.0, **SHORT}
        ),
        "Holding 12 workers: backlog time 0.0 s, input 1 000/s, throughput 0/s, capacity 1 000/s; no backlog is "
        "expected within 15 min. 4 would be enough; no scale-down while nothing is processed",
    ),
    "hold of a down after the backlog grew": (
        decision(Reason.HOLD, **DRAIN | SAME | {"needed_workers": 4, "calm": 0.0, "backlog_time_s": 4.5, **SHORT}),
        "Holding 12 workers: backlog time 4.5 s, input 1 000/s, throughput 1 000/s; the backlog time is expected to "
        "fall. 4 would be enough; no scale-down, because the backlog has just grown",
    ),
    "hold while the capacity is unknown": (
        decision(Reason.HOLD, **CALM, policy="drain", wanted_workers=10, needed_workers=12, calm=1.0),
        f"Holding 10 workers: {RATES}, capacity unknown",
    ),
    "hold while the capacity is unknown, before an event": (
        decision(Reason.HOLD, **CALM, policy="drain", wanted_workers=10, needed_workers=10, expected_times=1.5),
        "Holding 10 workers: backlog time 0.0 s, input 1 000/s (1.5 times in an expected event), throughput 1 000/s, "
        "capacity unknown: the event adds no workers",
    ),
    "hold while some workers are not ready": (
        decision(Reason.HOLD, **DRAIN | SAME | {"wanted_workers": 9, "keep_behind_s": 0.0}, ready_workers=9),
        f"Holding 12 workers: {RATES}; 9 of 12 workers are ready",
    ),
    "hold because the next smaller even size carries too little": (
        decision(
            Reason.HOLD,
            **DRAIN | SAME | {"keep_behind_s": 0.0, "needed_workers": 12},
            too_small_workers=6,
            too_small_capacity_records_per_s=900.0,
        ),
        f"Holding 12 workers: {RATES}; no backlog is expected within 15 min; 6 workers carry 900/s at most",
    ),
    "hold at the maximum, while a larger even size carries too little": (
        decision(
            Reason.HOLD,
            **DRAIN | SAME | {"keep_behind_s": 0.0, "needed_workers": 20, "max_workers": 12},
            too_small_workers=16,
            too_small_capacity_records_per_s=900.0,
        ),
        f"Holding 12 workers: {RATES}; no backlog is expected within 15 min",
    ),
    "hold because the next smaller even size leaves no headroom": (
        decision(
            Reason.HOLD,
            **CALM | DRAIN | SAME | {"keep_behind_s": None, "needed_workers": 12, "capacity_records_per_s": None},
            too_small_workers=1,
            too_small_capacity_records_per_s=1100.0,
        ),
        f"Holding 12 workers: {RATES}, capacity unknown; 1 worker carries 1 100/s at most, without headroom",
    ),
    "hold because the next smaller even size carries too little for an event": (
        decision(
            Reason.HOLD,
            **DRAIN | SAME | {"keep_behind_s": 0.0, "needed_workers": 12},
            expected_times=2.0,
            too_small_workers=6,
            too_small_capacity_records_per_s=1900.0,
        ),
        "Holding 12 workers: backlog time 0.0 s, input 1 000/s (2.0 times in an expected event), throughput 1 000/s; "
        "no backlog is expected within 15 min; 6 workers carry 1 900/s at most",
    ),
    "hold of a policy without an outlook": (
        decision(Reason.HOLD, **CALM, policy="netflix", wanted_workers=10, needed_workers=8),
        f"Holding 10 workers: {RATES}, capacity unknown; 8 would be enough",
    ),
    "hold within a step of the input": (
        decision(Reason.HOLD, **DRAIN | SAME, in_step=1.0),
        f"Holding 12 workers: {RATES}; a backlog time of at most 140 s is expected within 15 min. 16 would "
        "restore headroom; no scale-up before the next tick shows the new input in full",
    ),
    "hold within a step of the input, of which no end is in sight": (
        decision(Reason.HOLD, **DRAIN | SAME | {"keep_behind_s": 86_400.0}, max_workers=12, in_step=1.0),
        f"Holding 12 workers: {RATES}; a backlog time of over a day is expected within 15 min",
    ),
    "hold of an up during a rise": (
        decision(Reason.HOLD, **DRAIN | SAME | {"keep_behind_s": 0}, blocking_rise_records_per_s=75.0),
        f"Holding 12 workers: {RATES}; no backlog is expected within 15 min. 16 would restore headroom; the backlog "
        "time stays below 60 s without a rescale",
    ),
    "hold of a down that a rise prevents": (
        decision(
            Reason.HOLD,
            **DRAIN | {"keep_behind_s": 0, "required_workers": 12, "wanted_workers": 12},
            needed_workers=4,
            blocking_rise_records_per_s=75.0,
        ),
        f"Holding 12 workers: {RATES}; no backlog is expected within 15 min. 4 would be enough; no "
        "scale-down, because the input may rise by "
        "75/s before a scale-up can take effect",
    ),
    "hold without headroom": (
        decision(
            Reason.HOLD,
            **DRAIN | {"keep_behind_s": 0, "required_workers": 4, "spec_workers": 4, "wanted_workers": 4},
            needed_workers=6,
            utilization_ratio=0.92,
        ),
        f"Holding 4 workers at 92 % utilization: {RATES}; no backlog is expected within 15 min. "
        "6 would restore headroom; the backlog time stays below 60 s without a rescale",
    ),
    "hold without headroom while the backlog shrinks": (
        decision(
            Reason.HOLD,
            **DRAIN | {"keep_behind_s": 90, "required_workers": 4, "spec_workers": 4, "wanted_workers": 4},
            needed_workers=6,
        ),
        f"Holding 4 workers: {RATES}; a backlog time of at most 90 s is expected within 15 min. "
        "6 would restore headroom; the backlog time falls below 60 s without a rescale",
    ),
    "up at a throughput below the capacity": (
        decision(
            Reason.UP,
            **DRAIN | {"capacity_records_per_s": 1200.0, "keep_behind_s": 2000.0, "keep_after_s": 3000.0},
        ),
        f"Scaling up from 12 to 16 workers: {RATES}, capacity 1 200/s; at this throughput, in 50 min, 12 workers "
        "would have a backlog time of 33 min; 16 workers would be at most 45 s behind and catch up in 4 min",
    ),
    "up while the forecast exceeds the capacity": (
        decision(
            Reason.UP,
            **DRAIN | {"capacity_records_per_s": 1200.0, "keep_behind_s": 2000.0, "keep_after_s": 3000.0},
            forecast_input_rate_records_per_s=1300.0,
        ),
        "Scaling up from 12 to 16 workers: backlog time 0.0 s, input 1 000/s (forecast 1 300/s), throughput 1 000/s, "
        "capacity 1 200/s; in 50 min, 12 workers would have a backlog time of 33 min; 16 workers would be at most "
        "45 s behind and catch up in 4 min",
    ),
    "hold at a throughput below the capacity": (
        decision(
            Reason.HOLD,
            **DRAIN | {"capacity_records_per_s": 1200.0, "keep_behind_s": 2000.0, "keep_after_s": 3000.0} | SAME,
        ),
        f"Holding 12 workers: {RATES}, capacity 1 200/s; at this throughput the backlog time would reach 33 min "
        "in 50 min. 16 would restore headroom; no scale-up yet, because 12 workers could process more",
    ),
    "hold of a down at a throughput below the capacity": (
        decision(
            Reason.HOLD,
            **DRAIN
            | {"capacity_records_per_s": 3000.0, "keep_behind_s": 2000.0, "keep_after_s": 3000.0}
            | SAME
            | {"needed_workers": 5, "calm": 0.0, "short_backlog_time_s": 10.0},
        ),
        f"Holding 12 workers: {RATES}, capacity 3 000/s; at this throughput the backlog time would reach 33 min "
        "in 50 min. 5 would be enough; no scale-down, because the backlog has just grown",
    ),
    "hold with a backlog that is expected late": (
        decision(
            Reason.HOLD, **DRAIN | {"keep_behind_s": 20.0, "keep_after_s": 3000.0} | SAME | {"needed_workers": 12}
        ),
        f"Holding 12 workers: {RATES}; a backlog time of at most 20 s is expected within 50 min",
    ),
    "hold without headroom at the maximum": (
        decision(
            Reason.HOLD,
            **DRAIN | {"keep_behind_s": 0, "required_workers": 4, "spec_workers": 4, "wanted_workers": 4},
            needed_workers=6,
            max_workers=4,
        ),
        f"Holding 4 workers: {RATES}; no backlog is expected within 15 min",
    ),
    "hold of an up that a bound took back": (
        decision(Reason.HOLD, **DRAIN | {"required_workers": 12}, bound=Bound.COOLDOWN, spec_changed_age_s=60.0),
        f"Holding 12 workers: {RATES}; in 9 min, 12 workers would have a backlog time of 140 s; 16 workers would be at "
        "most 45 s behind and catch up in 4 min; in cooldown, 60 s after the last change",
    ),
    "hold of a down that a bound took back": (
        decision(Reason.HOLD, **CALM, wanted_workers=7, bound=Bound.WINDOW, window_workers=11),
        f"Holding 10 workers: {RATES}; the policy wants 7 workers; no smaller size yet: the load needed 11 "
        "workers within down_window_s",
    ),
    "hold of a down that does not pay yet": (
        decision(
            Reason.HOLD,
            **CALM,
            policy="drain",
            confidence="observed",
            capacity_records_per_s=1000.0,
            wanted_workers=7,
            bound=Bound.WINDOW,
            window_workers=10,
        ),
        f"Holding 10 workers: {RATES}; the policy wants 7 workers; not scaling down yet: "
        "the saving has not yet covered the cost of a rescale",
    ),
}


@pytest.mark.parametrize(("made", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_each_reason_has_its_sentence(made, expected):
    assert sentence(made) == expected


def test_every_reason_has_an_example():
    assert {made.reason for made, _ in SENTENCES.values()} == set(Reason)


KNOWN = {
    "min_workers": 3,
    "max_workers": 40,
    "partitions": 12,
    "allowed_workers": 6,
    "hottest_partition_ratio": 6.0,
    "utilization_ratio": 0.12,
    "window_workers": 14,
    "held_workers": 15,
    "committed_age_s": 300.0,
    "spec_changed_age_s": 90.0,
    "blocked_s": 1500.0,
}
CUTS = {
    Bound.NONE: "",
    Bound.WINDOW: "; no smaller size yet: the load needed 14 workers within down_window_s",
    Bound.LATCH: "; this replaces the target of 15 workers, decided 5 min ago, which the HPA has not enacted",
    Bound.MINUTE: "; dataflow decides once a minute",
    Bound.PAUSE: "; a pause blocks scale-ups",
    Bound.FAILOVER: "; no scale-down while a failover is active",
    Bound.EXPECTED: "; no scale-down before the expected event ends",
    Bound.MISSING_METRICS: "; no scale-down yet: metrics of a stage are missing or partitions became fewer",
    Bound.SINK: "; more workers will not help: the sink is unhealthy, repair it first",
    Bound.INEFFECTIVE: (
        "; more workers will not help: the last scale-up gained too little or its workers did not start; next"
        " attempt in 25 min"
    ),
    Bound.COOLDOWN: "; in cooldown, 90 s after the last change",
    Bound.BUDGET: "; no scale-down yet: the pauses of earlier ones have used up pause_budget_ratio",
    Bound.TRIAL: (
        "; the job is behind at 12 % utilization: more workers may not help, so only the smallest step is tried"
    ),
    Bound.HOT: "; more than 6 workers will not help: one partition receives 6.0 times the mean; split its keys",
    Bound.STEP: "; max_step_up_workers limits the change",
    Bound.MAX: "; the maximum is 10 workers",
    Bound.PARTITIONS: "; only 12 partitions, so no more workers",
    Bound.MIN: "; the minimum is 3 workers",
    Bound.MEMORY: "; max_partitions_per_worker requires 3 workers for 12 partitions",
}


@pytest.mark.parametrize("bound", Bound)
def test_each_bound_has_its_sentence(bound):
    assert sentence(decision(Reason.HOLD, **CALM, **KNOWN, bound=bound)) == (
        f"Holding 10 workers at 12 % utilization: {RATES}{CUTS[bound]}"
    )


def test_a_default_maximum_is_named_as_such():
    text = sentence(decision(Reason.HOLD, **CALM, **KNOWN, bound=Bound.MAX, max_by_default=1))
    assert text.endswith(
        "; maxReplicas is unknown, so the default maximum of 10 workers applies: check the HPA, or set max_workers"
    )


def test_workers_above_the_partitions_are_not_called_too_many():
    kept = SAME | {"needed_workers": 16, "max_workers": 10}  # later stages keep 12
    assert "10 would be enough" not in sentence(decision(Reason.HOLD, **DRAIN | kept))


def test_a_target_that_stands_is_waited_for():
    text = sentence(decision(Reason.HOLD, **CALM, **KNOWN | {"required_workers": 15}, bound=Bound.LATCH))
    assert text.endswith("; waiting for the HPA to enact the target of 15 workers, decided 5 min ago")


def test_a_target_that_is_not_enacted_is_named_once():
    """Of 37 workers at first; later 14 would do, but the latch holds the target."""
    running = Fluid(load=lambda at_s: 2000.0 if at_s < 400 else 1050.0)
    found = closed(running, 1500, book(policy="drain", latch_s=3000.0), follows=lambda at_s: False)[-1]
    assert (found.reason, found.bound) == (Reason.NOT_ENACTED, Bound.LATCH)
    assert sentence(found).endswith("; check the HPA's maxReplicas, tolerance and behavior, and the quota")


def test_an_idle_job_needs_no_partitions():
    ticks = [tick(at_s, job(**counts(22) | flow(at_s, 0), partitions=12)) for at_s in range(0, 61, 15)]
    assert sentence(last(ticks, book(policy="varga"))) == (
        "Scaling down from 22 to 12 workers at 0 % utilization: backlog time 0.0 s, input 0/s, throughput 0/s; only 12 "
        "partitions, so no more workers"
    )


@pytest.mark.parametrize(("held", "direction"), [(8, "scale-downs"), (12, "scale-ups")])
def test_a_pause_names_the_direction_in_which_a_gate_holds_the_target(held, direction):
    text = sentence(decision(Reason.STALE, sample_age_s=15.0, held_workers=held, bound=Bound.PAUSE))
    assert text.endswith(f"; a pause blocks {direction}")


def test_memory_that_requires_more_than_the_maximum_is_named():
    ticks = [tick(at_s, job(**counts() | flow(at_s), partitions=1000)) for at_s in range(0, 61, 15)]
    text = sentence(last(ticks, book(max_partitions_per_worker=20, max_workers=20)))
    assert text.endswith("; max_partitions_per_worker requires at least 20 workers for 1 000 partitions")


def test_an_hpa_that_is_off_is_not_waited_for():
    known = KNOWN | {"spec_workers": 0, "hpa_off": 1}
    text = sentence(decision(Reason.UP, **CALM | known, bound=Bound.LATCH))
    assert text.startswith("Requiring 10 workers for a scale target at 0 replicas, where the HPA is off: ")
    assert "waiting" not in text


@pytest.mark.parametrize(
    ("busy", "end"),
    [(0.1, "check the job"), (0.5, "check the job, or how often it commits, because its workers are 50 % busy")],
)
def test_rare_commits_may_look_like_a_job_that_stands_still(busy, end):
    assert sentence(decision(Reason.STUCK, backlog_records=9.0, utilization_ratio=busy)).endswith(end)


def test_the_step_that_limits_a_scale_down_is_named():
    text = sentence(decision(Reason.DOWN, **CALM, required_workers=8, wanted_workers=2, bound=Bound.STEP))
    assert text.endswith("; max_step_down_workers limits the change")


@pytest.mark.parametrize(
    ("of", "part"),
    [
        (decision(Reason.PAUSED, required_workers=1), "Holding 1 worker: "),
        (decision(Reason.IN_FLIGHT, ready_workers=1), ": 1 of 10 workers is ready;"),
        (decision(Reason.STUCK, backlog_records=1.0), ": 1 record waits and nothing is processed;"),
        (decision(Reason.DISCONTINUITY, backlog_records=1.0), "jumped to 1 record;"),
        (decision(Reason.HOLD, **CALM, stuck_backlog_records=1.0), "; 1 record waits in partitions whose"),
        (decision(Reason.HOLD, **CALM, partitions=1, bound=Bound.PARTITIONS), "; only 1 partition, so no more workers"),
        (
            decision(Reason.HOLD, policy="segments", partitions=1, wanted_workers=1, fault="x"),
            "1 worker for 1 segment; x",
        ),
    ],
    ids=["worker", "ready worker", "record", "jump", "stuck record", "partition", "segment"],
)
def test_one_is_singular(of, part):
    assert part in sentence(of)


def test_an_unhealthy_sink_explains_a_prevented_scale_down():
    text = sentence(decision(Reason.HOLD, **CALM, wanted_workers=8, bound=Bound.SINK))
    assert text.endswith("; no scale-down while the job is behind and its sink is unhealthy")


# the needed size and the partitions -> the end of the sentence
PARTITIONS = {
    "S0-16 cut": (
        {"bound": Bound.PARTITIONS, "required_workers": 8, "partitions": 8, "max_workers": 8, "wanted_workers": 14},
        "; only 8 partitions, so no more workers: the load needs 14 partitions",
    ),
    "S4-36 cut, two slots a worker": (
        {"bound": Bound.PARTITIONS, "required_workers": 4, "partitions": 8, "slots_per_worker": 2, "wanted_workers": 7},
        "; only 8 partitions, so no more workers: the load needs 14 partitions",
    ),
    "S2-18 limited by an old count of partitions": (
        {"bound": Bound.PARTITIONS, "required_workers": 8, "max_workers": 8, "wanted_workers": 14},
        "; only the partitions last known, so no more workers",
    ),
    "no cut": ({"required_workers": 8, "partitions": 9, "keep_up_workers": 13.2, "backlog_time_s": 61.0}, ""),
}


@pytest.mark.parametrize(("known", "expected"), PARTITIONS.values(), ids=PARTITIONS)
def test_the_sentence_names_the_needed_partitions_if_they_are_the_limit(known, expected):
    text = sentence(decision(Reason.HOLD, **CALM | {"backlog_time_target_s": 60.0, "spec_workers": 8} | known))
    assert (
        text.partition("; only")[1:] == ("; only", expected.removeprefix("; only")) if expected else "only" not in text
    )


SHOWN = {
    "none": (None, ", capacity unknown"),
    "carried": (None, ", capacity unknown"),
    "prior": (1200.0, ", capacity 1 200/s (configured)"),
    "estimated": (1200.0, ", capacity 1 200/s (estimated)"),
    "observed": (1200.0, ", capacity 1 200/s"),
}


@pytest.mark.parametrize("confidence", CONFIDENCE)
def test_the_capacity_is_shown_with_its_origin(confidence):
    capacity, expected = SHOWN[confidence]
    known = {"confidence": confidence, "capacity_records_per_s": capacity}
    assert sentence(decision(Reason.HOLD, **CALM, policy="drain", **known)) == f"Holding 10 workers: {RATES}{expected}"
    assert sentence(decision(Reason.HOLD, **CALM, policy="dataflow", **known)) == f"Holding 10 workers: {RATES}"


def test_a_capacity_that_the_throughput_shows_is_left_out():
    known = {"confidence": "observed", "capacity_records_per_s": CALM["throughput_records_per_s"]}
    assert sentence(decision(Reason.HOLD, **CALM, policy="drain", **known)) == f"Holding 10 workers: {RATES}"


@pytest.mark.parametrize(("ratio", "named"), [(0.2, True), (0.49, True), (0.5, False), (None, False)])
def test_s4_38_a_worker_half_as_fast_as_the_median_is_named(ratio, named):
    slow = f"; the slowest worker reaches {(ratio or 0) * 100:.0f} % of the median throughput: replace it"
    for reason in (Reason.UP, Reason.DOWN, Reason.HOLD, Reason.IDLE, Reason.NOT_ENACTED):
        assert sentence(decision(reason, **CALM, slowest_worker_ratio=ratio)).endswith(slow) == named
    assert "slowest" not in sentence(decision(Reason.STALE, sample_age_s=15, slowest_worker_ratio=ratio))


@pytest.mark.parametrize(
    ("busiest", "mean", "named"),
    [(1.0, 0.3, True), (0.9, 0.3, False), (1.0, 0.5, False), (None, 0.3, False), (1.0, None, False)],
)
def test_a_full_subtask_that_the_mean_hides_is_named(busiest, mean, named):
    known = {"utilization_ratio": mean, "busiest_subtask_ratio": busiest}
    full = "; one subtask is 100 % busy: spread its keys or partitions"
    assert sentence(decision(Reason.HOLD, **CALM, **known)).endswith(full) == named
    assert "subtask" not in sentence(decision(Reason.STALE, sample_age_s=15, **known))


@pytest.mark.parametrize(
    ("resources", "named"),
    [
        ({}, "at 90 % utilization"),
        ({"cpu_ratio": 0.9, "memory_ratio": 0.4}, "at 90 % CPU utilization"),
        ({"cpu_ratio": 0.4, "memory_ratio": 0.9}, "at 90 % memory utilization"),
        ({"network_ratio": 0.9}, "at 90 % network utilization"),
        ({"cpu_ratio": 0.4}, "at 90 % utilization"),
    ],
    ids=["busy time alone", "CPU", "memory", "network", "busy time above CPU"],
)
def test_the_resource_that_is_used_most_is_named(resources, named):
    assert f"Holding 10 workers {named}: " in sentence(
        decision(Reason.HOLD, **CALM, utilization_ratio=0.9, **resources)
    )


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_shows_the_fault(reason):
    text = sentence(decision(reason, **BEHIND, fault="backlog-adapter/pause: cannot be read"))
    assert text.endswith("backlog-adapter/pause: cannot be read")


numbers = st.one_of(st.none(), st.floats(0, 1e18))


@given(
    st.sampled_from(Reason),
    st.sampled_from(Bound),
    st.sampled_from(POLICIES),
    st.sampled_from(CONFIDENCE),
    st.fixed_dictionaries({}, optional=dict.fromkeys(NUMBERS, numbers)),
)
def test_no_sentence_says_none_or_nan(reason, bound, policy, confidence, known):
    fixed = {"workload": "shop/orders", "at_s": 0, "policy": policy, "confidence": confidence}
    text = sentence(Decision(**fixed, reason=reason, bound=bound, **known))
    assert text
    assert not {"None", "nan", "inf"} & set(text.replace(";", " ").replace(":", " ").replace(",", " ").split())


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unknown"), (0.0, "0/s"), (0.01, "below 0.05/s"), (0.05, "0.1/s"), (2.5, "2.5/s"), (1500.0, "1 500/s")],
)
def test_only_a_rate_of_0_is_shown_as_0(value, text):
    assert rate(value) == text
