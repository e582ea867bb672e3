"""The policies: the name, the needed signals and the wording of each. Its formula is `size` in its own module.

To add one, write that module and add an entry to POLICIES. Nothing outside this folder names a policy. This file does
not import numpy, because the configuration and `serve` read it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

LEAST_HORIZON_S = 900.0  # of an outlook
_LOAD = ("processed_records", "throughput_records_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A signal that a policy reads."""

    signals: tuple[str, ...]  # any one of them is enough
    without: str = ""  # what the policy does without it; "" if it cannot decide at all


_THROUGHPUT, _BACKLOG = Need(signals=_LOAD), Need(signals=("backlog_records",))
_UTILIZATION = ("cpu_ratio", "utilization_ratio")
_NEEDS_OF_TERMS = (
    _THROUGHPUT,
    _BACKLOG,
    Need(signals=_UTILIZATION, without="it scales down only by the capacity it has learned"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy as the rest of core sees it."""

    name: str
    module: str  # of its formula: size(PolicyInput) -> PolicyResult
    needs: tuple[Need, ...]
    parameters: tuple[str, ...] = ()  # of Rules that only the policies that list them use
    defaults: Mapping[str, float] = field(default_factory=dict)  # of parameters that are unset otherwise
    # What it does without a parameter, in place of its default or in addition to it.
    unset: Mapping[str, str] = field(default_factory=dict)
    backlog_time_target: str = "time_to_reduce_backlog_s"  # the parameter that says how long a backlog may last
    published: bool = True  # a published text defines it; with `safety: off` only that text applies
    checks_the_job: bool = False  # its text stops for failures, deployments and an unhealthy sink
    follows_partitions: bool = False  # it sizes by the number of partitions and reads nothing else
    reads_capacity: bool = False  # it sizes by the learned capacity
    adds_terms: bool = False  # its size is keep-up plus catch-up, otherwise the larger of them
    spreads_evenly: bool = False  # it rounds to a size over which partitions spread evenly
    decides_each_minute: bool = False  # between two points of the forecast its target stands
    separate_cooldowns: bool = False  # cooldown_up_s counts from a scale-up; a scale-down blocks only the warm-up
    waits_until_warm: bool = False  # no scale-up until new workers are warm, no scale-down before it pays


POLICIES = (
    Policy(
        name="drain",
        module="drain",
        needs=(_THROUGHPUT, _BACKLOG),
        parameters=(
            "min_spare_workers",
            "forecast_horizon_s",
            "forecast_error_ratio",
            "forecast_cap_ratio",
            "probe_ratio",
        ),
        defaults={
            "down_window_s": 3600.0,
            "cooldown_down_s": 600.0,
            "latch_s": 900.0,
            "pause_budget_ratio": 0.01,
            "low_cpu_ratio": 0.2,
            "ineffective_block_s": 1800.0,
        },
        unset={
            **dict.fromkeys(("down_window_s", "cooldown_down_s"), "less with a `rescale_worth_s` below 60"),
            "rescale_worth_s": "6 × `rescale_pause_s`, but at most 180; or 2.5 × `rescale_pause_s` if that is more; "
            "always 60 to 300; with both prices, more",
            "cooldown_up_s": "waits until the new workers are warm and measured",
        },
        backlog_time_target="backlog_time_target_s",
        published=False,
        reads_capacity=True,
        spreads_evenly=True,
        waits_until_warm=True,
    ),
    Policy(
        name="dataflow",
        module="dataflow",
        needs=_NEEDS_OF_TERMS,  # S3-12
        parameters=(
            "quanta",
            "down_cpu_limit_ratio",
        ),
        adds_terms=True,
        spreads_evenly=True,
    ),
    Policy(
        name="beam-flink",
        module="beam_flink",
        needs=_NEEDS_OF_TERMS,  # S0-11, S0-12
        parameters=(
            "up_backlog_time_s",
            "up_cpu_ratio",
            "down_cpu_ratio",
            "down_cpu_desired_ratio",
        ),
        adds_terms=True,
    ),
    Policy(
        name="varga",
        module="varga",
        needs=(
            Need(signals=_UTILIZATION),  # S1-15
            _THROUGHPUT,  # S1-12
            _BACKLOG,  # S1-13
        ),
        parameters=(
            "lag_threshold_records",
            "varga_utilization_ratio",
        ),
        defaults={"down_window_s": 300.0, "cooldown_up_s": 120.0, "cooldown_down_s": 120.0},
    ),
    Policy(
        name="segments",
        module="segments",
        needs=(Need(signals=("partitions",)),),  # S2-01
        parameters=("segments_per_worker",),
        follows_partitions=True,
    ),
    Policy(
        name="netflix",
        module="netflix",
        needs=(
            _THROUGHPUT,
            _BACKLOG,
            Need(
                signals=_UTILIZATION, without="only lag triggers a scale-up, and a new size may be fuller than intended"
            ),
        ),  # S4-10, S4-27
        parameters=(
            "significant_backlog_time_s",
            "safe_utilization_ratio",
            "sized_utilization_ratio",
            "catch_up_s",
            "no_backlog_time_s",
            "forecast_error_ratio",
            "forecast_cap_ratio",
        ),
        defaults={"cooldown_up_s": 300.0, "cooldown_down_s": 1800.0, "max_step_up_workers": 50.0},
        checks_the_job=True,  # S4-09, S4-10
        reads_capacity=True,
        spreads_evenly=True,
        decides_each_minute=True,  # S4-07
        separate_cooldowns=True,  # S4-29
    ),
)
NAMES = tuple(policy.name for policy in POLICIES)
DEFAULT = POLICIES[0].name
_BY_NAME = {policy.name: policy for policy in POLICIES}


def policy_of(name: str) -> Policy:
    """The policy of that name; a policy without properties for an unknown name of another release."""
    return _BY_NAME.get(name) or Policy(name=name, module="", needs=())


def policies_using(parameter: str) -> tuple[str, ...]:
    """The policies that use a parameter; none for a parameter of all policies."""
    return tuple(policy.name for policy in POLICIES if parameter in policy.parameters)


def describe(parameter: str, meaning: str) -> str:
    """The meaning of a parameter of Rules, with the policies that it concerns and what each does while it is unset."""
    concerned = " and ".join(policies_using(parameter))
    unset = ", ".join(f"{policy.name} {done}" for policy in POLICIES if (done := _while_unset(policy, parameter)))
    return f"{concerned}: {meaning}" if concerned else f"{meaning}; unset, {unset}" if unset else meaning


def _while_unset(policy: Policy, parameter: str) -> str:
    unit = " s" if parameter.endswith("_s") else ""
    default = policy.defaults.get(parameter)
    parts = ("" if default is None else f"uses {default:g}{unit}", policy.unset.get(parameter, ""))
    return ", ".join(part for part in parts if part)
