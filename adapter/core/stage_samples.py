"""Samples -> what they report of each stage, and how full it is."""

from dataclasses import dataclass, fields, replace

import numpy as np

from adapter.core.formatting import RESOURCES
from adapter.core.ingest import reindex
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import STAGE_SIGNALS, Array, Samples
from adapter.core.state import LatestSignals


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
    resources: Array  # how many of busy time, CPU, memory and network a stage reports
    resources_at_s: Array  # the last tick in which none of them was missing


def stage_samples(samples: Samples, stages: tuple[tuple[str, str], ...]) -> StageSamples:
    """The samples of each stage, in the order of stages."""
    names = [f.name for f in fields(StageSamples) if f.name in STAGE_SIGNALS]
    rows = reindex([samples.stage(name) for name in names], samples.stages, stages)
    reported = dict(zip(names, rows, strict=True))
    resources = np.array([reported[name] for name in ("utilization_ratio", *RESOURCES)])
    fullest = np.fmax.reduce(resources)
    count = np.isfinite(resources).sum(axis=0, dtype=np.float64)
    reported |= {"utilization_ratio": fullest, "resources": count}
    return StageSamples(**reported, resources_at_s=np.where(count > 0, samples.at_s, np.nan))


def with_held_resources(now: StageSamples, was: LatestSignals, at_s: float, rules: RuleColumns) -> StageSamples:
    """The samples, whose utilization does not fall while a resource is missing: it may be the largest.

    This ends after error_after_s.
    """
    missing = (now.resources < was.resources) & (at_s - was.resources_at_s <= rules.error_after_s)
    largest = np.fmax(now.utilization_ratio, was.measured_utilization_ratio)
    return replace(
        now,
        utilization_ratio=np.where(missing, largest, now.utilization_ratio),
        resources=np.where(missing, was.resources, now.resources),
        resources_at_s=np.where(missing | (now.resources == 0), was.resources_at_s, now.resources_at_s),
    )
