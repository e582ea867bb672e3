"""A decision and the numbers it follows from: by column inside the pipeline, by row at the edges."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from adapter.core.bounds import Bound
from adapter.core.policies import policy_of
from adapter.core.reasons import Reason

if TYPE_CHECKING:  # `serve` reads decisions by row and carries no numpy
    from adapter.core.samples import Array


__all__ = ["CONFIDENCE", "Bound", "Decision", "Decisions", "Reason", "StageSignals"]

# How well the capacity of a size is known: PRIOR is the configured capacity of one worker, CARRIED a lower bound.
CONFIDENCE = ("none", "carried", "prior", "estimated", "observed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One workload at one tick. None is unknown. Times are Unix seconds, rates records (or bytes) a second."""

    workload: str
    at_s: float
    policy: str
    reason: Reason
    bound: Bound = Bound.NONE
    confidence: str = CONFIDENCE[0]
    fault: str = ""  # errors of sources, assumptions about offsets, annotations that cannot be read, falling counters
    dispute: str = ""  # two sources report backlogs that contradict
    stage: str = ""  # the deciding stage, "" for the whole workload
    bottleneck: str = ""  # the stage with the least room for its input, "" if no stage reports busy time
    required_workers: float | None = None  # served; None if there is no number to serve
    wanted_workers: float | None = None  # the policy's size before the bounds; None if a gate is closed
    needed_workers: float | None = None  # the load needs them now, whether or not a change pays
    keep_up_workers: float | None = None  # the first term of the deciding stage's size
    catch_up_workers: float | None = None  # the second term
    held_workers: float | None = None  # the target before this tick
    window_workers: float | None = None  # the largest size needed within the scale-down window
    spec_workers: float | None = None
    workers: float | None = None
    ready_workers: float | None = None
    min_workers: float | None = None
    max_workers: float | None = None  # the largest size of a scale-up
    max_by_default: float | None = None  # 1 if neither max_workers nor the HPA's maxReplicas is known, otherwise 0
    hpa_off: float | None = None  # 1 if the scale target is at 0 replicas and the HPA's minReplicas is above 0
    partitions: float | None = None  # None also if the last count is too old
    partitions_age_s: float | None = None
    slots_per_worker: float | None = None
    sink_healthy: float | None = None  # 1 or 0
    source_failed: float | None = None  # 1 if an error of a source may explain missing samples, otherwise 0
    bad_annotations: float | None = None  # annotations of the HPA that cannot be read
    allowed_workers: float | None = None  # more workers do not relieve the hot partition
    throughput_records_per_s: float | None = None
    input_rate_records_per_s: float | None = None
    forecast_input_rate_records_per_s: float | None = None
    backlog_records: float | None = None
    stuck_backlog_records: float | None = None  # in partitions whose offset does not move
    highest_partition_backlog_records: float | None = None
    growth_records_per_s: float | None = None
    backlog_time_s: float | None = None
    drain_time_s: float | None = None
    relative_lag_change_ratio: float | None = None
    utilization_ratio: float | None = None  # of the hottest stage: the largest of the ratios that it reports
    cpu_ratio: float | None = None  # the largest of all stages, as the next two
    memory_ratio: float | None = None
    network_ratio: float | None = None
    busiest_subtask_ratio: float | None = None  # of all stages
    load_ratio: float | None = None  # input / true rate of the bottleneck, as the next two
    true_rate_records_per_s: float | None = None  # throughput / busy time
    required_parallelism: float | None = None  # subtasks that carry the input at the target utilization
    relayed_load_ratio: float | None = None  # input / true rate of the fullest stage without a backlog of its own
    hottest_partition_ratio: float | None = None
    slowest_worker_ratio: float | None = None
    worker_capacity_records_per_s: float | None = None
    capacity_records_per_s: float | None = None  # of the present workers, as reliable as `confidence`
    change_workers: float | None = None  # the other size that the policy compared
    keep_behind_s: float | None = None  # the longest expected backlog time at the present size
    keep_after_s: float | None = None  # when it is reached
    change_behind_s: float | None = None  # the longest expected backlog time at the other size
    caught_up_s: float | None = None  # when the other size has caught up
    calm: float | None = None  # 1 if the job keeps pace without a backlog, otherwise 0
    in_step: float | None = None  # 1 if a scale-up waits until the end of a step of the input, otherwise 0
    full_stage: float | None = None  # 1 if a stage without a backlog of its own is full, otherwise 0
    held_back: float | None = None  # 1 if one full subtask of a later stage holds back the sources, otherwise 0
    expected_times: float | None = None  # an expected event multiplies the input by it
    blocking_rise_records_per_s: float | None = None  # of the input, until a scale-up can take effect
    too_small_workers: float | None = None  # the next smaller size over which partitions spread evenly, if too small
    too_small_capacity_records_per_s: float | None = None  # what it carries
    backlog_time_target_s: float | None = None
    short_backlog_time_s: float | None = None  # a shorter backlog time counts as none
    sample_age_s: float | None = None
    workers_age_s: float | None = None
    changed_age_s: float | None = None  # since replicas changed or the job processed nothing
    stopped_age_s: float | None = None  # since the job last processed nothing
    spec_changed_age_s: float | None = None  # since spec.replicas changed
    committed_age_s: float | None = None  # since a target on the same side of the current size was first decided
    blocked_s: float | None = None  # no scale-up for this long
    restarts: float | None = None  # unplanned ones within failures_window_s
    fleet: float | None = None  # index of the fleet that discovered the workload, None for a configured one

    @property
    def reference_workers(self) -> float | None:
        """`spec.replicas` of the scale target; the running workers where it is unknown."""
        return self.workers if self.spec_workers is None else self.spec_workers

    @property
    def is_stop_newer(self) -> bool:
        """Whether the job stopped processing after its workers changed."""
        return self.stopped_age_s is not None and self.stopped_age_s == self.changed_age_s

    @property
    def decided_age_s(self) -> float | None:
        """The age of the samples that the size follows from: throughput and backlog, or the partitions."""
        return self.partitions_age_s if policy_of(self.policy).follows_partitions else self.sample_age_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSignals:
    """The signals of one stage at one tick; units as in Decision."""

    workload: str
    stage: str
    throughput_records_per_s: float | None = None
    input_rate_records_per_s: float | None = None
    backlog_records: float | None = None
    growth_records_per_s: float | None = None
    backlog_time_s: float | None = None
    drain_time_s: float | None = None
    utilization_ratio: float | None = None
    load_ratio: float | None = None
    true_rate_records_per_s: float | None = None
    required_parallelism: float | None = None


TEXTS = ("policy", "reason", "bound", "confidence", "fault", "dispute", "stage", "bottleneck")  # fields of Decision
NUMBERS = tuple(f.name for f in fields(Decision) if f.name not in (*TEXTS, "workload", "at_s"))
STAGE_NUMBERS = tuple(f.name for f in fields(StageSignals) if f.name not in ("workload", "stage"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """All workloads of a shard at one tick, by column."""

    at_s: float
    text: Mapping[str, tuple[str, ...]]  # "workload" and TEXTS -> one string a workload
    numbers: Mapping[str, "Array"]  # NUMBERS -> shape (workloads,), NaN unknown
    stages: tuple[tuple[str, str], ...]  # (workload, stage) of every visible stage
    stage_numbers: Mapping[str, "Array"]  # STAGE_NUMBERS -> shape (stages,)
    record: Mapping[str, "Array"] = field(default_factory=dict)  # the decision inputs (core.record), (workloads,)
