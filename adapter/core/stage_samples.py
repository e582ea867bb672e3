"""Samples -> what they report of each stage, and how full it is."""

from dataclasses import dataclass, fields

import numpy as np

from adapter.core.formatting import RESOURCES
from adapter.core.ingest import reindex
from adapter.core.samples import Array, Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSamples:
    """What this tick's samples report of each stage; samples.STAGE_SIGNALS describes the fields. NaN unknown."""

    processed_records: Array
    appended_records: Array
    backlog_records: Array
    throughput_records_per_s: Array
    input_rate_records_per_s: Array
    utilization_ratio: Array  # the largest of busy time, CPU, memory and network
    cpu_ratio: Array
    memory_ratio: Array
    network_ratio: Array
    busiest_subtask_ratio: Array
    backpressured_ratio: Array
    stuck_backlog_records: Array
    highest_partition_backlog_records: Array
    hottest_partition_ratio: Array
    slowest_worker_ratio: Array


def stage_samples(samples: Samples, stages: tuple[tuple[str, str], ...]) -> StageSamples:
    """The samples of each stage, in the order of stages."""
    names = [f.name for f in fields(StageSamples)]
    rows = reindex([samples.stage(name) for name in names], samples.stages, stages)
    reported = dict(zip(names, rows, strict=True))
    fullest = np.fmax.reduce([reported[name] for name in ("utilization_ratio", *RESOURCES)])
    return StageSamples(**{**reported, "utilization_ratio": fullest})
