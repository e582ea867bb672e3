"""Decision records: the inputs of decisions as flat columns, from which the same decisions can be made again.

A record has the inputs of one workload, for the stage that decided. `decide(decision_input_of(record))` returns the
same decision; `with_input` changes one input, to show its effect.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any

import numpy as np

from adapter.core.aggregation import pick
from adapter.core.capacity import SLOTS, TABLE_COLUMNS, Table, rate_at
from adapter.core.decide import DecisionResult, OtherStages
from adapter.core.decision_input import DecisionInput, ScaleUpBlockers, WorkloadStatus
from adapter.core.forecast import Fit
from adapter.core.gates import GateInputs
from adapter.core.limits import Range, limits
from adapter.core.policies.interface import PolicyInput
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array
from adapter.core.signals import LEVEL_RATIO, backlog_time
from adapter.core.state import WorkloadFacts

RecordColumns = Mapping[str, Array]
_PROPORTIONAL = (  # with the input
    "relayed_load_ratio",
    "latest_input_rate_records_per_s",
    "confirmed_input_rate_records_per_s",
    "input_rise_records_per_s2",
)
FIT = tuple(f.name for f in fields(Fit))
RULES = tuple(f.name for f in fields(RuleColumns))

_APART = ("rules", "table", "fit")  # these have their own columns
_PREFIXES: Mapping[type, str] = {
    PolicyInput: "policy_input",
    ScaleUpBlockers: "scale_up_blockers",
    GateInputs: "gate_inputs",
    Range: "range",
    WorkloadStatus: "workload_status",
}


def record_columns(inputs: DecisionInput, result: DecisionResult) -> dict[str, Array]:
    """The records of all workloads of a tick: name of an input -> shape (workloads,); a mask is 1 or 0."""
    of_stage = _columns_of(inputs.policy_input) | _columns_of(inputs.blockers)
    of_stage |= {f"fit.{name}": getattr(inputs.policy_input.fit, name) for name in FIT}
    for name in TABLE_COLUMNS:
        of_stage |= {f"table.{name}.{slot}": row for slot, row in enumerate(getattr(inputs.policy_input.table, name))}
    whole = _columns_of(inputs.gate_inputs) | _columns_of(inputs.range_) | _columns_of(inputs.status)
    whole |= {f"rules.{name}": getattr(inputs.status.rules, name) for name in RULES}
    whole |= {f"workload_status.{f.name}": getattr(result.others, f.name) for f in fields(OtherStages)}
    picked = {name: pick(column.astype(np.float64, copy=False), result.stage) for name, column in of_stage.items()}
    return picked | {name: column.astype(np.float64, copy=False) for name, column in whole.items()}


def decision_input_of(columns: RecordColumns) -> DecisionInput:
    """The decision inputs of records; each row is a workload with one stage."""
    count = len(columns["workload_status.current_workers"])
    rules = _rules(columns)
    return DecisionInput(
        workload_index=np.arange(count),
        sized=np.isfinite(columns["policy_input.rising"]),  # NaN if no stage decided
        policy_input=PolicyInput(
            **_read(columns, PolicyInput),
            fit=Fit(**{name: columns[f"fit.{name}"] for name in FIT}),
            table=table_in(columns),
            rules=rules,
        ),
        blockers=ScaleUpBlockers(**_read(columns, ScaleUpBlockers)),
        gate_inputs=GateInputs(**_read(columns, GateInputs), rules=rules),
        range_=Range(**_read(columns, Range)),
        status=WorkloadStatus(**_read(columns, WorkloadStatus), rules=rules),
    )


def _rules(columns: RecordColumns) -> RuleColumns:
    return RuleColumns(**{name: columns[f"rules.{name}"] for name in RULES})


def table_in(columns: RecordColumns) -> Table:
    """The capacity tables of records."""
    rows = {name: np.array([columns[f"table.{name}.{slot}"] for slot in range(SLOTS)]) for name in TABLE_COLUMNS}
    return Table(**rows)


def with_input(columns: RecordColumns, name: str, value: Array) -> dict[str, Array]:
    """The records with one of INPUTS replaced, and the inputs that depend on it."""
    return dict(columns) | INPUTS[name].follows(columns, value)


def _columns_of(part: Any) -> dict[str, Any]:
    return {f"{_PREFIXES[type(part)]}.{f.name}": getattr(part, f.name) for f in _plain(type(part))}


def _read(columns: RecordColumns, part: type) -> dict[str, Any]:
    prefix = _PREFIXES[part]
    return {
        f.name: columns[f"{prefix}.{f.name}"] == 1 if f.type == Mask else columns[f"{prefix}.{f.name}"]
        for f in _plain(part)
    }


def _plain(part: type) -> list[Field[Any]]:
    return [f for f in fields(part) if f.name not in _APART]


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a decision that a user can vary."""

    read: Callable[[RecordColumns], Array]  # its value in records
    follows: Callable[[RecordColumns, Array], dict[str, Array]]  # the columns that change with a new value


