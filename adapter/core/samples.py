"""What was seen at one tick, as aligned arrays: one row a stage, one entry a workload."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

# What a source may say of a stage. Counters are cumulative and may reset; the rest are gauges.
STAGE_SIGNALS = (
    "processed_records",  # counter: records processed (committed offsets, summed)
    "appended_records",  # counter: records appended to the input (log-end offsets, summed)
    "backlog_records",  # gauge: records waiting
    "throughput_records_per_s",  # gauge, for sources that know only the rate
    "input_rate_records_per_s",  # gauge, for sources that know only the rate
    "utilization_ratio",  # gauge, 0..1: busy time or CPU
)
# What a source may say of a whole workload.
WORKLOAD_SIGNALS = (
    "partitions",  # gauge: Kafka partitions or Pravega segments of the input
    "spec_workers",  # gauge: workers asked for (the scale target's spec)
    "workers",  # gauge: workers that exist (status)
    "ready_workers",  # gauge: workers that are ready
    "min_workers",  # gauge: the HPA's minReplicas
    "max_workers",  # gauge: the HPA's maxReplicas
    "pause_up",  # 1 while a pause of ups is in force, else 0
    "pause_down",  # 1 while a pause of downs is in force, else 0
    "fleet",  # index of the fleet that found the workload
)
WHOLE = ""  # the stage of a workload whose stages are not visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """One tick of one shard.

    at_s: Unix seconds of the tick.
    workloads: "namespace/name", sorted, unique.
    stages: (workload, stage), sorted, unique; the stage is WHOLE where stages are not visible.
    by_stage: signal of STAGE_SIGNALS -> shape (len(stages),), NaN where it was not seen.
    by_workload: signal of WORKLOAD_SIGNALS -> shape (len(workloads),), NaN where it was not seen.
    faults: workload -> why a source could not tell; the key "*" speaks of every workload without a sample.
    """

    at_s: float
    workloads: tuple[str, ...] = ()
    stages: tuple[tuple[str, str], ...] = ()
    by_stage: Mapping[str, Array] = field(default_factory=dict)
    by_workload: Mapping[str, Array] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
