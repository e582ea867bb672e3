"""The environment of L simulated jobs: their models, their input, and the random disturbances of each step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adapter.core.rules import Rules
from adapter.core.samples import Array, IntArray
from adapter.simulator import disturbances, fluid
from adapter.simulator.profiles import STEP_S, Profile
from adapter.simulator.sharing import worker_share

_ROUNDING = 1e-12
_LOADED_RATIO = 0.75  # utilization of the workers that a job starts with


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedJob:
    """One job to simulate."""

    rate_records_per_s: Array  # (steps,) input of each STEP_S
    lead_steps: int  # not scored
    policy: str
    profile: Profile
    seed: int
    rules: Rules | None = None  # of one of our policies; None derives them from the profile
    schedule_workers: Array | None = None  # (ticks + 1,) sizes to follow from each tick, instead of a policy


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The inputs of all jobs, shape (traces, steps), their running sums (traces, steps + 1), and each job's row."""

    rate_records_per_s: Array
    total_records: Array
    row: IntArray

    def rate(self, step: int) -> Array:
        """Input rate of each job in a step, records/s, shape (L,)."""
        column: Array = self.rate_records_per_s[self.row, step]
        return column

    def newer(self, step: int, age_s: float) -> Array:
        """Records that arrived in the age_s before the end of a step, shape (L,)."""
        before = max(step + 1 - round(age_s / STEP_S), 0)
        recent: Array = self.total_records[self.row, step + 1] - self.total_records[self.row, before]
        return recent

    def age_s(self, step: int, jobs: IntArray, behind_records: Array) -> Array:
        """Age, at the end of a step, of the record that is followed by this number of arrivals."""
        row, end = self.row[jobs], step + 1
        total = self.total_records[row, end]
        # After an hour without input, a rounding error in the count must not become an hour of delay.
        wanted = np.clip(total * (1 + _ROUNDING) - behind_records, 0.0, total)
        low, high = np.zeros(len(jobs), dtype=np.int64), np.full(len(jobs), end)
        for _ in range(end.bit_length()):
            middle = (low + high + 1) // 2
            below = self.total_records[row, middle] <= wanted
            low, high = np.where(below, middle, low), np.where(below, high, np.maximum(middle - 1, low))
        came = self.total_records[row, np.minimum(low + 1, end)] - self.total_records[row, low]
        part = np.divide(wanted - self.total_records[row, low], came, out=np.zeros_like(wanted), where=came > 0)
        age_s: Array = np.maximum((end - low - np.clip(part, 0.0, 1.0)) * STEP_S, 0.0)
        return age_s


