"""Signals -> the size a published system would ask for. One file a policy."""

from collections.abc import Callable, Mapping

import numpy as np

from adapter.core.policies import beam_flink, dataflow
from adapter.core.policies.verdict import Evidence, Verdict
from adapter.core.samples import IntArray

Policy = Callable[[Evidence], Verdict]
POLICIES: Mapping[str, Policy] = {"dataflow": dataflow.size, "beam-flink": beam_flink.size}


def size(evidence: Evidence, policy: IntArray) -> Verdict:
    """Each stage sized by its workload's policy. policy: index into POLICIES, shape (stages,)."""
    parts = [
        (policy == number, rule(evidence)) for number, rule in enumerate(POLICIES.values()) if (policy == number).any()
    ]
    unknown = np.full(len(policy), np.nan)
    masks = [mask for mask, _ in parts]
    return Verdict(
        wanted_workers=np.select(masks, [verdict.wanted_workers for _, verdict in parts], unknown),
        keep_up_workers=np.select(masks, [verdict.keep_up_workers for _, verdict in parts], unknown),
        catch_up_workers=np.select(masks, [verdict.catch_up_workers for _, verdict in parts], unknown),
    )
