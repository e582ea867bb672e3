"""The samples of simulated jobs as a metrics system delivers them: delayed, and some of them lost."""

import numpy as np

from adapter.core.samples import Array
from adapter.simulator import disturbances, fluid
from adapter.simulator.profiles import TICK_S
from adapter.simulator.world import World

CPU_WHILE_DOWN_RATIO = 0.3  # measured on restarting Flink jobs: 0.13 to 0.35
COLUMNS = ("appended", "processed", "backlog", "partition", "cpu", "busy", "busiest")


class Observer:
    """The samples of L jobs by column, each delayed by the job's metric_delay_s, rounded to whole ticks."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._late = np.round(world.of_profile("metric_delay_s") / TICK_S).astype(int)
        self._jobs = np.arange(len(self._late))
        self._ring = np.full((self._late.max() + 1, len(COLUMNS), len(self._late)), np.nan)
        self._cpu_ticks = np.maximum(np.round(world.of_profile("cpu_window_s") / TICK_S), 1)
        self._cpus = np.full((int(self._cpu_ticks.max()), len(self._late)), np.nan)
        self._idle_cpu = world.of_profile("idle_cpu_ratio")
        self._shows_while_down = world.of_profile("shows_while_down") > 0
        self._busy = np.zeros((3, len(self._late)))
        self._steps = 0

    def observe(self, state: fluid.JobState) -> None:
        """Observe one model step. Busy time is a mean over a tick, CPU over the profile's cpu_window_s."""
        idle = np.isnan(state.utilization_ratio)
        cpu = np.where(idle, CPU_WHILE_DOWN_RATIO, self._idle_cpu + (1 - self._idle_cpu) * state.utilization_ratio)
        self._busy += (cpu, np.where(idle, 0.0, state.utilization_ratio), np.where(idle, 0.0, state.busiest_ratio))
        self._steps += 1

    def newest_samples(self, tick: int, state: fluid.JobState) -> dict[str, Array]:
        """The newest samples available at a tick, by column, shape (L,); NaN where there are none."""
        appended, processed = np.round(state.appended_records), np.round(state.committed_records)
        processed = np.minimum(processed, appended)
        partition = np.round(state.backlog_records.max(axis=1))
        cpu, busy, busiest = self._busy / self._steps
        now = np.stack([appended, processed, appended - processed, partition, self._cpu(tick, cpu), busy, busiest])
        self._busy, self._steps = np.zeros_like(self._busy), 0
        down = (state.pause_left_s > 0) | (state.ready_workers <= 0)
        now[:4, down & ~self._shows_while_down] = np.nan
        now[5:, down] = np.nan
        now[:, self._world.for_each_job(disturbances.sample_arrives, tick * TICK_S) == 0] = np.nan
        self._ring[tick % len(self._ring)] = now
        newest = self._ring[(tick - self._late) % len(self._ring), :, self._jobs].T
        return dict(zip(COLUMNS, newest, strict=True))

    def _cpu(self, tick: int, cpu_ratio: Array) -> Array:
        """The mean over the last ticks, summed newest first so that results are reproducible bit for bit."""
        self._cpus[tick % len(self._cpus)] = cpu_ratio
        total, count = np.zeros_like(cpu_ratio), np.zeros_like(cpu_ratio)
        for age in range(len(self._cpus)):
            past = self._cpus[(tick - age) % len(self._cpus)]
            counts = (age < self._cpu_ticks) & ~np.isnan(past)
            total, count = total + np.where(counts, past, 0.0), count + counts
        return total / count
