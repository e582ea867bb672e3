"""State -> what is known at this tick: rates, signals, facts and parameters, as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from adapter.core import parameters
from adapter.core.capacity import utilization
from adapter.core.intake import laid, take, trimmed
from adapter.core.rates import Mask, counter_rate, rising, robust_slope, since_reset
from adapter.core.rules import RuleBook
from adapter.core.samples import STAGE_SIGNALS, Array, IntArray, Samples, first_known
from adapter.core.signals import backlog_time, drain_time, input_rate
from adapter.core.state import COUNTED, HELD, LIMITING, State

_FAR_WINDOWS = 2.0  # so far back is looked for the steps of a counter that has too few of them in one window
_LEAST_SPAN_RATIO = 0.5  # a rate over less than half its window says too little


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """All that is known at one tick.

    state: with this tick's samples in it. owner: (stages,) the workload of each stage. counting: (stages,) it was seen
    with throughput and backlog, so it has a say. rules, facts, workers: (workloads,).
    stage_rules, signals, rates_known: (stages,).
    """

    at_s: float
    state: State
    owner: IntArray
    counting: Mask
    rules: Mapping[str, Array]
    facts: Mapping[str, Array]
    workers: Array
    signals: Mapping[str, Array]
    rates_known: Mask
    stage_rules: Mapping[str, Array]


def observe(state: State, samples: Samples, book: RuleBook) -> Tick:
    """Take the samples in and derive all that the gates and policies look at."""
    state = take(state, samples, book)
    names, fast = state.slow.workloads, state.fast
    place = {name: number for number, name in enumerate(names)}
    owner = np.array([place[workload] for workload, _ in state.slow.stages], dtype=np.int64)
    facts = dict(zip((*COUNTED, *LIMITING), (*fast.counted, *state.slow.limiting), strict=True))
    rules = parameters.columns(names, facts["fleet"], book)
    fast = trimmed(fast, samples.at_s - _FAR_WINDOWS * float(rules["rate_window_s"].max(initial=0.0)))
    workers = first_known(facts["ready_workers"], facts["workers"], facts["spec_workers"])

    state = replace(state, fast=fast)
    now = {name: laid([samples.stage(name)], samples.stages, state.slow.stages)[0] for name in STAGE_SIGNALS}
    stage_rules = {name: column[owner] for name, column in rules.items()}
    found = _rates(state, now, stage_rules, owner)
    told = np.isfinite(first_known(now["processed_records"], now["throughput_records_per_s"]) + now["backlog_records"])
    seen_at_s = np.where(told, samples.at_s, fast.seen_at_s)
    expired = samples.at_s - seen_at_s > stage_rules["error_after_s"]
    latest = np.array([first_known(found[name], was) for name, was in zip(HELD, fast.signals, strict=True)])
    held = np.where(expired, np.nan, latest)
    state = replace(state, fast=replace(fast, signals=held, seen_at_s=seen_at_s))
    return Tick(
        at_s=samples.at_s,
        state=state,
        owner=owner,
        counting=np.isfinite(seen_at_s),
        rules=rules,
        stage_rules=stage_rules,
        facts=facts,
        workers=workers,
        signals=_derived(state, found, workers[owner], stage_rules["worker_capacity_records_per_s"]),
        rates_known=np.isfinite(
            found["throughput_records_per_s"] + found["growth_records_per_s"] + now["backlog_records"]
        ),
    )


def _rates(state: State, now: Mapping[str, Array], rules: Mapping[str, Array], owner: IntArray) -> dict[str, Array]:
    """Rates over the clean points of each stage's window: after the last reset, and after the last change settled."""
    fast = state.fast
    settled_s = np.nan_to_num(fast.changed_at_s[owner] + rules["settle_s"], nan=-np.inf)
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
    # The counters know better: a backlog is a saw where offsets are committed in steps, and its slope that of a tooth.
    growth = first_known(arriving - throughput, robust_slope(fast.at_s, fast.backlog, near, least_s))
    seen = np.where(near, fast.backlog, np.nan)
    return {
        "throughput_records_per_s": throughput,
        "growth_records_per_s": growth,
        "input_rate_records_per_s": first_known(arriving, input_rate(throughput, growth)),
        "backlog_records": now["backlog_records"],
        # Without two points of a backlog the rates alone can tell.
        "rising": rising(fast.at_s, fast.backlog, near) | (np.isfinite(seen).sum(axis=0) < 2),
        "lowest_backlog_records": np.fmin.reduce(seen, axis=0),
        "highest_backlog_records": np.fmax.reduce(seen[:-1], axis=0, initial=np.nan),
        "measured_utilization_ratio": now["utilization_ratio"],
    }


def _derived(state: State, found: Mapping[str, Array], workers: Array, given_capacity: Array) -> dict[str, Array]:
    """What was found or is held, and what follows from it."""
    signals = dict(zip(HELD, state.fast.signals, strict=True))
    capacity = first_known(given_capacity, state.slow.worker_capacity)
    throughput, backlog = signals["throughput_records_per_s"], signals["backlog_records"]
    arriving = signals["input_rate_records_per_s"]
    return signals | {
        "backlog_time_s": backlog_time(backlog, throughput),
        "highest_backlog_records": found["highest_backlog_records"],
        "rising": found["rising"],
        "drain_time_s": drain_time(backlog, capacity * workers, arriving),
        "lowest_backlog_time_s": backlog_time(found["lowest_backlog_records"], found["throughput_records_per_s"]),
        "utilization_ratio": utilization(found["measured_utilization_ratio"], throughput, backlog, capacity * workers),
        "worker_capacity_records_per_s": capacity,
    }