def _column(name: str) -> Input:
    """An input in one column, on which no other column depends."""
    return Input(lambda columns: columns[name], lambda _, value: {name: value})


def _ratio(value: Array, was: Array) -> Array:
    """A new value / the present one; 1 without a present one."""
    return np.where(was > 0, value / np.where(was > 0, was, 1.0), 1.0)


def _input_rate(columns: RecordColumns, value: Array) -> dict[str, Array]:
    ratio = _ratio(value, columns["policy_input.input_rate_records_per_s"])
    curve = {f"fit.{name}": columns[f"fit.{name}"] * ratio for name in FIT}
    throughput = columns["policy_input.throughput_records_per_s"]
    growth = value - throughput
    scaled = {f"policy_input.{name}": columns[f"policy_input.{name}"] * ratio for name in _PROPORTIONAL}
    changed = {
        "policy_input.input_rate_records_per_s": value,
        "policy_input.growth_records_per_s": growth,
        "policy_input.rising": (growth > columns["rules.growth_noise_ratio"] * throughput).astype(np.float64),
        "policy_input.level": columns["policy_input.level"] * (growth <= LEVEL_RATIO * throughput),
    }
    return curve | scaled | changed


def _backlog(columns: RecordColumns, value: Array) -> dict[str, Array]:
    time_s = backlog_time(value, columns["policy_input.throughput_records_per_s"])
    level = (columns["policy_input.level"] > 0) & (time_s < columns["rules.backlog_time_target_s"])
    short_s, was_s = columns["rules.short_backlog_time_s"], columns["policy_input.lowest_backlog_time_s"]
    # A long backlog that did not count as saturation is of workers that were not warm, whatever the backlog.
    cold = (was_s > short_s) & (columns["policy_input.level"] == 0) & (columns["policy_input.saturated"] == 0)
    return {
        "policy_input.backlog_records": value,
        "policy_input.backlog_time_s": time_s,
        "policy_input.lowest_backlog_time_s": time_s,
        "policy_input.saturated": ((time_s > short_s) & ~level & ~cold).astype(np.float64),
        "policy_input.level": level.astype(np.float64),
    }


def _capacity(columns: RecordColumns) -> Array:
    workers = columns["policy_input.workers"]
    return rate_at(table_in(columns), workers, columns["rules.scaling_exponent"])


def _with_capacity(columns: RecordColumns, value: Array) -> dict[str, Array]:
    ratio = _ratio(value, _capacity(columns))
    return {f"table.rates.{slot}": columns[f"table.rates.{slot}"] * ratio for slot in range(SLOTS)}


def _limit(name: str) -> Callable[[RecordColumns, Array], dict[str, Array]]:
    """A limit changes the whole range. A record does not have the HPA's limits behind a narrower limit."""

    def follows(columns: RecordColumns, value: Array) -> dict[str, Array]:
        rules = _rules(columns)
        if name in RULES:
            rules = replace(rules, **{name: value})
        facts = {
            "partitions": columns["policy_input.partitions"],
            "max_workers": columns["range.allowed"],
            "min_workers": np.where(columns["range.by_memory"] == 1, np.nan, columns["range.least"]),
        }
        unknown = dict.fromkeys((f.name for f in fields(WorkloadFacts)), np.full_like(value, np.nan))
        relayed, current = columns["range.relayed"], columns["workload_status.current_workers"]
        target = columns["workload_status.target_workers"]
        range_ = limits(rules, WorkloadFacts(**unknown | facts | {name: value}), relayed, current, target)
        moved = {f"range.{f.name}": getattr(range_, f.name).astype(np.float64) for f in fields(Range)}
        own = {"policy_input.partitions": value} if name == "partitions" else {}
        return moved | own | {"policy_input.most_workers": range_.most}

    return follows


INPUTS: Mapping[str, Input] = {
    "input_rate_records_per_s": Input(lambda columns: columns["policy_input.input_rate_records_per_s"], _input_rate),
    "backlog_records": Input(lambda columns: columns["policy_input.backlog_records"], _backlog),
    "capacity_records_per_s": Input(_capacity, _with_capacity),
    "utilization_ratio": _column("policy_input.utilization_ratio"),
    "partitions": Input(lambda columns: columns["policy_input.partitions"], _limit("partitions")),
    "max_workers": Input(lambda columns: columns["range.allowed"], _limit("max_workers")),
    "min_workers": Input(lambda columns: columns["range.least"], _limit("min_workers")),
    "window_workers": _column("workload_status.peak_workers"),
    "held_workers": _column("workload_status.target_workers"),
    "backlog_time_target_s": _column("rules.backlog_time_target_s"),
    "time_to_reduce_backlog_s": _column("rules.time_to_reduce_backlog_s"),
}
