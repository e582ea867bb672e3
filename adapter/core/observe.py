"""State -> what is known at this tick: rates, signals, facts and parameters, as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from adapter.core import parameters
from adapter.core.gates import settle_s
from adapter.core.grouping import smallest
from adapter.core.ingest import HEALTH, failed, reindex, take, trimmed
from adapter.core.rates import Mask, counter_rate, last_rate, rising, robust_slope, since_reset, stalled
from adapter.core.rules import POLICIES, RuleBook
from adapter.core.samples import STAGE_SIGNALS, WHOLE, Array, IntArray, Samples, first_known
from adapter.core.signals import backlog_time, gated_lag_change, input_rate, relative_lag_change
from adapter.core.state import COUNTED, HELD, LIMITING, State

_FAR_WINDOWS = 2.0  # so far back is looked for the steps of a counter that has too few of them in one window
_LEAST_SPAN_RATIO = 0.5  # a rate over less than half its window says too little
_USUAL_S = 120.0  # so long a backlog is no news
_JUMP = 10.0  # a backlog that is so many times the last one, in one tick, is looked at twice


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """All that is known at one tick.

    state: with this tick's samples in it. workload_index: (stages,) the workload of each stage.
    plain: every workload has one stage, in the same order, and none is visible. counting: (stages,) it was seen
    with throughput and backlog, or partitions stand alone, so it has a say. now: what this tick's samples say of each
    stage. rules, facts, workers: (workloads,); partitions are the last known, counted partitions_age_s ago; throughput
    and backlog were seen load_age_s ago. alone: (workloads,) the policy follows the partitions, and nobody tells more.
    complaints: workload -> why its overrides do not count. stage_rules, signals, rates_known, discontinuous: (stages,).
    """

    at_s: float
    state: State
    workload_index: IntArray
    plain: bool
    counting: Mask
    alone: Mask
    rules: Mapping[str, Array]
    complaints: Mapping[str, str]
    facts: Mapping[str, Array]
    workers: Array
    now: Mapping[str, Array]
    signals: Mapping[str, Array]
    rates_known: Mask
    discontinuous: Mask
    stage_rules: Mapping[str, Array]


def observe(state: State, samples: Samples, book: RuleBook) -> Tick:
    """Take the samples in and derive all that the gates and policies look at."""
    state = take(state, samples, book)
    names, fast = state.slow.workloads, state.fast
    workload_index, plain = _workload_index(names, state.slow.stages)
    facts = dict(zip((*COUNTED, *LIMITING), (*fast.counted, *state.slow.limiting), strict=True))
    facts["bad_annotations"] = reindex([samples.whole("bad_annotations")], samples.workloads, names)[0]
    overrides = dict(zip(state.slow.overridden, state.slow.overrides, strict=True))
    given = parameters.columns(names, facts["fleet"], book, samples.at_s, overrides)
    rules = given.values
    facts["partitions_age_s"] = samples.at_s - fast.partitions_seen_at_s
    silent = ~(samples.at_s - fast.health_seen_at_s <= rules["error_after_s"])
    facts |= {name: np.where(silent, np.nan, facts[name]) for name in HEALTH}
    state = failed(state, samples, rules)
    fast = trimmed(fast, samples.at_s - _FAR_WINDOWS * float(rules["rate_window_s"].max(initial=0.0)))

    state = replace(state, fast=fast)
    told = reindex([samples.stage(name) for name in STAGE_SIGNALS], samples.stages, state.slow.stages)
    now = dict(zip(STAGE_SIGNALS, told, strict=True))
    stage_rules = rules if plain else {name: column[workload_index] for name, column in rules.items()}
    found = _rates(state, now, stage_rules, workload_index)
    seen = np.isfinite(first_known(now["processed_records"], now["throughput_records_per_s"]) + now["backlog_records"])
    seen_at_s = np.where(seen, samples.at_s, fast.seen_at_s)
    facts["load_age_s"] = samples.at_s - smallest(seen_at_s, workload_index, len(names))
    counted = np.isfinite(facts["partitions_age_s"])
    alone = follows_partitions(rules) & counted & ~(facts["load_age_s"] <= rules["error_after_s"])
    expired = samples.at_s - seen_at_s > stage_rules["error_after_s"]
    latest = np.array([first_known(found[name], was) for name, was in zip(HELD, fast.signals, strict=True)])
    held = np.where(expired, np.nan, latest)
    workers = first_known(facts["ready_workers"], facts["workers"], facts["spec_workers"])
    state = replace(state, fast=replace(fast, signals=held, seen_at_s=seen_at_s))
    known = found["throughput_records_per_s"] + found["growth_records_per_s"] + now["backlog_records"]
    return Tick(
        at_s=samples.at_s,
        state=state,
        workload_index=workload_index,
        plain=plain,
        counting=np.isfinite(seen_at_s) | alone[workload_index],
        alone=alone,
        rules=rules,
        complaints=given.complaints,
        stage_rules=stage_rules,
        facts=facts,
        workers=workers,
        now=now,
        signals=_derived(state, now | found, stage_rules),
        rates_known=np.isfinite(known),
        discontinuous=_discontinuous(state, found, stage_rules),
    )


def follows_partitions(rules: Mapping[str, Array]) -> Mask:
    """Whether the policy sizes by the partitions and by nothing else (S2-17)."""
    segments: Mask = rules["policy"] == POLICIES.index("segments")
    return segments


@lru_cache(maxsize=64)
def _workload_index(workloads: tuple[str, ...], stages: tuple[tuple[str, str], ...]) -> tuple[IntArray, bool]:
    """The workload of each stage, and whether each workload is one stage that is the whole of it."""
    place = {name: number for number, name in enumerate(workloads)}
    workload_index = np.array([place[workload] for workload, _ in stages], dtype=np.int64)
    whole = all(stage == WHOLE for _, stage in stages)
    return workload_index, whole and np.array_equal(workload_index, np.arange(len(workloads)))


def _rates(
    state: State, now: Mapping[str, Array], rules: Mapping[str, Array], workload_index: IntArray
) -> dict[str, Array]:
    """Rates over the clean points of each stage's window: after the last reset, and after the last change settled."""
    fast = state.fast
    settled_s = np.nan_to_num(
        np.fmax(fast.changed_at_s, fast.disturbed_at_s)[workload_index] + settle_s(rules), nan=-np.inf
    )
    window_s, at_s = rules["rate_window_s"], fast.at_s[:, None]
    far = (at_s >= np.maximum(at_s[-1] - _FAR_WINDOWS * window_s, settled_s)) & since_reset(
        fast.processed, fast.appended
    )
    near = far & (at_s >= at_s[-1] - window_s)
    least_s = window_s * _LEAST_SPAN_RATIO

    processed = counter_rate(fast.at_s, fast.processed, near, far, least_s)
    appended = counter_rate(fast.at_s, fast.appended, near, far, least_s)
    throughput = first_known(processed, now["throughput_records_per_s"])
    arriving = first_known(appended, now["input_rate_records_per_s"])
    # What arrives in a partition that is stuck waits for ever, whoever is there: it is no growth.
    sized = np.where(now["stuck_backlog_records"] > 0, np.nan, arriving)
    # The counters know better: a backlog is a saw where offsets are committed in steps, and its slope that of a tooth.
    growth = sized - throughput
    sloped = np.isnan(growth)
    growth[sloped] = robust_slope(fast.at_s, fast.backlog[:, sloped], near[:, sloped], least_s[sloped])
    seen = np.where(near, fast.backlog, np.nan)
    return {
        "throughput_records_per_s": throughput,
        "growth_records_per_s": growth,
        "input_rate_records_per_s": first_known(sized, input_rate(throughput, growth)),
        "latest_input_rate_records_per_s": last_rate(fast.at_s, fast.appended, near),
        "latest_throughput_records_per_s": last_rate(fast.at_s, fast.processed, near),
        "rose": fast.processed[-1] > fast.processed[-2]
        if len(fast.at_s) > 1
        else np.zeros(len(workload_index), dtype=bool),
        "stalled": stalled(fast.processed, far) & (fast.backlog[-1] > 0),
        "backlog_records": fast.backlog[-1],
        # Without two points of a backlog the rates alone can tell.
        "rising": rising(fast.at_s, fast.backlog, near) | (np.isfinite(seen).sum(axis=0) < 2),
        "lowest_backlog_records": np.fmin.reduce(seen, axis=0),
        "highest_backlog_records": np.fmax.reduce(seen[:-1], axis=0, initial=np.nan),
        "measured_utilization_ratio": now["utilization_ratio"],
        "hottest_partition_ratio": now["hottest_partition_ratio"],
        "least_partition_backlog_records": np.fmin.reduce(np.where(near, fast.partition, np.nan), axis=0),
    }


