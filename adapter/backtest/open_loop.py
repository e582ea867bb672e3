"""Open loop: recorded ticks -> what each policy would have asked for, had it looked on while something else ran."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adapter.core.decisions import Decision, Decisions
from adapter.core.engine import replay
from adapter.core.messages import sentence
from adapter.core.report import rows
from adapter.core.rules import POLICIES, RuleBook, Rules
from adapter.core.samples import EVERY, Array, Samples
from adapter.simulator.policies import rules_of
from adapter.simulator.profiles import Profile

_MARK = "|"  # between a policy and its workload, in no name of either


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Another number than before. before, after: workers, NaN for no number. why: the sentence of the decision."""

    at_s: float
    before: float
    after: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one policy asked for of one workload; shape (T,), NaN where it had no number.

    reasons: how often each Reason was given. changes: each tick at which the number became another.
    """

    workload: str
    policy: str
    at_s: Array
    required_workers: Array
    reasons: Mapping[str, int]
    changes: tuple[Change, ...]


def asked(
    samples: Sequence[Samples],
    book: RuleBook,
    policies: Sequence[str],
    progress: Callable[[float], None] = lambda share: None,
) -> dict[tuple[str, str], Asked]:
    """(workload, policy) -> what it would have asked for, tick by tick, from what really was.

    policies: ours, each by its name or as "name:parameter=number+parameter=number".
    All policies are lanes of one fold. Nobody acts on their answers: what was seen next is what really ran, so that a
    policy whose number was not enacted goes on asking for it.
    """
    fleets = {name: fleet for seen in samples for name, fleet in _fleets(seen)}
    names = tuple(sorted(fleets))
    lanes = RuleBook(
        by_workload={
            _lane(policy, name): _varied(policy, book.of(name, fleets[name])) for policy in policies for name in names
        }
    )
    recorders = {_lane(policy, name): _Recorder(len(samples)) for policy in policies for name in names}
    in_order = sorted(policies, key=lambda policy: _lane(policy, ""))
    laid = (_laid(seen, in_order) for seen in samples)
    for tick, (_, decisions) in enumerate(replay(laid, lanes)):
        _record(recorders, tick, decisions)
        progress((tick + 1) / len(samples))
    at_s = np.array([seen.at_s for seen in samples])
    return {
        (name, policy): recorders[_lane(policy, name)].made(name, policy, at_s) for policy in policies for name in names
    }


def ours(policies: Iterable[str]) -> tuple[str, ...]:
    """Those that go through our metric, varied ones among them; rivals do not."""
    return tuple(policy for policy in policies if policy.partition(":")[0] in POLICIES)


def policies_of(book: RuleBook, workloads: Sequence[str]) -> tuple[str, ...]:
    """The policies that the configuration sets for these workloads, each once."""
    return tuple(dict.fromkeys(book.of(name, None).policy for name in workloads))


class _Recorder:
    """One lane, tick by tick."""

    def __init__(self, ticks: int) -> None:
        self._required = np.full(ticks, np.nan)
        self._last = np.nan
        self._reasons: dict[str, int] = {}
        self._changes: list[Change] = []

    def number(self, tick: int, value: float, reason: str) -> bool:
        """Keep the number of a tick; whether it is another than the last."""
        self._required[tick] = value
        self._reasons[reason] = self._reasons.get(reason, 0) + 1
        return value != self._last and not (np.isnan(value) and np.isnan(self._last))

    def change(self, decision: Decision) -> None:
        """Keep why the number became another."""
        after = np.nan if decision.required_workers is None else decision.required_workers
        self._changes.append(Change(at_s=decision.at_s, before=self._last, after=after, why=sentence(decision)))
        self._last = after

    def made(self, workload: str, policy: str, at_s: Array) -> Asked:
        """All of it."""
        return Asked(
            workload=workload,
            policy=policy,
            at_s=at_s,
            required_workers=self._required,
            reasons=self._reasons,
            changes=tuple(self._changes),
        )


def _record(recorders: Mapping[str, _Recorder], tick: int, decisions: Decisions) -> None:
    if not decisions.text:
        return
    told = zip(
        decisions.text["workload"],
        decisions.numbers["required_workers"].tolist(),
        decisions.text["reason"],
        strict=True,
    )
    changed = {lane for lane, value, reason in told if recorders[lane].number(tick, value, reason)}
    for decision in rows(decisions) if changed else ():
        if decision.workload in changed:
            name = decision.workload.partition(_MARK)[2]
            recorders[decision.workload].change(replace(decision, workload=name))


def _varied(policy: str, rules: Rules) -> Rules:
    """The workload's own rules, but for the policy and what it varies."""
    return rules_of(policy, Profile(name=policy, max_workers=rules.max_workers), rules)


def _lane(policy: str, workload: str) -> str:
    return f"{policy}{_MARK}{workload}"


def _fleets(seen: Samples) -> Iterator[tuple[str, int | None]]:
    for name, fleet in zip(seen.workloads, seen.whole("fleet").tolist(), strict=True):
        yield name, None if np.isnan(fleet) else int(fleet)


def _laid(seen: Samples, policies: Sequence[str]) -> Samples:
    """The same samples once a policy. policies: in the order of their lanes."""
    copies = len(policies)
    return Samples(
        at_s=seen.at_s,
        workloads=tuple(_lane(policy, name) for policy in policies for name in seen.workloads),
        stages=tuple((_lane(policy, name), stage) for policy in policies for name, stage in seen.stages),
        by_stage={signal: np.tile(column, copies) for signal, column in seen.by_stage.items()},
        by_workload={signal: np.tile(column, copies) for signal, column in seen.by_workload.items()},
        faults=_faults(seen, policies),
    )


def _faults(seen: Samples, policies: Sequence[str]) -> dict[str, str]:
    own = {_lane(policy, name): text for policy in policies for name, text in seen.faults.items()}
    return own | {name: text for name, text in seen.faults.items() if name == EVERY}
