"""Run the adapter's policies on simulated jobs, with the `advance` function of the live pipeline."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from adapter.config.faults import suggestion
from adapter.config.settings import relations
from adapter.core.engine import advance
from adapter.core.parameters import allowed, allowed_values
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import WHOLE, Array, Samples
from adapter.core.state import EMPTY
from adapter.errors import ConfigError
from adapter.simulator import fluid
from adapter.simulator.profiles import TICK_S, Profile

_NUMBERS = [  # parameters that an operator may vary
    setting.name for setting in fields(Rules) if "one_of" not in setting.metadata and "hidden" not in setting.metadata
]
_ALL = "; `backlog-adapter schema` lists the parameters as RuleSettings"
DEFAULTS = "defaults"
# The rules of what a rescale costs and of how late metrics are, which a profile knows.
_COSTS = {
    name: getattr(Rules(), name)
    for name in ("rescale_pause_s", "replay_s", "warm_up_s", "worker_start_s", "metric_delay_s")
}
EPOCH_S = 1_750_000_000.0  # Unix seconds of the first step of a load without a date


def policy_rules(policy: str, profile: Profile, given: Rules | None = None) -> Rules:
    """The rules of a job whose operator has configured the cost of a rescale and the delay of metrics.

    policy: as in with_policy, where "name:defaults" knows neither of the two and has the defaults.
    given: rules to use instead of those of the profile, except the maximum of workers.
    """
    return with_policy(policy, replace(given or _rules_of(profile), max_workers=profile.max_workers))


@lru_cache(maxsize=1024)  # jobs with the same rules share one object
def with_policy(policy: str, rules: Rules) -> Rules:
    """The rules with a policy: its name, or "name:parameter=number+parameter=number".

    Raises ConfigError for an unknown parameter.
    """
    name, _, text = policy.partition(":")
    settings = [word for word in text.split("+") if word]
    if DEFAULTS in settings:
        rules = replace(rules, **_COSTS)
    given_by_name = dict(_setting(policy, word) for word in settings if word != DEFAULTS)
    found = replace(rules, **{"policy": name} | given_by_name)
    if faults := [f"{policy}: {fault}" for fault in _contradictions(found, given_by_name)]:
        raise ConfigError(faults)
    return found


def _contradictions(rules: Rules, given: Collection[str]) -> Iterator[str]:
    """The faults that the configuration would refuse, of the given parameters. max_workers caps the others here."""
    for names, fault in relations(asdict(rules), round(TICK_S)):
        if "max_workers" not in names and {*names} & {*given}:
            yield fault


def _rules_of(profile: Profile) -> Rules:
    return Rules(
        rescale_pause_s=max(profile.pause_up_s, profile.pause_down_s),
        replay_s=profile.checkpoint_s,
        warm_up_s=profile.warm_up_s,
        worker_start_s=profile.start_s,
        metric_delay_s=profile.metric_delay_s,
    )


def _setting(policy: str, text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if name == DEFAULTS:
        raise ConfigError([f"{policy}: expected {DEFAULTS} without a number, got {text!r}"])
    if name not in _NUMBERS:
        raise ConfigError([f"{policy}: there is no parameter {name!r}{suggestion(name, _NUMBERS) or _ALL}"])
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not allowed(name, np.array(number)):
        raise ConfigError([f"{policy}: expected {name} to be {allowed_values(name)}, got {value!r}"])
    return name, number


class AdapterPolicies:
    """The policies of L jobs, from tick to tick."""

    def __init__(self, rules: Sequence[Rules], profiles: Sequence[Profile], begin_s: float = EPOCH_S) -> None:
        self._begin_s = begin_s
        width = len(str(len(rules)))
        self._workloads = tuple(f"backtest/{number:0{width}d}" for number in range(len(rules)))
        self._stages = tuple((workload, WHOLE) for workload in self._workloads)
        self._book = RuleBook(by_workload=dict(zip(self._workloads, rules, strict=True)))
        self._shows_busy = np.array([profile.shows_busy for profile in profiles])
        self._partitions = np.array([float(profile.partitions or np.nan) for profile in profiles])
        self._state = EMPTY

    def required(self, at_s: float, samples: Mapping[str, Array], workers: fluid.JobState) -> Array:
        """required_workers of each job, shape (L,); NaN where there is no number."""
        self._state, decisions = advance(self._state, self._samples(at_s, samples, workers), self._book)
        return decisions.numbers["required_workers"]

    def _samples(self, at_s: float, samples: Mapping[str, Array], workers: fluid.JobState) -> Samples:
        return Samples(
            at_s=self._begin_s + at_s,
            workloads=self._workloads,
            stages=self._stages,
            by_stage={
                "appended_records": samples["appended"],
                "processed_records": samples["processed"],
                "backlog_records": samples["backlog"],
                "highest_partition_backlog_records": samples["partition"],
                "utilization_ratio": np.where(self._shows_busy, samples["busy"], samples["cpu"]),
            },
            by_workload={
                "partitions": np.where(np.isfinite(samples["backlog"]), self._partitions, np.nan),
                "spec_workers": workers.spec_workers,
                "workers": workers.paid_workers,
                "ready_workers": workers.ready_workers,
            },
        )
