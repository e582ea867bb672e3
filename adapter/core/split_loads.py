"""Report a throughput and a backlog of different stages: neither sizes the job."""

import numpy as np

from adapter.core.aggregation import some
from adapter.core.observe import Tick
from adapter.core.samples import WHOLE, first_known


def split_loads(tick: Tick) -> dict[str, str]:
    """A sentence for each workload with throughput, backlog, and no stage that ever had both.

    A load counts for two rate windows, so that a missing sample does not interrupt the sentence.
    """
    if tick.plain:
        return {}
    fast, names = tick.state.fast, tick.state.slow.workloads
    throughput = np.isfinite(first_known(fast.processed, fast.reported)).any(axis=0)
    backlog = np.isfinite(fast.backlog).any(axis=0)
    alone = ~some(np.isfinite(fast.seen_at_s), tick.workload_index, len(names))[tick.workload_index]
    passes: dict[str, str] = {}
    waits: dict[str, str] = {}
    for found, of_stage in ((passes, throughput & alone), (waits, backlog & alone)):
        for place in np.flatnonzero(of_stage):
            workload, stage = tick.state.slow.stages[place]
            found[workload] = "the job as a whole" if stage == WHOLE else f"stage {stage}"
    return {
        name: f"the throughput is of {passes[name]} and the backlog of {waits[name]}; write both queries into one "
        "entry of `read`, so that they have the same stage"
        for name in passes.keys() & waits.keys()
    }
