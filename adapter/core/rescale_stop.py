"""The measurement of a rescale's cost: its state between two ticks, and the rules for a stop."""

from dataclasses import dataclass

from adapter.core.samples import Array

RESCALES = 5  # the last ones, whose costs count
# What belongs to a rescale, in live measurements (`core.stops`) and in a history (`backtest.rescales`).
SEARCH_S = 300.0  # from the last change of the workers: new workers start, and metrics are late
LOW_RATIO = 0.75  # of the throughput before: commits every few seconds do not make as large a drop
STOOD_RATIO = 0.25  # of the throughput before: below it the job stood still
LONGEST_WARM_UP_S = 900.0


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
    ready_at_s: Array  # when all desired workers were first ready
    fastest_records_per_s: Array  # the largest throughput since then, until the backlog is gone
    fastest_at_s: Array  # when it was reached


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleCost:
    """The cost of a rescale of each workload."""

    start_s: Array  # of a scale-up, until the new workers are ready or the job stops for them
    pause_s: Array
    delay_s: Array  # until the samples show the pause
    warm_up_s: Array  # from the pause until the throughput rises no more
