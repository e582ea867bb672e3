"""The workloads of the embedded fleet. Their input and faults depend on the seed and the time alone.

Time is compressed: a wave takes 90 s and a fault 30 to 45 s, so that two minutes show every kind of fault once.
"""

from dataclasses import dataclass

import numpy as np

from adapter.core.samples import Array
from adapter.simulator.fluid import Conditions, JobModel

NAMESPACE = "demo"
PARTITIONS = 12
MIN_WORKERS = 1
MAX_WORKERS = 12  # of 12 partitions: 1, 2, 3, 4, 6 and 12 workers share them evenly
WORKER_CAPACITY_RECORDS_PER_S = 100.0
CYCLE_S = 180  # the faults repeat, so that a page opened at any time shows them
SINE_PERIOD_S = 90
ONBOARDING_S = 30
SPIKE_S = 10
SPIKE_EVERY_S = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoWorkload:
    """One workload of the demonstration."""

    name: str
    rate_records_per_s: float  # input at rest
    workers: int
    fault_s: tuple[int, int] = (0, 0)  # start and end of its fault, seconds of every cycle


WORKLOADS = (
    DemoWorkload(name="flaky-metrics", rate_records_per_s=230, workers=3, fault_s=(60, 90)),
    DemoWorkload(name="hot-partition", rate_records_per_s=500, workers=6, fault_s=(30, 60)),
    DemoWorkload(name="idle", rate_records_per_s=0, workers=1),
    DemoWorkload(name="onboarding-step", rate_records_per_s=80, workers=1),
    DemoWorkload(name="sine", rate_records_per_s=500, workers=6),
    DemoWorkload(name="slow-sink", rate_records_per_s=330, workers=4, fault_s=(75, 105)),
    DemoWorkload(name="spikes", rate_records_per_s=150, workers=2),
    # 92.5 % of four workers: every policy needs more than three and no more than four, so the number never changes.
    DemoWorkload(name="steady", rate_records_per_s=370, workers=4),
    DemoWorkload(name="stuck", rate_records_per_s=250, workers=3, fault_s=(40, 85)),
)
NAMES = tuple(workload.name for workload in WORKLOADS)
_RATE_RECORDS_PER_S = np.array([workload.rate_records_per_s for workload in WORKLOADS])
# Half of the input on the first partition: more than one worker can process.
_HOT_SHARE = np.array([0.5] + [0.5 / (PARTITIONS - 1)] * (PARTITIONS - 1))


def job_model() -> JobModel:
    """The model of the jobs: a worker starts in 3 s, a rescale stops the job for 2 s, and the warm-up takes 5 s."""
    every = np.ones((len(WORKLOADS), 1))
    return JobModel(
        worker_capacity_records_per_s=every[:, 0] * WORKER_CAPACITY_RECORDS_PER_S,
        scaling_exponent=every[:, 0],
        pooled=every[:, 0] < 1,
        start_delay_s=every * 3,
        pause_up_s=every * 2,
        pause_down_s=every * 2,
        replay_s=every * 0,
        warm_up_s=every[:, 0] * 5,
        warm_up_ratio=every[:, 0] * 0.5,
    )


def load(seed: int, t_s: int) -> Conditions:
    """The conditions of the second that begins t_s after the start; t_s may be negative, faults begin at 0."""
    rates = _RATE_RECORDS_PER_S.copy()
    rates[NAMES.index("sine")] *= _noise(seed, t_s) * (1 + 0.8 * np.sin(2 * np.pi * t_s / SINE_PERIOD_S))
    rates[NAMES.index("spikes")] *= _noise(seed + 1, t_s) * _spike(seed, t_s)
    rates[NAMES.index("onboarding-step")] *= 1 if t_s < ONBOARDING_S else 9
    share = np.full((len(WORKLOADS), PARTITIONS), 1 / PARTITIONS)
    if has_fault("hot-partition", t_s):
        share[NAMES.index("hot-partition")] = _HOT_SHARE
    stuck = _factor_of("stuck", 0.0 if has_fault("stuck", t_s) else 1.0)
    return Conditions(
        rate_records_per_s=rates,
        share=share,
        speed_ratio=np.repeat(stuck[:, None], MAX_WORKERS, axis=1),
        sink_ratio=_factor_of("slow-sink", 0.3 if has_fault("slow-sink", t_s) else 1.0),
    )


def has_fault(name: str, t_s: int) -> bool:
    """Whether the workload's fault is active t_s after the start."""
    begin_s, end_s = WORKLOADS[NAMES.index(name)].fault_s
    return t_s >= 0 and begin_s <= t_s % CYCLE_S < end_s


def _factor_of(name: str, value: float) -> Array:
    """A factor for each workload: `value` for one, 1 for the others."""
    values = np.ones(len(WORKLOADS))
    values[NAMES.index(name)] = value
    return values


def _noise(seed: int, t_s: int) -> float:
    """A random factor of about 1, different every second."""
    return float(np.random.default_rng((seed, abs(t_s), int(t_s < 0))).normal(1.0, 0.03))


def _spike(seed: int, t_s: int) -> float:
    """The factor of the spikes: one of 2 to 5 at a random moment in every SPIKE_EVERY_S seconds, otherwise 1."""
    block, second = divmod(t_s, SPIKE_EVERY_S)
    chance = np.random.default_rng((seed, abs(block), int(block < 0)))
    begin_s = chance.integers(0, SPIKE_EVERY_S - SPIKE_S)
    factor = float(chance.uniform(2, 5))
    return factor if begin_s <= second < begin_s + SPIKE_S else 1.0
