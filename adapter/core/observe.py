"""State -> what is known at this tick: rates, signals, facts and parameters, as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from adapter.core import parameters
from adapter.core.capacity import utilization
from adapter.core.intake import first_known, laid, take, trimmed
from adapter.core.rates import Mask, mean_rate, robust_slope, since_reset
from adapter.core.rules import RuleBook
from adapter.core.samples import STAGE_SIGNALS, Array, IntArray, Samples
from adapter.core.signals import backlog_time, drain_time, input_rate
from adapter.core.state import COUNTED, HELD, LIMITING, State

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
    fast = trimmed(fast, samples.at_s - float(rules["rate_window_s"].max(initial=0.0)))
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
    from_s = np.maximum(fast.at_s[-1] - rules["rate_window_s"], settled_s)
    usable = (fast.at_s[:, None] >= from_s) & since_reset(fast.processed, fast.appended)
    least_s = rules["rate_window_s"] * _LEAST_SPAN_RATIO

    throughput = first_known(mean_rate(fast.at_s, fast.processed, usable, least_s), now["throughput_records_per_s"])
    arriving = first_known(mean_rate(fast.at_s, fast.appended, usable, least_s), now["input_rate_records_per_s"])
    growth = first_known(robust_slope(fast.at_s, fast.backlog, usable, least_s), arriving - throughput)
    lowest = np.min(np.where(usable & np.isfinite(fast.backlog), fast.backlog, np.inf), axis=0, initial=np.inf)
    return {
        "throughput_records_per_s": throughput,
        "growth_records_per_s": growth,
        "input_rate_records_per_s": first_known(arriving, input_rate(throughput, growth)),
        "backlog_records": now["backlog_records"],
        "lowest_backlog_records": np.where(np.isinf(lowest), np.nan, lowest),
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
        "drain_time_s": drain_time(backlog, capacity * workers, arriving),
        "lowest_backlog_time_s": backlog_time(found["lowest_backlog_records"], found["throughput_records_per_s"]),
        "utilization_ratio": utilization(found["measured_utilization_ratio"], throughput, workers, capacity),
        "worker_capacity_records_per_s": capacity,
    }
