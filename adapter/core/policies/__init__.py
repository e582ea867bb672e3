"""Signals -> the size a published system would ask for. One file a policy."""

from collections.abc import Callable, Mapping

import numpy as np

from adapter.core.policies import beam_flink, dataflow
from adapter.core.policies.verdict import Evidence, Verdict
from adapter.core.rates import Mask
from adapter.core.samples import IntArray

Policy = Callable[[Evidence], Verdict]
POLICIES: Mapping[str, Policy] = {"dataflow": dataflow.size, "beam-flink": beam_flink.size}


def size(evidence: Evidence, policy: IntArray) -> Verdict:
    """Each stage sized by its workload's policy. policy: index into POLICIES, shape (stages,)."""
    unknown = np.full(len(policy), np.nan)
    sized = Verdict(wanted_workers=unknown, keep_up_workers=unknown, catch_up_workers=unknown)
    for number, rule in enumerate(POLICIES.values()):
        asked = policy == number
        if asked.any():
            sized = _where(asked, rule(evidence), sized)
    return sized


def _where(asked: Mask, said: Verdict, otherwise: Verdict) -> Verdict:
    return Verdict(
        wanted_workers=np.where(asked, said.wanted_workers, otherwise.wanted_workers),
        keep_up_workers=np.where(asked, said.keep_up_workers, otherwise.keep_up_workers),
        catch_up_workers=np.where(asked, said.catch_up_workers, otherwise.catch_up_workers),
    )
