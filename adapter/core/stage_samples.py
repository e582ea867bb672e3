"""Samples -> the reported signals of each stage, and its utilization by its fullest resource."""

from dataclasses import dataclass, fields, replace

import numpy as np

from adapter.core.formatting import RESOURCES
from adapter.core.ingest import reindex
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import STAGE_SIGNALS, Array, Samples, first_known
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
    resources: Array  # which of busy time, CPU, memory and network a stage reports: the sum of 1, 2, 4 and 8
    resources_at_s: Array  # the last tick in which none of them was missing


def stage_samples(samples: Samples, stages: tuple[tuple[str, str], ...]) -> StageSamples:
    """The samples of each stage, in the order of stages."""
    names = [f.name for f in fields(StageSamples) if f.name in STAGE_SIGNALS]
    rows = reindex([samples.stage(name) for name in names], samples.stages, stages)
    reported = dict(zip(names, rows, strict=True))
    resources = np.array([reported[name] for name in ("utilization_ratio", *RESOURCES)])
    fullest = np.fmax.reduce(resources)
    which = np.exp2(np.arange(len(resources))) @ np.isfinite(resources)
    reported |= {"utilization_ratio": fullest, "resources": which}
    return StageSamples(**reported, resources_at_s=np.where(which > 0, samples.at_s, np.nan))


def has_load(now: StageSamples) -> Mask:
    """Whether each stage reports throughput and backlog."""
    processed = first_known(now.processed_records, now.throughput_records_per_s)
    known: Mask = np.isfinite(processed + now.backlog_records)
    return known


def with_held_resources(now: StageSamples, was: LatestSignals, at_s: float, rules: RuleColumns) -> StageSamples:
    """Keep the utilization from falling while a resource is missing, because that resource may be the fullest.

    This ends after error_after_s.
    """
    lacking = np.nan_to_num(was.resources).astype(np.int64) & ~now.resources.astype(np.int64)
    missing = (lacking > 0) & (at_s - was.resources_at_s <= rules.error_after_s)
    largest = np.fmax(now.utilization_ratio, was.measured_utilization_ratio)
    return replace(
        now,
        utilization_ratio=np.where(missing, largest, now.utilization_ratio),
        resources=np.where(missing, was.resources, now.resources),
        resources_at_s=np.where(missing | (now.resources == 0), was.resources_at_s, now.resources_at_s),
    )
