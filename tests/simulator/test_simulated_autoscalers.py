"""The autoscalers of simulated jobs, and the rules of their policies."""

from dataclasses import replace

import numpy as np
import pytest

from adapter.core.rules import POLICIES, Rules
from adapter.core.samples import Array
from adapter.errors import ConfigError
from adapter.simulator import fluid
from adapter.simulator.autoscalers import Autoscalers
from adapter.simulator.baselines.registry import BASELINES
from adapter.simulator.observer import COLUMNS
from adapter.simulator.policies import policy_rules
from adapter.simulator.profiles import PROFILES, TICK_S
from adapter.simulator.world import SimulatedJob, World

PROFILE = PROFILES["consumer-group"]


def cases(*policies: str, rate: float = 3000.0) -> list[SimulatedJob]:
    input_rate = np.full(60, rate)
    return [SimulatedJob(input_rate, 0, policy, PROFILE, 1) for policy in policies]


def a_state(workers: list[float]) -> fluid.JobState:
    return fluid.initial_state(np.array(workers), 180)


def samples(tick: int, backlog: Array, utilization: float) -> dict[str, Array]:
    """The samples of jobs that process 3000 records/s."""
    one = np.ones(len(backlog))
    counts = {"appended": 45_000.0 * tick * one + backlog, "processed": 45_000.0 * tick * one, "backlog": backlog}
    shared = {"partition": np.round(backlog / PROFILE.partitions)}
    return counts | shared | dict.fromkeys(("cpu", "busy", "busiest"), utilization * one)


def requested(policies: tuple[str, ...], ticks: int = 12, backlog: float = 0.0, utilization: float = 0.75) -> Array:
    """The last target of each policy if the size never changes."""
    result = cases(*policies)
    sizing, state = Autoscalers(result, World(result)), a_state([4.0] * len(result))
    for tick in range(ticks):
        _, workers = sizing.sync(tick * TICK_S, samples(tick, np.full(len(result), backlog), utilization), state)
    return workers


def test_a_static_job_begins_with_its_peak_and_the_others_with_their_first_minute() -> None:
    result = cases("drain", "static-peak", "ds2")

    assert Autoscalers(result, World(result)).first_workers().tolist() == [4, 48, 4]


def test_the_order_of_jobs_does_not_matter() -> None:
    policies = ("drain", "static-peak", "keda-10", "ds2", "static-peak", "netflix")

    together = requested(policies, backlog=20_000.0)

    assert together.tolist() == [requested((policy,), backlog=20_000.0)[0] for policy in policies]
    assert together[1] == together[4] == 48


@pytest.mark.parametrize("policy", [*sorted(POLICIES), *sorted(set(BASELINES) - {"static-peak"})])
def test_without_samples_the_size_stays(policy: str) -> None:
    result = cases(policy)
    sizing, unknown = Autoscalers(result, World(result)), dict.fromkeys(COLUMNS, np.array([np.nan]))
    for tick in range(8):
        _, workers = sizing.sync(tick * TICK_S, unknown, a_state([7.0]))

        assert workers.tolist() == [7]


@pytest.mark.parametrize("policy", [*sorted(POLICIES), *sorted(BASELINES)])
def test_every_policy_stays_within_one_and_max_workers(policy: str) -> None:
    assert 1 <= requested((policy,), backlog=0.0, utilization=0.01)[0] <= PROFILE.max_workers
    assert 1 <= requested((policy,), backlog=1e9, utilization=1.0)[0] <= PROFILE.max_workers


def test_our_policies_scale_up_through_the_shipped_hpa() -> None:
    """One step may go all the way: the manifests allow as many pods as maxReplicas."""
    result = cases("dataflow")
    sizing, state = Autoscalers(result, World(result)), a_state([1.0])
    for tick in range(12):
        required, workers = sizing.sync(tick * TICK_S, samples(tick, np.array([4.5e6]), 1.0), state)

    assert required[0] > 5
    assert workers.tolist() == required.tolist()


def test_rules_contain_the_rescale_cost_and_metric_delay() -> None:
    profile = replace(PROFILES["netflix"], metric_delay_s=120.0)

    rules = policy_rules("drain", profile)

    assert (rules.policy, rules.max_workers, rules.rescale_pause_s) == ("drain", 60, 120)
    assert (rules.worker_start_s, rules.warm_up_s, rules.replay_s, rules.metric_delay_s) == (60, 120, 0, 120)


def test_a_policy_name_may_contain_parameters() -> None:
    rules = policy_rules("drain:target_utilization_ratio=0.9+backlog_time_target_s=120", PROFILE)

    assert rules == replace(policy_rules("drain", PROFILE), target_utilization_ratio=0.9, backlog_time_target_s=120.0)


def test_a_policy_with_default_settings_has_the_defaults_whatever_a_rescale_costs() -> None:
    rules = policy_rules("drain:defaults+rescale_worth_s=60", PROFILES["netflix"])

    assert rules == Rules(policy="drain", max_workers=60, rescale_worth_s=60.0)


def test_defaults_know_no_cost_of_a_rescale_in_given_rules_either() -> None:
    given = Rules(rescale_pause_s=600.0, rescale_worth_s=120.0)
    rules = policy_rules("drain:defaults", PROFILE, given)
    assert (rules.rescale_pause_s, rules.rescale_worth_s) == (Rules().rescale_pause_s, 120.0)


def test_given_rules_replace_all_but_policy_and_max_workers() -> None:
    given = Rules(rescale_pause_s=77.0, policy="varga")

    assert policy_rules("drain", PROFILE, given) == replace(given, policy="drain", max_workers=PROFILE.max_workers)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        pytest.param(
            "drain:target_utilisation_ratio=0.9", "did you mean target_utilization_ratio?", id="a near miss is named"
        ),
        pytest.param("drain:speed=1", "there is no parameter 'speed'", id="no such parameter"),
        pytest.param("drain:target_utilization_ratio=2", "at most 1", id="above its bound"),
        pytest.param("drain:target_utilization_ratio=0", "more than 0", id="at a bound that is not included"),
        pytest.param("drain:target_utilization_ratio=nan", "got 'nan'", id="no number"),
        pytest.param("drain:target_utilization_ratio=much", "got 'much'", id="a word"),
        pytest.param("drain:target_utilization_ratio", "got ''", id="no value"),
        pytest.param("drain:target_utilization_ratio=0.95", "<= high_utilization_ratio", id="what a file may not have"),
        pytest.param("drain:rate_window_s=5", "rate_window_s >= 2 * timing.tick_s", id="no rate in its window"),
        pytest.param("dataflow:safety=7", "expected safety to be 0 or 1, got '7'", id="no switch"),
    ],
)
def test_an_invalid_parameter_is_refused_with_its_policy(policy: str, message: str) -> None:
    with pytest.raises(ConfigError) as result:
        policy_rules(policy, PROFILE)

    assert policy in str(result.value)
    assert message in str(result.value)
