"""The autoscaler of the Flink Kubernetes operator, as a formula for a job of one stage.

Follows apache/flink-kubernetes-operator at 6e9caeb: AutoScalerOptions, ScalingMetricCollector,
ScalingMetricEvaluator, JobVertexScaler, DelayedScaleDown, BuiltInAlignmentMode.
"""

from dataclasses import dataclass, replace

import numpy as np

from adapter.core.partitions import whole
from adapter.core.rates import Mask
from adapter.core.samples import Array
from adapter.simulator.baselines import BaselineInput, OperatorSettings
from adapter.simulator.baselines.alignment import Alignment
from adapter.simulator.baselines.delayed_scale_down import DelayedScaleDown
from adapter.simulator.baselines.window import SampleWindow
from adapter.simulator.hpa import Hpa

_METER_S = 60.0  # span of Flink's numRecordsInPerSecond


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkParameters:
    """`job.autoscaler.*`, by the options' names and with their defaults; durations in seconds.

    Left out, as they are off by default: effectiveness detection, restart time tracking, observed scalability, memory
    pressure and tuning, quotas, excluded periods. One stage has no backpressure. A sync takes 15 s (standalone 10 s,
    operator 60 s).
    """

    metrics_window_s: float = 900.0
    metrics_busy_time_aggregator: str = "MAX"  # or AVG
    stabilization_interval_s: float = 300.0
    utilization_target: float = 0.7
    target_utilization_boundary: float = 0.3
    scale_down_interval_s: float = 3600.0
    vertex_min_parallelism: int = 1
    vertex_max_parallelism: int = 200
    scale_down_max_factor: float = 0.6
    scale_up_max_factor: float = 100_000.0
    catch_up_duration_s: float = 1800.0
    restart_time_s: float = 300.0
    backlog_processing_lag_threshold_s: float = 300.0
    observed_true_processing_rate_lag_threshold_s: float = 30.0
    observed_true_processing_rate_switch_threshold: float = 0.15
    observed_true_processing_rate_min_observations: int = 2
    scaling_parallelism_alignment_mode: str = "BALANCED"  # or EVENLY_SPREAD or OFF


