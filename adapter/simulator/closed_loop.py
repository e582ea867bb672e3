"""Simulate many jobs in a closed loop: jobs -> samples -> policies -> workers -> jobs, and score the result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array
from adapter.simulator import disturbances, fluid
from adapter.simulator.autoscalers import Autoscalers
from adapter.simulator.observer import Observer
from adapter.simulator.policies import EPOCH_S
from adapter.simulator.profiles import STEP_S, TICK_S
from adapter.simulator.score import LATE_S, StepResult, Tally
from adapter.simulator.sharing import worker_share
from adapter.simulator.world import SimulatedJob, World

STEPS_A_TICK = round(TICK_S / STEP_S)
SERIES = (
    "rate_records_per_s",
    "capacity_records_per_s",
    "backlog_records",
    "delay_s",
    "ready_workers",
    "paid_workers",
    "required_workers",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run."""

    tally: Tally  # sums over the scored steps
    series: dict[str, Array]  # name of SERIES -> (ticks, L), with the lead-in; empty unless run() records it


def run(
    cases: Sequence[SimulatedJob],
    record: bool = False,
    begin_s: float = EPOCH_S,
    progress: Callable[[float], None] = lambda share: None,
) -> Outcome:
    """Simulate jobs with the same number of steps. The jobs do not influence each other.

    record: also return the series. begin_s: Unix seconds of the first step, for rules with times (pauses, excluded
    periods, expected events). progress: is called with the share of the steps that are done, once a tick.
    """
    jobs = _Jobs(cases, begin_s)
    recorded: list[tuple[Array, ...]] = []
    lead = np.array([case.lead_steps for case in cases])
    steps = len(cases[0].rate_records_per_s)
    for step in range(steps):
        begins: Mask = np.equal(lead, step)
        if step and begins.any():
            jobs.tally.reset(begins)
        result = jobs.step(step)
        jobs.tally.add(result)
        if (step + 1) % STEPS_A_TICK == 0:
            required = jobs.sync((step + 1) // STEPS_A_TICK)
            if record:
                recorded.append(jobs.present(result, step, required))
            progress((step + 1) / steps)
    columns = zip(SERIES, zip(*recorded, strict=True), strict=True) if recorded else ()
    return Outcome(tally=jobs.tally, series={name: np.stack(values) for name, values in columns})


class _Jobs:
    """The current state of the jobs of one run."""

    def __init__(self, cases: Sequence[SimulatedJob], begin_s: float) -> None:
        self.tally = Tally.empty(len(cases))
        self._world = world = World(cases)
        self._autoscalers = Autoscalers(cases, world, begin_s)
        self._observer = Observer(world)
        self._state = fluid.initial_state(self._autoscalers.first_workers(), world.partitions)
        self._held = np.zeros((len(cases), world.slots))  # the share of the input that each worker holds
        self._held_at_workers = np.full(len(cases), -1.0)
        self._load = fluid.Conditions(
            rate_records_per_s=np.zeros(len(cases)),
            share=world.share,
            speed_ratio=world.speed(0.0),
            sink_ratio=np.ones(len(cases)),
        )
        self._demand = np.zeros(len(cases))
        self._restarted_at_s = np.full(len(cases), -np.inf)
        self._faulty = np.array([profile.faults for profile in world.profiles])

    def step(self, step: int) -> StepResult:
        """One step of the model: update the conditions, then process records."""
        before, load = self._state, self._conditions(step)
        if self._faulty.any():
            pause_s = self._world.for_each_job(disturbances.failure_s, step * STEP_S, STEP_S)
            before = fluid.fail(self._world.job_model, before, load, pause_s)
        self._state = after = fluid.step(self._world.job_model, before, load, STEP_S)
        self._restarted_at_s = np.where(after.changes > before.changes, step * STEP_S, self._restarted_at_s)
        self._observer.observe(after)
        return self._result(step, load, before, after)

    def sync(self, tick: int) -> Array:
        """Run the policies and their HPAs once; returns required_workers, shape (L,), NaN for no number."""
        samples = self._observer.newest_samples(tick, self._state)
        required, workers = self._autoscalers.sync(tick * TICK_S, samples, self._state)
        self._state = fluid.rescale(self._world.job_model, self._state, workers)
        return required

    def present(self, result: StepResult, step: int, required: Array) -> tuple[Array, ...]:
        """The current values of SERIES."""
        state = self._state
        waits = state.appended_records - state.committed_records
        rate, capacity = self._world.arrivals.rate(step), self._world.capacity_records_per_s(state.ready_workers)
        return rate, capacity, waits, result.delay_s, state.ready_workers, state.paid_workers, required

    def _conditions(self, step: int) -> fluid.Conditions:
        """The conditions of a step. Speeds change once a minute, shares of the input when workers change."""
        t_s = step * STEP_S
        renewed = t_s % disturbances.NOISE_STEP_S == 0
        if renewed:
            sink = self._world.for_each_job(disturbances.sink_ratio, t_s)
            self._load = replace(self._load, speed_ratio=self._speed(t_s), sink_ratio=sink)
        workers = self._state.ready_workers
        changed = np.flatnonzero(self._held_at_workers != workers)
        if len(changed):
            pooled = self._world.job_model.pooled[changed]
            shares = worker_share(self._world.share[changed], pooled, workers[changed], self._world.slots)
            self._held[changed], self._held_at_workers = shares, workers
        if renewed or len(changed):
            flow = fluid.flow_capacity(self._world.job_model, self._load, workers, self._held)
            self._load = replace(self._load, flow_capacity=flow)
        if step % STEPS_A_TICK == 0:
            self._demand = self._world.demand_workers(self._world.arrivals.rate(step))
        return replace(self._load, rate_records_per_s=self._world.arrivals.rate(step))

    def _speed(self, t_s: float) -> Array:
        """Speed of each worker. A stuck worker runs at STUCK_RATIO until all workers restart."""
        speed = self._world.speed(t_s)
        if not self._faulty.any():
            return speed
        since_s, which = self._world.for_each_job(disturbances.stuck_worker, t_s).T
        slow = np.flatnonzero(since_s >= self._restarted_at_s)
        worker = (which[slow] * self._state.ready_workers[slow]).astype(int)
        speed[slow, worker] *= disturbances.STUCK_RATIO
        return speed

    def _result(self, step: int, load: fluid.Conditions, before: fluid.JobState, after: fluid.JobState) -> StepResult:
        new = after.committed_records - before.committed_records
        delay, late = self._lateness(step, load, before, after)
        worked = 1 - after.idle_s / STEP_S
        return StepResult(
            at_s=(step + 1) * STEP_S,
            dt_s=STEP_S,
            delay_s=delay,
            paid_workers=after.paid_workers,
            working_workers=after.ready_workers * worked,
            new_records=new,
            late_records=np.minimum(late, new),  # replayed records were counted the first time
            demand_workers=self._demand,
            change=after.ready_workers - before.ready_workers,
            ready_workers=after.ready_workers,
            paused_s=after.idle_s,
        )

    def _lateness(
        self, step: int, load: fluid.Conditions, before: fluid.JobState, after: fluid.JobState
    ) -> tuple[Array, Array]:
        """Age of the oldest waiting record, shape (L,), and the number of records processed after LATE_S, (4, L).

        A partition is processed in order: of the records that waited, those that arrived first are processed.
        """
        arrivals = self._world.arrivals
        delay_s, late = np.zeros(len(after.waiting_records)), np.zeros((len(LATE_S), len(after.waiting_records)))
        some = np.flatnonzero((before.waiting_records > 0) | (after.waiting_records > 0))
        if not len(some):
            return delay_s, late
        share, left = load.share[some], after.backlog_records[some]
        behind = np.divide(left, share, out=np.zeros_like(left), where=share > 0)
        delay_s[some] = arrivals.age_s(step, some, behind.max(axis=1))
        waited = before.backlog_records[some] + share * (load.rate_records_per_s[some] * STEP_S)[:, None]
        for row, late_s in enumerate(LATE_S):
            newer = share * arrivals.newer(step, late_s)[some, None]
            late[row, some] = np.clip(waited - np.maximum(left, newer), 0.0, None).sum(axis=1)
        return delay_s, late
