"""What a policy is asked and what it answers, and the two terms all of them share."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array
from adapter.core.signals import moves


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of each stage; every array has the shape (stages,).

    workers: of the workload, at work now. most_workers: the cap that max and partitions leave. partitions: the parts
    of the input, the cap where they are unknown. lowest_backlog_time_s: of the window, so without the saw's teeth.
    highest_backlog_records: before this tick, NaN when there is none. rising: the backlog does, beyond its teeth.
    growth_records_per_s: signed. utilization_ratio: NaN when unknown. rules: parameter -> its value for each stage.
    """

    workers: Array
    most_workers: Array
    partitions: Array
    throughput_records_per_s: Array
    growth_records_per_s: Array
    highest_backlog_records: Array
    rising: Mask
    backlog_records: Array
    backlog_time_s: Array
    lowest_backlog_time_s: Array
    utilization_ratio: Array
    rules: Mapping[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The size each stage asks for, in workers, and its two terms; NaN where an input is unknown."""

    wanted_workers: Array
    keep_up_workers: Array
    catch_up_workers: Array


def positive_growth(evidence: Evidence) -> Array:
    """Backlog growth floored at 0 (X-03); a small share of the throughput, or a backlog that does not rise, is none."""
    noise = evidence.rules["growth_noise_ratio"] * evidence.throughput_records_per_s
    growth = evidence.growth_records_per_s
    return np.where(evidence.rising & (growth > noise), growth, np.where(np.isnan(growth), np.nan, 0.0))


def keeps_pace(evidence: Evidence) -> Mask:
    """Whether nothing grows: neither the rates nor, sooner than they can tell, the backlog above all it was before."""
    noise = evidence.rules["growth_noise_ratio"] * evidence.throughput_records_per_s
    risen = evidence.backlog_records - evidence.highest_backlog_records
    return (positive_growth(evidence) <= 0) & ~(risen > noise)


def keep_up(evidence: Evidence) -> Array:
    """Workers that absorb the input: M * (T + G) / T, G positive (S0-06, S3-06).

    Where nothing is processed the question has no answer: M without backlog (X-02); with one, the cap (X-01), or one
    worker to begin with where there is none.
    """
    moving = moves(evidence.throughput_records_per_s)
    throughput = np.where(moving, evidence.throughput_records_per_s, 1.0)
    absorbed = evidence.workers * (throughput + positive_growth(evidence)) / throughput
    begun = np.where(evidence.workers > 0, evidence.most_workers, 1.0)
    halted = np.where(evidence.backlog_records > 0, begun, evidence.workers)
    return np.where(moving, absorbed, np.where(np.isnan(evidence.throughput_records_per_s), np.nan, halted))


def catch_up(evidence: Evidence) -> Array:
    """Workers that clear the backlog within R: M * B / R (S0-07, S3-07)."""
    return evidence.workers * evidence.backlog_time_s / evidence.rules["time_to_reduce_backlog_s"]


def drains_in_time(evidence: Evidence) -> Mask:
    """Whether the backlog, as it falls now, is gone within R: then nothing more is needed (S0-28, fourth step)."""
    return evidence.backlog_records <= -evidence.growth_records_per_s * evidence.rules["time_to_reduce_backlog_s"]


def whole(workers: Array) -> Array:
    """Workers are whole: up, after float noise is taken off (X-10)."""
    return np.ceil(workers - 1e-9)