DEFAULT = FlinkParameters()
FAST = FlinkParameters(  # our choice: the shortest times that are practical, with the default target
    target_utilization_boundary=0.15,
    metrics_window_s=120.0,
    stabilization_interval_s=120.0,
    restart_time_s=60.0,
    catch_up_duration_s=300.0,
    scale_down_interval_s=600.0,
)
TUNED = replace(  # our choice on the traces of tests/data: few workers and few rescales without late records
    FAST,
    metrics_busy_time_aggregator="AVG",
    utilization_target=0.8,
    catch_up_duration_s=600.0,
    scale_down_interval_s=1800.0,
)
TUNED_85 = replace(TUNED, utilization_target=0.85, catch_up_duration_s=300.0)
DEMETER = FlinkParameters(  # the published runs of Demeter (ICPE 2024), operator 1.6, which had no delayed scale-down
    utilization_target=0.35,
    target_utilization_boundary=0.15,
    metrics_window_s=60.0,
    stabilization_interval_s=120.0,
    restart_time_s=60.0,
    catch_up_duration_s=300.0,
    scale_down_interval_s=0.0,
    scaling_parallelism_alignment_mode="EVENLY_SPREAD",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The metrics of a full window for L jobs, shape (L,), in records/s except lag_records; NaN unknown."""

    target: Array  # TARGET_DATA_RATE, the input
    processed: Array
    true_processing: Array  # capacity of the present size, infinite without input
    lag_records: Array


def capacity(p: FlinkParameters, rates: Metrics, utilization: Array | float, *, with_restart: bool) -> Array:
    """Capacity for the input at this utilization, for the catch-up and for a restart; whole records/s, shape (L,).

    AutoScalerUtils.getTargetProcessingCapacity. Utilization 0 is infinite capacity, for any known input.
    """
    catch_up_s, rate = p.catch_up_duration_s, rates.target
    extra = rates.lag_records / catch_up_s
    if with_restart:
        extra = extra + rate * p.restart_time_s / catch_up_s
    used = np.clip(np.broadcast_to(utilization, rate.shape), 0.0, 1.0)
    rounded = np.floor(extra + rate / np.where(used > 0, used, 1.0) + 0.5)
    return np.where((used > 0) | np.isnan(rounded), rounded, np.inf)


def outside_bounds(p: FlinkParameters, rates: Metrics) -> Mask:
    """Whether the present size is too small or too large, shape (L,).

    Only the test for "too large" includes the restart. A size is not too large while the job processes a backlog.
    """
    behind = rates.lag_records > p.backlog_processing_lag_threshold_s * rates.processed
    highest = np.where(behind, 1.0, p.utilization_target + p.target_utilization_boundary)
    lowest = np.where(behind, 0.0, p.utilization_target - p.target_utilization_boundary)
    able = rates.true_processing
    outside: Mask = (able < capacity(p, rates, highest, with_restart=False)) | (
        able > capacity(p, rates, lowest, with_restart=True)
    )
    return outside


class Flink:
    """Sets the size itself; each change restarts the job."""

    hpa: Hpa | None = None

    def __init__(self, job: OperatorSettings, parameters: FlinkParameters) -> None:
        lanes = len(job.max_workers)
        self._parameters = parameters
        self._most = np.minimum(np.where(job.partitions > 0, job.partitions, np.inf), job.max_workers)
        self._alignment = Alignment(job.partitions, parameters.scaling_parallelism_alignment_mode)
        settle_s = parameters.stabilization_interval_s
        self._window = SampleWindow(lanes, parameters.metrics_window_s, settle_s=settle_s, gauges=2)
        self._meter = SampleWindow(lanes, _METER_S)
        self._delayed = DelayedScaleDown(lanes, parameters.scale_down_interval_s)

    def wanted(self, seen: BaselineInput) -> Array:
        """The parallelism to rescale to now, shape (L,); NaN for none."""
        rates, current = self._collect(seen), seen.spec_workers
        known = ~np.isnan(rates.true_processing) & ~np.isnan(rates.target)
        decides = self._window.fresh & self._window.full & known
        size = np.where(decides, self._parallelism(rates, current), np.nan)
        outside = outside_bounds(self._parameters, rates)
        self._delayed.clear(size >= current)
        down, was_outside = self._delayed.recommend(seen.at_s, np.where(size < current, size, np.nan), outside)
        up = np.where((size > current) & outside, size, np.nan)
        chosen = np.where(was_outside & ~np.isnan(down), down, up)
        self._delayed.clear(~np.isnan(chosen))
        return chosen

    def _collect(self, seen: BaselineInput) -> Metrics:
        """Add a sample to the metrics window; returns the metrics of the window."""
        p, window, meter = self._parameters, self._window, self._meter
        busy_ratio = seen.busiest_ratio if p.metrics_busy_time_aggregator == "MAX" else seen.busy_ratio
        meter.take(seen, busy_ratio)
        window.take(seen, busy_ratio, self._observation(seen, meter.processed_records_per_s()))
        processed, busy = window.processed_records_per_s(), window.mean()
        flows = (processed > 0) & (busy > 0)
        by_busy = np.where(flows, processed, np.inf) / np.where(flows, busy, 1.0)
        by_busy = np.where(np.isnan(processed), np.nan, by_busy)
        observed = window.mean(1, p.observed_true_processing_rate_min_observations)
        switches = ~(by_busy <= observed * (1 + p.observed_true_processing_rate_switch_threshold))
        return Metrics(
            target=np.maximum(0.0, processed + window.backlog_records_per_s()),
            processed=processed,
            true_processing=np.where(switches & ~np.isnan(observed), observed, by_busy),
            lag_records=window.backlog_records(),
        )

    def _observation(self, seen: BaselineInput, metered: Array) -> Array:
        """The observed true processing rate: the throughput during a catch-up, otherwise the mean of earlier ones."""
        p = self._parameters
        catching_up = seen.backlog_records >= p.observed_true_processing_rate_lag_threshold_s * metered
        before = self._window.mean(1, p.observed_true_processing_rate_min_observations)
        return np.where(metered > 0, np.where(catching_up, metered, before), np.nan)

    def _parallelism(self, rates: Metrics, current: Array) -> Array:
        """The present size times needed / present capacity, within limits and aligned to the partitions; no delay."""
        p = self._parameters
        needed = capacity(p, rates, p.utilization_target, with_restart=True)
        factor = np.clip(needed / rates.true_processing, 1 - p.scale_down_max_factor, 1 + p.scale_up_max_factor)
        most = np.minimum(self._most, np.maximum(current, p.vertex_max_parallelism))
        least = np.minimum(current, p.vertex_min_parallelism)
        size = np.minimum(np.maximum(least, whole(factor * current)), most)
        aligned = self._alignment.next_size(size)
        end = np.where(size > current, most, np.minimum(current, most))
        return np.where((size != current) & (aligned <= end), aligned, size)
