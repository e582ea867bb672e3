"""The measurement of how long a rescale stops a job, as the state carries it."""

from dataclasses import dataclass

from adapter.core.samples import Array

RESCALES = 5  # whose pauses are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleStop:
    """The stop of each stage that belongs to the rescale in progress; see `stops`."""

    before_records_per_s: Array  # the throughput before the rescale
    counted_at_s: Array  # when the two counts were last known
    processed_records: Array
    backlog_records: Array
    lost_s: Array  # work that is missing in the running stop, as time at the throughput before
    longest_s: Array  # the longest stop of the rescale; NaN while no rescale is measured
