"""Signals -> the size a system would ask for. One file a policy."""

from collections.abc import Callable, Mapping
from dataclasses import fields

import numpy as np

from adapter.core.policies import beam_flink, dataflow, drain, netflix, segments, varga
from adapter.core.policies.interface import Outlook, PolicyInput, PolicyResult
from adapter.core.samples import Array, IntArray

Policy = Callable[[PolicyInput], PolicyResult]
POLICIES: Mapping[str, Policy] = {
    "drain": drain.size,
    "dataflow": dataflow.size,
    "beam-flink": beam_flink.size,
    "varga": varga.size,
    "segments": segments.size,
    "netflix": netflix.size,
}
_SIZES = ("wanted_workers", "keep_up_workers", "catch_up_workers", "needed_workers")
_AHEAD = tuple(f.name for f in fields(Outlook))


def size(policy_input: PolicyInput, policy: IntArray) -> PolicyResult:
    """Each stage sized by its workload's policy. policy: index into POLICIES, shape (stages,)."""
    sizes = {name: np.full(len(policy), np.nan) for name in _SIZES}
    ahead = {name: np.full(len(policy), np.nan) for name in _AHEAD}
    for number, rule in enumerate(POLICIES.values()):
        asked = policy == number
        if asked.any():
            said = rule(policy_input)
            _fill(sizes, said, asked)
            _fill(ahead, said.outlook, asked)
    return PolicyResult(**sizes, outlook=Outlook(**ahead))


def _fill(columns: dict[str, Array], said: PolicyResult | Outlook | None, asked: Array) -> None:
    for name in columns if said is not None else ():
        columns[name] = np.where(asked, getattr(said, name), columns[name])
