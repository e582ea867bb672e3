"""Size each stage by the policy of its workload."""

from dataclasses import fields
from importlib import import_module

import numpy as np

from adapter.core.policies import POLICIES
from adapter.core.policies.interface import Formula, Outlook, PolicyInput, PolicyResult
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array

_SIZES = ("wanted_workers", "keep_up_workers", "catch_up_workers", "needed_workers")
OUTLOOK = tuple(f.name for f in fields(Outlook))
_FORMULAS: tuple[Formula, ...] = tuple(import_module(f"{__package__}.{policy.module}").size for policy in POLICIES)


def size(policy_input: PolicyInput) -> PolicyResult:
    """The sizes of all stages."""
    policy = policy_input.rules.policy
    sizes = {name: np.full(len(policy), np.nan) for name in _SIZES}
    outlook = {name: np.full(len(policy), np.nan) for name in OUTLOOK}
    for number, formula in enumerate(_FORMULAS):
        rows = policy == number
        if rows.any():
            result = formula(policy_input)
            _fill(sizes, result, rows)
            _fill(outlook, result.outlook, rows)
    return PolicyResult(**sizes, outlook=Outlook(**outlook))


def _fill(columns: dict[str, Array], result: PolicyResult | Outlook, rows: Mask) -> None:
    for name in columns:
        columns[name] = np.where(rows, getattr(result, name), columns[name])


def policy_has(attribute: str, rules: RuleColumns) -> Mask:
    """Where the policy of a workload has a boolean property of Policy."""
    found: Mask = np.array([getattr(policy, attribute) for policy in POLICIES])[rules.policy.astype(np.int64)]
    return found


def backlog_time_target(rules: RuleColumns) -> Array:
    """The time in which the policy of each workload clears a backlog, seconds."""
    targets = [getattr(rules, policy.backlog_time_target) for policy in POLICIES]
    chosen: Array = np.choose(rules.policy.astype(np.int64), targets)
    return chosen