class World:
    """Everything that does not depend on the policies. Disturbances are drawn once per profile and seed."""

    def __init__(self, cases: Sequence[SimulatedJob]) -> None:
        self.profiles = [case.profile for case in cases]
        steps = len(cases[0].rate_records_per_s)
        keys = [(replace(case.profile, metric_delay_s=0.0), case.seed) for case in cases]
        self._kinds = list(dict.fromkeys(keys))
        self.kind = np.array([self._kinds.index(key) for key in keys])
        self.partitions = max(max(profile.partitions, 1) for profile in self.profiles)
        self.slots = max(profile.max_workers for profile in self.profiles)
        span_s = steps * STEP_S
        drawn = {seed: disturbances.draw(seed, span_s, self.slots, self.partitions) for _, seed in self._kinds}
        self._drawn = [(profile, drawn[seed]) for profile, seed in self._kinds]
        self.arrivals = _arrivals(cases)
        self.max_workers = self.of_profile("max_workers")
        self.job_model = self._job_model()
        self.share = self._each(self._shares)
        self.demand_table = self._demand_table()

    def first_workers(self) -> Array:
        """The initial size of each job, for the input of its first minute."""
        rate = self.arrivals.rate_records_per_s[self.arrivals.row, :12].mean(axis=1)
        singles = rate / self.job_model.worker_capacity_records_per_s / _LOADED_RATIO
        needed = np.ceil(singles ** (1 / self.job_model.scaling_exponent))
        first: Array = np.clip(needed, 1, self.max_workers)
        return first

    def of_profile(self, name: str) -> Array:
        """One field of each job's profile, shape (L,)."""
        return np.array([float(getattr(profile, name)) for profile in self.profiles])

    def speed(self, t_s: float) -> Array:
        """Speed of each worker at t_s, shape (L, slots)."""
        return self._each(lambda profile, drawn: disturbances.worker_speed(profile, drawn, t_s))

    def for_each_job(self, function: Callable[..., object], *more: float) -> Array:
        """Call a function of (profile, disturbances, *more) for each job; returns shape (L, ...)."""
        return self._each(lambda profile, drawn: np.asarray(function(profile, drawn, *more), dtype=float))

    def _each(self, ask: Callable[[Profile, disturbances.Disturbances], Array]) -> Array:
        of_kind: Array = np.stack([ask(profile, drawn) for profile, drawn in self._drawn])[self.kind]
        return of_kind

    def _shares(self, profile: Profile, drawn: disturbances.Disturbances) -> Array:
        known = disturbances.partition_shares(profile, drawn)
        return np.pad(known, (0, self.partitions - len(known)))

    def _job_model(self) -> fluid.JobModel:
        return fluid.JobModel(
            worker_capacity_records_per_s=self.of_profile("worker_capacity_records_per_s"),
            scaling_exponent=self.of_profile("scaling_exponent"),
            pooled=self.of_profile("partitions") == 0,
            start_delay_s=self._each(lambda p, w: disturbances.log_normal(p.start_s, p.start_spread, w.starts)),
            pause_up_s=self._each(lambda p, w: disturbances.log_normal(p.pause_up_s, p.pause_spread, w.pauses)),
            pause_down_s=self._each(lambda p, w: disturbances.log_normal(p.pause_down_s, p.pause_spread, w.pauses)),
            replay_s=self._each(lambda p, w: p.checkpoint_s * w.checkpoints),
            warm_up_s=self.of_profile("warm_up_s"),
            warm_up_ratio=self.of_profile("warm_up_ratio"),
        )

    def _demand_table(self) -> Array:
        """The input that 1, 2, ... workers can process without noise, shape (L, slots)."""
        steady = self._each(lambda p, w: disturbances.worker_speed(replace(p, speed_noise=0.0), w, 0.0))
        one = np.ones(len(self.profiles))
        load = fluid.Conditions(rate_records_per_s=one, share=self.share, speed_ratio=steady, sink_ratio=one)
        flows = []
        for workers in range(1, self.slots + 1):
            held = worker_share(self.share, self.job_model.pooled, one * workers, self.slots)
            flows.append(fluid.flow_capacity(self.job_model, load, one * workers, held).flow_records_per_s)
        return np.stack(flows, axis=1)

    def capacity_records_per_s(self, workers: Array) -> Array:
        """The input that these workers can process without noise, shape (L,)."""
        column: Array = self.demand_table[np.arange(len(workers)), np.maximum(workers, 1).astype(int) - 1]
        return np.where(workers > 0, column, 0.0)

    def demand_workers(self, rate_records_per_s: Array) -> Array:
        """The fewest workers that can process an input, shape (L,); all workers where none suffice."""
        enough = self.demand_table >= rate_records_per_s[:, None]
        return np.where(enough.any(axis=1), np.minimum(enough.argmax(axis=1) + 1.0, self.max_workers), self.max_workers)


def _arrivals(cases: Sequence[SimulatedJob]) -> Arrivals:
    rows: dict[int, int] = {}
    row = np.array([rows.setdefault(id(case.rate_records_per_s), len(rows)) for case in cases])
    firsts = [int(np.flatnonzero(row == index)[0]) for index in range(len(rows))]
    rate = np.stack([cases[first].rate_records_per_s for first in firsts])
    total = np.concatenate([np.zeros((len(rate), 1)), np.cumsum(rate * STEP_S, axis=1)], axis=1)
    return Arrivals(rate, total, row)