def _discontinuous(state: State, found: Mapping[str, Array], rules: Mapping[str, Array]) -> Mask:
    """Whether a backlog fell without being processed, or rose to a multiple between two ticks.

    What deletes or resets makes such a step (retention, an offset set back): it is believed when the next tick says
    the same.
    """
    throughput, growth, points = found["throughput_records_per_s"], found["growth_records_per_s"], state.fast.backlog
    fell = throughput + growth < -rules["growth_noise_ratio"] * throughput
    if len(points) < 2:
        return fell
    usual = np.maximum(points[-2], throughput * _USUAL_S)
    jumped: Mask = fell | (points[-1] > _JUMP * usual)
    return jumped


def _derived(state: State, found: Mapping[str, Array], rules: Mapping[str, Array]) -> dict[str, Array]:
    """What was found or is held, and what follows from it; what follows from the capacity is not known yet.

    The backlog is all that waits; `due` is what workers can do something about.
    """
    signals = dict(zip(HELD, state.fast.signals, strict=True))
    throughput, due = signals["throughput_records_per_s"], signals["backlog_records"]
    growth, rates_now = signals["growth_records_per_s"], found["throughput_records_per_s"]
    backlog = due + np.nan_to_num(found["stuck_backlog_records"])
    return signals | {
        "backlog_records": backlog,
        "backlog_time_s": backlog_time(backlog, throughput),
        "due_backlog_records": due,
        "due_backlog_time_s": backlog_time(due, throughput),
        "highest_backlog_records": found["highest_backlog_records"],
        "least_partition_backlog_records": found["least_partition_backlog_records"],
        "latest_input_rate_records_per_s": found["latest_input_rate_records_per_s"],
        "rising": found["rising"],
        "stalled": found["stalled"],
        "rose": found["rose"],
        "latest_throughput_records_per_s": found["latest_throughput_records_per_s"],
        "relative_lag_change_ratio": gated_lag_change(
            relative_lag_change(throughput, growth), backlog, rules["lag_threshold_records"]
        ),
        "lowest_backlog_time_s": backlog_time(found["lowest_backlog_records"], rates_now),
    }
