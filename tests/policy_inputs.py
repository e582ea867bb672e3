"""Policy inputs and results in one line each, so that a test shows only the values that matter."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from builders import column, policy_input, rule_columns

from adapter.core.bounds import BOUNDS, Bound
from adapter.core.capacity import OBSERVED, SLOTS, Table
from adapter.core.clamps import BoundInputs, apply_bounds
from adapter.core.forecast import Fit
from adapter.core.limits import limits
from adapter.core.policies import beam_flink, dataflow, netflix, segments, varga
from adapter.core.policies.interface import PolicyInput
from adapter.core.state import WorkloadFacts

FORMULAS = {
    "dataflow": dataflow.size,
    "beam-flink": beam_flink.size,
    "varga": varga.size,
    "segments": segments.size,
    "netflix": netflix.size,
}
Numbers = float | Sequence[float]
UNFORESEEN = (np.nan, np.nan, np.nan)


def stage_input(*numbers: Numbers, **more: object) -> PolicyInput:
    """PolicyInput of one stage, or of several with sequences: workers, throughput, growth and backlog (default 0).

    more: fit (its a, b, c), sigma and fit_age_s; records (the table as (size, rate) pairs); otherwise as in
    builders.policy_input, with unknown partitions by default.
    """
    count = np.broadcast(*(np.atleast_1d(number) for number in numbers)).size
    a, b, c = (np.full(count, value, float) for value in more.pop("fit", UNFORESEEN))
    fit = Fit(a=a, b=b, c=c, sigma=np.where(np.isnan(c), np.nan, more.pop("sigma", 0.0)))
    age_s = np.full(count, more.pop("fit_age_s", 0.0))
    known = {"partitions": np.nan, "table": _table(count, more.pop("records", ()))} | more
    return replace(policy_input(*numbers, fit=fit, **known), fit_age_s=age_s)


def terms(policy: str, *numbers: Numbers, **more: object) -> tuple[float, float, float]:
    """The wanted size of one stage and its two terms."""
    policy_result = FORMULAS[policy](stage_input(*numbers, **more))
    return policy_result.wanted_workers[0], policy_result.keep_up_workers[0], policy_result.catch_up_workers[0]


def wanted(policy: str, *numbers: Numbers, **more: object) -> float:
    """The wanted size of one stage."""
    return terms(policy, *numbers, **more)[0]


def bounded(size: float, current: float, **rules: object) -> tuple[float, Bound]:
    """A size after the bounds of the rules alone, and the last bound that applied."""
    columns = rule_columns(1, **rules)
    range_ = limits(columns, workload_facts(), column(np.nan), column(current), column(np.nan))
    bound_inputs = {f.name: column(np.nan) if f.name.endswith("_workers") else np.array([False])
              for f in fields(BoundInputs)}  # fmt: skip
    found, cut = apply_bounds(column(size), column(current), columns, range_, BoundInputs(**bound_inputs))
    return found[0], BOUNDS[cut[0]]


def workload_facts(**known: float) -> WorkloadFacts:
    """The facts of one workload, unknown unless given."""
    return WorkloadFacts(**{f.name: column(known.get(f.name, np.nan)) for f in fields(WorkloadFacts)})


def joined(parts: Sequence[Any]) -> Any:
    """Several policy inputs as one, stage after stage."""
    first = parts[0]
    if is_dataclass(first):
        return type(first)(**{f.name: joined([getattr(part, f.name) for part in parts]) for f in fields(first)})
    if isinstance(first, Mapping):
        return {name: joined([part[name] for part in parts]) for name in first}
    return np.concatenate(parts, axis=-1) if isinstance(first, np.ndarray) else first


def _table(count: int, records: Sequence[tuple[float, float]]) -> Table:
    """The same observed records for every stage."""
    columns = np.full((4, SLOTS, count), np.nan)
    for slot, (size, rate) in enumerate(records):
        columns[:, slot] = np.array([size, rate, OBSERVED, 0.0])[:, None]
    sizes, rates, confidence, seen_at_s = (np.asarray(column, np.float64) for column in columns)
    return Table(sizes=sizes, rates=rates, confidence=confidence, seen_at_s=seen_at_s)
