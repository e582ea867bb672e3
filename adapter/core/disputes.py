"""Backlogs that two sources report differently, as faults of their workloads."""

from collections.abc import Mapping

import numpy as np

from adapter.core.observe import Tick
from adapter.core.samples import Samples

_USUAL_S = 120.0  # between two commits of a group, or two checkpoints, an engine and a broker count differently
_LEAST_RECORDS = 1_000.0


def faults_of(tick: Tick, samples: Samples) -> Mapping[str, str]:
    """The faults of the samples, and the disputes over more than the throughput of _USUAL_S."""
    if not samples.disputes:
        return samples.faults
    faults = dict(samples.faults)
    places = {name: place for place, name in enumerate(tick.state.slow.workloads)}
    for name, (records, sentence) in samples.disputes.items():
        throughput = tick.signals.throughput_records_per_s[tick.workload_index == places.get(name, -1)]
        if records > max(_LEAST_RECORDS, _USUAL_S * np.nan_to_num(throughput).max(initial=0.0)):
            faults[name] = f"{faults[name]}; {sentence}" if name in faults else sentence
    return faults
