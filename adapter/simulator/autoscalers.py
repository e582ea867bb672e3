"""The autoscalers of simulated jobs: our policies behind the HPA of our manifests, baselines as published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from adapter.core.samples import Array, IntArray
from adapter.simulator import fluid, hpa
from adapter.simulator.baselines import Baseline, BaselineInput, OperatorSettings
from adapter.simulator.baselines.registry import BASELINES
from adapter.simulator.policies import EPOCH_S, AdapterPolicies, policy_rules
from adapter.simulator.profiles import TICK_S
from adapter.simulator.world import SimulatedJob, World

_SCHEDULED = ""  # in place of a policy's name
_STATIC_ROOM = 1.2  # headroom of a careful operator over the workers that carry the peak


@dataclass(slots=True)
class _BaselineGroup:
    """One baseline, the jobs that it scales, and the memory of its HPA if it has one."""

    jobs: IntArray
    baseline: Baseline
    memory: hpa.Memory


class Autoscalers:
    """The policies of L jobs, and the HPAs that turn their numbers into replicas."""

    def __init__(self, cases: Sequence[SimulatedJob], world: World, begin_s: float = EPOCH_S) -> None:
        self._world = world
        self._least = np.minimum(np.maximum(world.of_profile("min_workers"), 1.0), world.max_workers)
        self._policies = tuple(_SCHEDULED if case.schedule_workers is not None else case.policy for case in cases)
        named = np.array(self._policies)
        self._ours = np.flatnonzero(~np.isin(named, (*BASELINES, _SCHEDULED)))
        self._scheduled = np.flatnonzero(named == _SCHEDULED)
        self._schedules = np.array([case.schedule_workers for case in cases if case.schedule_workers is not None])
        least, most = self._least[self._ours], world.max_workers[self._ours]
        self._hpa = hpa.Hpa(min_workers=least, max_workers=most, behavior=hpa.SHIPPED)
        self._memory = hpa.Memory()
        ours = [cases[job] for job in self._ours.tolist()]
        profiles = [case.profile for case in ours]
        rules = [policy_rules(case.policy, case.profile, case.rules) for case in ours]
        self._policy = AdapterPolicies(rules, profiles, begin_s)
        self._groups = [
            self._group(name, np.flatnonzero(named == name)) for name in BASELINES if name in self._policies
        ]

    def first_workers(self) -> Array:
        """The initial size of each job: a static policy's own size, otherwise the size for the first minute's input."""
        static = np.array(self._policies) == "static-peak"
        first = np.maximum(np.where(static, self._static_workers(), self._world.first_workers()), self._least)
        return self._follow_schedules(0.0, first)

    def sync(self, at_s: float, samples: Mapping[str, Array], state: fluid.JobState) -> tuple[Array, Array]:
        """Recommended workers, NaN for no number, and the desired replicas that follow; both (L,)."""
        required, workers = np.full(len(self._policies), np.nan), state.spec_workers.copy()
        if len(self._ours):
            own = {name: values[self._ours] for name, values in samples.items()}
            required[self._ours] = self._policy.required(at_s, own, _select(state, self._ours))
            workers[self._ours] = self._through_hpa(at_s, required[self._ours], workers[self._ours])
        for group in self._groups:
            wanted = group.baseline.wanted(self._observation(at_s, samples, state, group.jobs))
            required[group.jobs] = wanted
            workers[group.jobs] = self._replicas(group, at_s, wanted, workers[group.jobs])
        return required, self._follow_schedules(at_s, workers)

    def _follow_schedules(self, at_s: float, workers: Array) -> Array:
        if len(self._scheduled):
            workers[self._scheduled] = self._schedules[:, round(at_s / TICK_S)]
        return workers

    def _through_hpa(self, at_s: float, required: Array, workers: Array) -> Array:
        proposal = hpa.by_average_value(required, 1.0, workers, hpa.EXACT)
        written, self._memory = hpa.recommend(self._hpa, self._memory, workers, proposal, at_s)
        return written

    def _replicas(self, group: _BaselineGroup, at_s: float, wanted: Array, workers: Array) -> Array:
        if group.baseline.hpa is None:
            most = self._world.max_workers[group.jobs]
            return np.where(
                np.isnan(wanted), workers, np.clip(np.nan_to_num(wanted, nan=1.0), self._least[group.jobs], most)
            )
        bounded = replace(group.baseline.hpa, min_workers=self._least[group.jobs])
        written, group.memory = hpa.recommend(bounded, group.memory, workers, wanted, at_s)
        return written

    def _static_workers(self) -> Array:
        return np.minimum(np.ceil(self._world.of_profile("workers") * _STATIC_ROOM), self._world.max_workers)

    def _group(self, name: str, jobs: IntArray) -> _BaselineGroup:
        of = self._world
        job = OperatorSettings(
            worker_capacity_records_per_s=of.job_model.worker_capacity_records_per_s[jobs],
            partitions=of.of_profile("partitions")[jobs],
            max_workers=of.max_workers[jobs],
            static_peak_workers=self._static_workers()[jobs],
        )
        return _BaselineGroup(jobs, BASELINES[name](job), hpa.Memory())

    def _observation(
        self, at_s: float, samples: Mapping[str, Array], state: fluid.JobState, jobs: IntArray
    ) -> BaselineInput:
        changing = (state.pause_left_s > 0) | (state.spec_workers != state.ready_workers)
        return BaselineInput(
            at_s=at_s,
            sampled_at_s=at_s - self._world.of_profile("metric_delay_s")[jobs],
            appended_records=samples["appended"][jobs],
            processed_records=samples["processed"][jobs],
            backlog_records=samples["backlog"][jobs],
            cpu_ratio=samples["cpu"][jobs],
            busy_ratio=samples["busy"][jobs],
            busiest_ratio=samples["busiest"][jobs],
            spec_workers=state.spec_workers[jobs],
            ready_workers=state.ready_workers[jobs],
            restarting=changing[jobs].astype(float),
        )


def _select(state: fluid.JobState, jobs: IntArray) -> fluid.JobState:
    """The state of some jobs."""
    return fluid.JobState(**{field.name: getattr(state, field.name)[jobs] for field in fields(state)})
