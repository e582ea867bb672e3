"""The measurement of what a rescale costs, as the state carries it."""

from dataclasses import dataclass

from adapter.core.samples import Array

RESCALES = 5  # whose costs are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleStop:
    """The stop of each stage that belongs to the rescale in progress; see `stops`."""

    before_records_per_s: Array  # the throughput before the rescale
    counted_at_s: Array  # when the two counts were last known
    processed_records: Array
    backlog_records: Array
    lost_s: Array  # work that is missing in the running stop, as time at the throughput before
    longest_s: Array  # the longest stop of the rescale; NaN while no rescale is measured
    delay_s: Array  # from the change of the workers to the end of the longest stop, without the stop itself
    resumed_at_s: Array  # when the longest stop ended
    fastest_records_per_s: Array  # the largest throughput since then, until the backlog is gone
    fastest_at_s: Array  # when it was reached


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleCost:
    """What a rescale of each workload costs."""

    pause_s: Array
    delay_s: Array  # until the samples show the pause
    warm_up_s: Array  # from the pause until the throughput rises no more
