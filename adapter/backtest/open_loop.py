"""Open loop: recorded ticks -> the recommendations of each policy, while the job runs as it was recorded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from adapter.backtest.report_content import Resize, Track
from adapter.core.decisions import Decision, Decisions
from adapter.core.engine import replay
from adapter.core.messages import sentence
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import POLICIES, Rules
from adapter.core.samples import EVERY, Array, Samples
from adapter.simulator.policies import with_policy

_SEPARATOR = "|"  # between a policy and its workload; neither name contains it


def recommend(
    samples: Sequence[Samples],
    rules: Mapping[str, Rules],
    policies: Sequence[str],
    progress: Callable[[float], None] = lambda share: None,
) -> dict[tuple[str, str], Track]:
    """(workload, policy) -> the numbers of the policy, NaN where it has none. All policies are lanes of one fold.

    rules: of each workload of the samples.
    policies: each by its name or as "name:parameter=number+parameter=number". No recommendation is enacted: the next
    samples are the recorded ones, so a policy keeps recommending what the job did not do.
    """
    lanes = RuleBook(
        by_workload={
            _lane(policy, name): with_policy(policy, own) for policy in policies for name, own in rules.items()
        }
    )
    recorders = {lane: _LaneRecorder(len(samples)) for lane in lanes.by_workload}
    in_order = sorted(policies, key=lambda policy: _lane(policy, ""))
    lane_samples = (_repeat(tick, in_order) for tick in samples)
    for tick, (_, decisions) in enumerate(replay(lane_samples, lanes)):
        _record(recorders, tick, decisions)
        progress((tick + 1) / len(samples))
    at_s = np.array([tick.at_s for tick in samples])
    return {(name, policy): recorders[_lane(policy, name)].track(policy, at_s) for policy in policies for name in rules}


def rules_by_workload(samples: Sequence[Samples], book: RuleBook) -> dict[str, Rules]:
    """The rules of each workload, sorted by name. A workload that a fleet found has the rules of that fleet."""
    fleets: dict[str, int | None] = {}
    for tick in samples:
        for name, fleet in zip(tick.workloads, tick.whole("fleet").tolist(), strict=True):
            fleets[name] = fleets.get(name) if np.isnan(fleet) else int(fleet)
    return {name: book.of(name, fleets[name]) for name in sorted(fleets)}


def metric_policies(policies: Iterable[str]) -> tuple[str, ...]:
    """The policies that the adapter serves as a metric, with or without parameters; baselines are left out."""
    return tuple(policy for policy in policies if policy.partition(":")[0] in POLICIES)


class _LaneRecorder:
    """Collects the decisions of one lane."""

    def __init__(self, ticks: int) -> None:
        self._required = np.full(ticks, np.nan)
        self._last = np.nan
        self._changes: list[Resize] = []

    def record(self, tick: int, required: float) -> bool:
        """Store the number of a tick. Returns whether it differs from the last one."""
        self._required[tick] = required
        return required != self._last and not (np.isnan(required) and np.isnan(self._last))

    def record_change(self, decision: Decision) -> None:
        """Store why the number changed."""
        after = np.nan if decision.required_workers is None else decision.required_workers
        self._changes.append(Resize(at_s=decision.at_s, before=self._last, after=after, why=sentence(decision)))
        self._last = after

    def track(self, policy: str, at_s: Array) -> Track:
        """The numbers of all ticks, and their changes."""
        return Track(name=policy, at_s=at_s, workers=self._required, changes=tuple(self._changes))


def _record(recorders: Mapping[str, _LaneRecorder], tick: int, decisions: Decisions) -> None:
    if not decisions.text:
        return
    required = zip(decisions.text["workload"], decisions.numbers["required_workers"].tolist(), strict=True)
    changed = {lane for lane, workers in required if recorders[lane].record(tick, workers)}
    for decision in rows(decisions) if changed else ():
        if decision.workload in changed:
            name = decision.workload.partition(_SEPARATOR)[2]
            recorders[decision.workload].record_change(replace(decision, workload=name))


def _lane(policy: str, workload: str) -> str:
    return f"{policy}{_SEPARATOR}{workload}"


def _repeat(tick: Samples, policies: Sequence[str]) -> Samples:
    """The same samples once per policy. policies: in the order of their lanes."""
    copies = len(policies)
    return replace(
        tick,
        workloads=tuple(_lane(policy, name) for policy in policies for name in tick.workloads),
        stages=tuple((_lane(policy, name), stage) for policy in policies for name, stage in tick.stages),
        by_stage={signal: np.tile(column, copies) for signal, column in tick.by_stage.items()},
        by_workload={signal: np.tile(column, copies) for signal, column in tick.by_workload.items()},
        faults={
            name if name == EVERY else _lane(policy, name): text
            for policy in policies
            for name, text in tick.faults.items()
        },
        assumed=frozenset(_lane(policy, name) for policy in policies for name in tick.assumed),
        disputes={_lane(policy, name): each for policy in policies for name, each in tick.disputes.items()},
    )
