"""The parameters of policies, gates and bounds: each once, with its unit, its bounds and the reason for its default."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _setting(default: Any, meaning: str, **bounds: float | bool | tuple[str, ...]) -> Any:
    """A parameter with its meaning and bounds (gt, ge, lt, le, one_of): the configuration reads them."""
    return field(default=default, metadata={"meaning": meaning, **bounds})


QUANTA = ("relative", "divisors", "none")
POLICIES = ("dataflow", "beam-flink")
_MOST_WORKERS = 100_000  # far beyond any cluster: larger is a slip


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How one workload is sized. Times in seconds, rates in records (or bytes) a second, ratios in 0..1."""

    policy: str = _setting("dataflow", "which published system's policy sizes the workload", one_of=POLICIES)

    rate_window_s: float = _setting(
        60.0, "rates and growth are taken over this window: four ticks of 15 s", gt=0, le=600
    )
    stale_after_s: float = _setting(
        45.0, "older worker counts decide nothing, the target is held: three ticks of 15 s", gt=0
    )
    error_after_s: float = _setting(180.0, "older samples are an error: the HPA freezes and shows our message", gt=0)
    settle_s: float = _setting(
        45.0, "no decision so soon after the worker count changed: the restart spoils the rates", ge=0
    )
    in_flight_timeout_s: float = _setting(
        300.0, "workers that are not ready for so long are no longer waited for", ge=0
    )

    time_to_reduce_backlog_s: float = _setting(
        60.0, "R: the backlog should be gone after this time (S0-09, S3-09)", gt=0
    )
    quanta: str = _setting("relative", "dataflow: which worker counts are allowed (S3-15, S3-16)", one_of=QUANTA)
    down_cpu_limit_ratio: float = _setting(
        0.9, "dataflow: a smaller size must stay under this utilisation (S3-22)", gt=0, le=1
    )
    short_backlog_time_s: float = _setting(
        10.0, "a shorter backlog is none: down needs it, up does not (S0-11, S3-20)", ge=0
    )
    up_backlog_time_s: float = _setting(120.0, "beam-flink: scale up above this backlog time (S0-10)", ge=0)
    up_cpu_ratio: float = _setting(0.9, "beam-flink: or above this utilisation (S0-10)", gt=0, le=1)
    down_cpu_ratio: float = _setting(0.7, "beam-flink: scale down only below this utilisation (S0-11)", gt=0, le=1)
    down_cpu_desired_ratio: float = _setting(
        0.7, "beam-flink: the utilisation a smaller size may reach; S0-13 leaves it open, so S0-11's band", gt=0, le=1
    )
    growth_noise_ratio: float = _setting(
        0.05, "growth below this share of the throughput is steady, not growth", ge=0, lt=1
    )
    worker_capacity_records_per_s: float | None = _setting(
        None, "what one worker carries, when known; else it is observed while the workload is behind", gt=0
    )

    min_workers: int = _setting(1, "never fewer; the HPA's minReplicas raises it", ge=0, le=_MOST_WORKERS)
    max_workers: int = _setting(
        100, "never more; the HPA's maxReplicas and the partitions lower it", ge=1, le=_MOST_WORKERS
    )
    max_step_up_workers: int | None = _setting(
        None, "at most so many more in one decision (S4-29)", ge=1, le=_MOST_WORKERS
    )
    max_step_down_workers: int | None = _setting(None, "at most so many fewer in one decision", ge=1, le=_MOST_WORKERS)

    pause_up_until_s: float = _setting(0.0, "Unix seconds until which nothing is scaled up; from `pause`", hidden=True)
    pause_down_until_s: float = _setting(
        0.0, "Unix seconds until which nothing is scaled down; from `pause`", hidden=True
    )


_DEFAULTS = Rules()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBook:
    """Who is sized by which rules. Configured workloads are known before they have a sample; found ones are not.

    by_workload: "namespace/name" -> its rules. by_fleet: the rules of found workloads, by the index of their fleet.
    """

    by_workload: Mapping[str, Rules]
    by_fleet: tuple[Rules, ...] = ()

    def of(self, workload: str, fleet: int | None) -> Rules:
        """The rules of one workload; the defaults for one that neither a name nor a fleet of the book speaks of."""
        found = _DEFAULTS if fleet is None or fleet >= len(self.by_fleet) else self.by_fleet[fleet]
        return self.by_workload.get(workload, found)
