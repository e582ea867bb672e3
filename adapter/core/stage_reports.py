"""When stages of a workload begin and cease to report their load, to tell a renamed stage from one without metrics."""

from dataclasses import dataclass, replace

import numpy as np

from adapter.core.aggregation import largest, some
from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray

GONE_S = 120.0  # a stage whose siblings report for this much longer does not report; less than error_after_s
_OVERLAP_S = 300.0  # a series without a staleness marker stays this long beside the one that replaces it
MISSED_S = 3600.0  # after this time the stage counts as removed


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReports:
    """The reports of each workload's stages."""

    began_at_s: Array  # when a stage last began to report its load
    ceased_at_s: Array  # when a stage with load last ceased to report it, and none had begun that could replace it


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLoads:
    """The loads of the stages at a tick; every array has the shape (stages,)."""

    index: IntArray  # the workload of each stage
    seen_before_at_s: Array  # when it was last reported, as of the tick before; NaN if never
    seen_at_s: Array  # the same, as of this tick
    idle: Mask  # its throughput was 0, and its backlog may be markers alone; not if either is unknown


def has_ceased(seen_at_s: Array, index: IntArray, count: int) -> Mask:
    """Whether only the siblings of a stage still report their load.

    seen_at_s: (stages,) when each stage last did. index: (stages,) the workload of each. count: how many workloads.
    """
    ceased: Mask = largest(seen_at_s, index, count)[index] - seen_at_s > GONE_S
    return ceased


def update_reports(reports: StageReports, loads: StageLoads, at_s: float) -> StageReports:
    """The reports after a tick."""
    count, index = len(reports.began_at_s), loads.index
    was_missing = np.isnan(loads.seen_before_at_s) | has_ceased(loads.seen_before_at_s, index, count)
    began = some((loads.seen_at_s == at_s) & was_missing, index, count)
    reports = replace(reports, began_at_s=np.where(began, at_s, reports.began_at_s))
    replaced = reports.began_at_s[index] >= loads.seen_at_s - _OVERLAP_S
    missing = has_ceased(loads.seen_at_s, index, count) & ~was_missing & ~replaced & ~loads.idle
    ceased = some(missing, index, count)
    return replace(reports, ceased_at_s=np.where(ceased, at_s, reports.ceased_at_s))


def misses_stage(reports: StageReports, at_s: float) -> Mask:
    """Whether a stage of each workload ceased to report its load within the last hour, and none began to since."""
    missed: Mask = (at_s - reports.ceased_at_s < MISSED_S) & ~(reports.began_at_s > reports.ceased_at_s)
    return missed
