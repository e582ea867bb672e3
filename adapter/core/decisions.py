"""What was decided and from which numbers: by column inside the pipeline, by row at the edges."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `serve` reads decisions by row and carries no numpy
    from adapter.core.samples import Array


class Reason(StrEnum):
    """Why a target is what it is; the first rule that applied. README's table has one row a member."""

    PAUSED = "Paused"
    NO_DATA = "NoDataYet"
    EXPIRED = "Expired"
    STALE = "Stale"
    NO_WORKERS = "WorkersUnknown"
    IN_FLIGHT = "ReplicasInFlight"
    SETTLING = "Settling"
    NO_PROGRESS = "NoProgress"
    UP = "ScaleUp"
    DOWN = "ScaleDown"
    HOLD = "Hold"


class Bound(StrEnum):
    """What cut the wanted size."""

    NONE = ""
    MIN = "min"
    MAX = "max"
    PARTITIONS = "partitions"
    STEP = "step"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One workload at one tick. None is unknown. Times Unix seconds, rates records (or bytes) a second.

    required_workers: what is served; None when there is no number to serve.
    wanted_workers: the policy's own answer before bounds; None where no policy ran.
    keep_up_workers, catch_up_workers: its two terms, of the deciding stage.
    fault: what a source said about the missing samples, else "".
    stage: the stage that decided, "" for the whole workload.
    fleet: index of the fleet that found the workload, None for a configured one.
    """

    workload: str
    at_s: float
    policy: str
    reason: Reason
    bound: Bound = Bound.NONE
    fault: str = ""
    stage: str = ""
    required_workers: float | None = None
    wanted_workers: float | None = None
    keep_up_workers: float | None = None
    catch_up_workers: float | None = None
    spec_workers: float | None = None
    workers: float | None = None
    ready_workers: float | None = None
    min_workers: float | None = None
    max_workers: float | None = None
    partitions: float | None = None
    throughput_records_per_s: float | None = None
    input_rate_records_per_s: float | None = None
    backlog_records: float | None = None
    growth_records_per_s: float | None = None
    backlog_time_s: float | None = None
    drain_time_s: float | None = None
    utilization_ratio: float | None = None
    worker_capacity_records_per_s: float | None = None
    backlog_time_target_s: float | None = None
    sample_age_s: float | None = None
    workers_age_s: float | None = None
    changed_age_s: float | None = None
    fleet: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSignals:
    """What one stage of a workload showed at one tick; units as in Decision."""

    workload: str
    stage: str
    throughput_records_per_s: float | None = None
    input_rate_records_per_s: float | None = None
    backlog_records: float | None = None
    growth_records_per_s: float | None = None
    backlog_time_s: float | None = None
    drain_time_s: float | None = None
    utilization_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """All workloads of a shard at one tick, by column.

    text: field of Decision -> one string a workload (workload, policy, reason, bound, fault, stage).
    numbers: field of Decision -> shape (len(workloads),), NaN unknown.
    stages: (workload, stage) of every visible stage; stage_numbers: field of StageSignals -> shape (len(stages),).
    """

    at_s: float
    text: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, "Array"]
    stages: tuple[tuple[str, str], ...]
    stage_numbers: Mapping[str, "Array"]
