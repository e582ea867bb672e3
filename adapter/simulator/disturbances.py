"""Random disturbances, drawn before a run: with one seed, all policies get the same speeds, pauses, gaps and faults."""

from dataclasses import dataclass

import numpy as np

from adapter.core.formatting import DAY_S
from adapter.core.samples import Array
from adapter.simulator.profiles import Profile

MOST_CHANGES = 512  # later changes reuse the draws of the first ones
NOISE_STEP_S = 60.0
NOISE_MEMORY_S = 120.0
SINK_S = (300.0, 1800.0)
SINK_RATIO = (0.2, 0.6)
STUCK_S = 1800.0
STUCK_RATIO = 0.1
FAILURE_S = (65.0, 70.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbances:
    """The random numbers of one seed, standard normal or uniform; the profile scales them.

    The numbers of a longer span begin with those of a shorter one. The last four have one event a day: its start, and
    its size where k > 1.
    """

    workers: Array  # (N,) normal, constant over the run
    partitions: Array  # (P,) normal
    noise: Array  # (minutes, N) AR(1) of unit variance
    starts: Array  # (MOST_CHANGES,) normal
    pauses: Array  # (MOST_CHANGES,) normal
    checkpoints: Array  # (MOST_CHANGES,) uniform
    missing: Array  # (seconds,) uniform
    blackouts: Array  # (days, k) uniform
    sinks: Array  # (days, k) uniform
    stuck_workers: Array  # (days, k) uniform
    failures: Array  # (days, k) uniform


def draw(seed: int, span_s: float, workers: int, partitions: int) -> Disturbances:
    """Draw the disturbances of a seed over span_s. Each kind, and each worker's noise, has its own random stream."""

    def stream(*kind: int) -> np.random.Generator:
        return np.random.default_rng((seed, *kind))

    minutes = int(span_s // NOISE_STEP_S) + 2
    days = int(span_s // DAY_S) + 1
    return Disturbances(
        workers=stream(0).standard_normal(workers),
        partitions=stream(1).standard_normal(partitions),
        noise=_autocorrelated(
            np.stack([stream(2, worker).standard_normal(minutes) for worker in range(workers)], axis=1)
        ),
        starts=stream(3).standard_normal(MOST_CHANGES),
        pauses=stream(4).standard_normal(MOST_CHANGES),
        checkpoints=stream(5).uniform(size=MOST_CHANGES),
        missing=stream(6).uniform(size=int(span_s) + 2),
        blackouts=stream(7).uniform(size=(days, 1)),
        sinks=stream(8).uniform(size=(days, 3)),
        stuck_workers=stream(9).uniform(size=(days, 2)),
        failures=stream(10).uniform(size=(days, 2)),
    )


def _autocorrelated(shocks: Array) -> Array:
    """AR(1) along the first axis, stationary with variance 1."""
    keep = float(np.exp(-NOISE_STEP_S / NOISE_MEMORY_S))
    noise = shocks.copy()
    for minute in range(1, len(noise)):
        noise[minute] = keep * noise[minute - 1] + np.sqrt(1 - keep * keep) * shocks[minute]
    return noise


def worker_speed(profile: Profile, drawn: Disturbances, t_s: float) -> Array:
    """Speed of each worker at t_s, shape (N,); about 1."""
    for_life = np.exp(profile.worker_spread * drawn.workers - profile.worker_spread**2 / 2)
    now = 1 + profile.speed_noise * drawn.noise[int(t_s // NOISE_STEP_S)]
    return np.asarray(for_life * np.clip(now, 0.3, 1.7))


def partition_shares(profile: Profile, drawn: Disturbances) -> Array:
    """Share of the input that each partition receives, shape (max(partitions, 1),)."""
    count = max(profile.partitions, 1)
    weight = np.exp(profile.skew * drawn.partitions[:count])
    return np.asarray(weight / weight.sum())


def log_normal(median_s: float, spread: float, normal: Array) -> Array:
    """Log-normal durations."""
    return np.asarray(median_s * np.exp(spread * normal))


def sample_arrives(profile: Profile, drawn: Disturbances, t_s: float) -> bool:
    """Whether the sample taken at t_s arrives."""
    begin_s = _begin_s(t_s, profile.blackout_s, drawn.blackouts[int(t_s // DAY_S), 0])
    dark = begin_s <= t_s < begin_s + profile.blackout_s
    return not dark and bool(drawn.missing[int(t_s)] >= profile.missing_ratio)


def sink_ratio(profile: Profile, drawn: Disturbances, t_s: float) -> float:
    """The factor by which a slow sink reduces the speed; 1 while the sink is healthy."""
    begin, length, depth = drawn.sinks[int(t_s // DAY_S)]
    begin_s = _begin_s(t_s, SINK_S[1], begin)
    length_s = SINK_S[0] + (SINK_S[1] - SINK_S[0]) * length
    slow = profile.faults and begin_s <= t_s < begin_s + length_s
    return float(SINK_RATIO[0] + (SINK_RATIO[1] - SINK_RATIO[0]) * depth) if slow else 1.0


def stuck_worker(profile: Profile, drawn: Disturbances, t_s: float) -> tuple[float, float]:
    """When the stuck worker became stuck (NaN: none is), and its position among the workers, 0..1."""
    begin, which = drawn.stuck_workers[int(t_s // DAY_S)]
    begin_s = _begin_s(t_s, STUCK_S, begin)
    return (float(begin_s) if profile.faults and begin_s <= t_s < begin_s + STUCK_S else np.nan), float(which)


def failure_s(profile: Profile, drawn: Disturbances, t_s: float, dt_s: float) -> float:
    """How long a failure within [t_s, t_s + dt_s) stops the job; 0 without a failure."""
    begin, length = drawn.failures[int(t_s // DAY_S)]
    begin_s = _begin_s(t_s, dt_s, begin)
    strikes = profile.faults and t_s <= begin_s < t_s + dt_s
    return float(FAILURE_S[0] + (FAILURE_S[1] - FAILURE_S[0]) * length) if strikes else 0.0


def _begin_s(t_s: float, longest_s: float, begin: float) -> float:
    """When the event of the day begins, which ends within that day. begin: uniform."""
    return DAY_S * (t_s // DAY_S) + (DAY_S - longest_s) * begin
