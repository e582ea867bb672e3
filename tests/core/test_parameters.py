"""Rules and their overrides, as one array a parameter."""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np
import pytest
from builders import JOB, book, column, counts, flow, job, last, steady, tick
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.decisions import Bound
from adapter.core.parameters import allowed, columns, number_of, with_events
from adapter.core.periods import Event, Period
from adapter.core.rule_book import RuleBook
from adapter.core.rule_columns import RuleColumns
from adapter.core.rules import ORDERED, POLICIES, QUANTA, Rules
from adapter.core.samples import EVERY, OVERRIDE, OVERRIDES, Array

nan = np.nan
NAMES = ("n/a", "n/b")
DEFAULTS = RuleBook(by_workload={})
HOUR = Period(days=(3,), begin_min=0, end_min=60)  # Unix time began on a Thursday


def spread(book: RuleBook = DEFAULTS, at_s: float = 0.0, **overrides: Array) -> tuple[RuleColumns, Mapping[str, str]]:
    return columns(NAMES, np.full(len(NAMES), nan), book, at_s, overrides)


def with_calendar(rules: Rules, at_s: float, **overrides: Array) -> RuleColumns:
    """The columns at a time; the first workload has the rules, the second has the defaults."""
    book = RuleBook(by_workload={"n/a": rules})
    return with_events(spread(book, at_s, **overrides)[0], NAMES, np.full(len(NAMES), nan), book, at_s)


def test_each_workload_has_its_own_entry():
    book = RuleBook(by_workload={"n/a": Rules(min_workers=2)}, by_fleet=(Rules(min_workers=3, policy="beam-flink"),))
    found = columns(("n/a", "n/b", "n/c"), column(0, 0, nan), book, 0.0, {})[0]
    assert found.min_workers.tolist() == [2, 3, 1]
    assert [POLICIES[int(place)] for place in found.policy] == ["drain", "beam-flink", "drain"]
    assert np.isnan(found.max_step_up_workers).all()


def test_every_field_is_a_column_of_numbers():
    found = spread()[0]
    settings = [setting.name for setting in fields(Rules)][:-1]
    others = [
        "expected_times",
        "expecting",
        "between_commits_s",
        "measures_target",
        "measures_warm_up",
        "measures_start",
        "measures_delay",
    ]
    assert [column.name for column in fields(found)] == [*settings, *others]
    assert {getattr(found, column.name).dtype for column in fields(found)} == {np.dtype(float)}


def test_no_workloads_give_empty_columns():
    found, complaints = columns((), column(), DEFAULTS, 0.0, {"min_workers": column()})
    assert {len(getattr(found, name.name)) for name in fields(found)} == {0}
    assert complaints == {}


@pytest.mark.parametrize(("at_s", "excluded"), [(0.0, 1.0), (3599.0, 1.0), (3600.0, 0.0), (86_400.0, 0.0)])
def test_a_workload_is_excluded_during_its_own_period(at_s, excluded):
    book = RuleBook(by_workload={"n/a": Rules(excluded=(Period(days=(0,), begin_min=0, end_min=0), HOUR))})
    assert spread(book, at_s)[0].excluded.tolist() == [excluded, 0.0]


@pytest.mark.parametrize(
    ("at_s", "times", "expecting"),
    [
        pytest.param(3000, 1, 0, id="long before"),
        pytest.param(3001, 2, 1, id="ten minutes before"),
        pytest.param(3600, 2, 1, id="before, the larger of two"),
        pytest.param(3601, 1, 1, id="its start: the input shows it"),
        pytest.param(7200, 1, 1, id="before its end"),
        pytest.param(7201, 1, 0, id="its end"),
    ],
)
def test_s1_an_expected_event_multiplies_the_input_before_it_and_lasts_until_its_end(at_s, times, expecting):
    events = Event(begin_s=3601, end_s=7201, times=2), Event(begin_s=3601, end_s=3700, times=1.5)
    found = with_calendar(Rules(expected=events), at_s)
    assert (found.expected_times.tolist(), found.expecting.tolist()) == ([times, 1], [expecting, 0])


@pytest.mark.parametrize(("first", "times"), [(1.5, 2), (3, 1), (4, 1)])
def test_s1_the_present_input_contains_the_multiple_of_an_event_that_lasts(first, times):
    events = Event(begin_s=0, end_s=3600, times=first), Event(begin_s=3600, end_s=7200, times=3)
    assert with_calendar(Rules(expected=events), 3500).expected_times[0] == times


@pytest.mark.parametrize(("after_s", "times"), [(0, 1), (59, 1), (180, 3)])
def test_s1_the_rates_contain_an_event_for_two_windows_and_the_metric_delay_after_its_end(after_s, times):
    """The gap between the events is shorter than the time for which the second one is prepared."""
    events = Event(begin_s=0, end_s=3600, times=3), Event(begin_s=3600 + 240, end_s=7200, times=3)
    found = with_calendar(Rules(expected=events, rate_window_s=60, metric_delay_s=30), 3600 + after_s)
    assert (found.expected_times[0], found.expecting[0]) == (times, 1)


def test_s1_an_expected_event_counts_earlier_for_workers_that_an_annotation_says_start_slowly():
    rules = Rules(expected=(Event(begin_s=3600, end_s=7200, times=2),), rescale_pause_s=30.0, warm_up_s=60.0)
    start_s = {"worker_start_s": column(1800, nan)}
    assert [with_calendar(rules, at_s, **start_s).expecting[0] for at_s in (1709, 1710)] == [0, 1]


def test_s4_30_failover_is_a_column():
    assert spread(RuleBook(by_workload={"n/a": Rules(failover=True)}))[0].failover.tolist() == [1.0, 0.0]


def test_an_override_replaces_the_value_of_the_book():
    book = RuleBook(by_workload=dict.fromkeys(NAMES, Rules(min_workers=2, policy="dataflow")))
    found, complaints = spread(book, min_workers=column(5, nan), policy=column(nan, POLICIES.index("netflix")))
    assert found.min_workers.tolist() == [5, 2]
    assert [POLICIES[int(place)] for place in found.policy] == ["dataflow", "netflix"]
    assert complaints == {}


def test_an_override_sets_an_unset_parameter():
    assert spread(max_step_up_workers=column(4, nan))[0].max_step_up_workers.tolist()[0] == 4


@pytest.mark.parametrize(
    ("policy", "parameter", "value"),
    [
        pytest.param("netflix", "max_step_up_workers", 50, id="S4-29"),
        pytest.param("varga", "down_window_s", 300, id="S1-18"),
        pytest.param("dataflow", "down_window_s", nan, id="none of its own"),
    ],
)
def test_an_unset_parameter_has_the_default_of_the_policy(policy, parameter, value):
    configured = spread(RuleBook(by_workload=dict.fromkeys(NAMES, Rules(policy=policy))))
    overridden = spread(policy=column(*[POLICIES.index(policy)] * 2))
    for found, _ in (configured, overridden):
        assert np.array_equal(getattr(found, parameter), column(value, value), equal_nan=True)


@pytest.mark.parametrize(
    ("rules", "window_s", "cooldown_s"),
    [
        pytest.param({}, 3600, 600, id="what a rescale is worth follows from its pause"),
        pytest.param({"rescale_worth_s": 60}, 3600, 600, id="a minute"),
        pytest.param({"rescale_worth_s": 600}, 3600, 600, id="more never lengthens them"),
        pytest.param({"rescale_worth_s": 6}, 360, 60, id="a tenth"),
        pytest.param({"rescale_worth_s": 0}, 3600, 600, id="0: the whole window counts"),
        pytest.param({"rescale_worth_s": 6, "down_window_s": 900}, 900, 60, id="a window that is set stays"),
        pytest.param({"rescale_worth_s": 6, "cooldown_down_s": 90}, 360, 90, id="a cooldown that is set stays"),
        pytest.param({"policy": "varga", "rescale_worth_s": 6}, 300, 120, id="a published policy keeps its text"),
    ],
)
def test_a_cheap_rescale_shortens_the_waits_of_drain(rules, window_s, cooldown_s):
    found = spread(RuleBook(by_workload=dict.fromkeys(NAMES, Rules(**{"policy": "drain"} | rules))))[0]
    assert found.down_window_s.tolist() == [window_s] * 2
    assert found.cooldown_down_s.tolist() == [cooldown_s] * 2


def test_a_contradiction_drops_all_overrides_of_the_workload():
    book = RuleBook(by_workload=dict.fromkeys(NAMES, Rules(max_workers=100)))
    found, complaints = spread(book, min_workers=column(200, 3), quanta=column(2, 2))
    assert complaints.keys() == {"n/a"}
    assert found.min_workers.tolist() == [1, 3]
    assert found.quanta.tolist() == [QUANTA.index("relative"), QUANTA.index("none")]


IGNORED = "all rules in its HPA's annotations are ignored: "
COMPLAINTS = {
    "one that the configuration contradicts": (
        {"down_cpu_ratio": 0.95},
        "expected down_cpu_ratio <= up_cpu_ratio, got down_cpu_ratio = 0.95 (annotation) and up_cpu_ratio = 0.9: the "
        "same utilization would scale up and down",
    ),
    "two that contradict each other": (
        {"up_cpu_ratio": 0.5, "down_cpu_ratio": 0.6},
        "expected down_cpu_ratio <= up_cpu_ratio, got down_cpu_ratio = 0.6 (annotation) and up_cpu_ratio = 0.5 "
        "(annotation): the same utilization would scale up and down",
    ),
    "one out of bounds": (
        {"settle_s": 90_000},
        "expected settle_s to be a number at least 0 and at most 86400, got 90000",
    ),
    "half a worker": (
        {"min_workers": 2.5},
        "expected min_workers to be a whole number at least 0 and at most 100000, got 2.5",
    ),
    "no choice": ({"quanta": 7}, "expected quanta to be one of relative, divisors, none, got 7"),
    "one that the default of the policy contradicts": (
        {"target_utilization_ratio": 0.15},
        "expected low_cpu_ratio <= target_utilization_ratio, got low_cpu_ratio = 0.2 (default) and "
        "target_utilization_ratio = 0.15 (annotation): workers at their target utilization would count as idle",
    ),
    "no policy": ({"policy": 99}, f"expected policy to be one of {', '.join(POLICIES)}, got 99"),
    "several": (
        {"settle_s": -1, "max_workers": 1, "min_spare_workers": 2},
        "expected settle_s to be a number at least 0 and at most 86400, got -1; "
        "expected min_spare_workers <= max_workers, got min_spare_workers = 2 (annotation) and max_workers = 1 "
        "(annotation): the spare workers alone exceed the maximum",
    ),
}


@pytest.mark.parametrize(("overrides", "complaint"), COMPLAINTS.values(), ids=COMPLAINTS)
def test_a_refused_override_names_its_bound_or_its_contradiction(overrides, complaint):
    found, complaints = spread(**{name: column(nan, value) for name, value in overrides.items()})
    assert complaints == {"n/b": IGNORED + complaint}
    for name in overrides:
        default = number_of(name, getattr(Rules(), name))
        assert np.array_equal(getattr(found, name), column(default, default), equal_nan=True)


FAULTS = {
    "one of its own": ([(JOB, "kafka: down")], {}, "kafka: down"),
    "one of all, where something was not seen": ([(EVERY, "kafka: down")], {"backlog_records": None}, "kafka: down"),
    "one of all, where everything was seen": ([(EVERY, "kafka: down")], {}, ""),
    "its own among others": ([(JOB, "b"), (EVERY, "b"), (EVERY, "a")], {"backlog_records": None}, "b"),
    "two": ([(JOB, "b"), (EVERY, "a")], {"backlog_records": None}, "b; a"),
    "one of all in a word of its own": (
        [(JOB, "bc"), (EVERY, "b"), (EVERY, "a")],
        {"backlog_records": None},
        "bc; a; b",
    ),
    "more than are shown": (
        [(of, f"{of}{number}") for of in (JOB, EVERY) for number in range(6)],
        {"backlog_records": None},
        "; ".join([*(f"{JOB}{number}" for number in range(5)), "1 more", *(f"*{n}" for n in range(5)), "1 more"]),
    ),
}


@pytest.mark.parametrize(("faults", "seen", "own"), FAULTS.values(), ids=FAULTS)
def test_a_refused_override_follows_the_other_faults(faults, seen, own):
    hpa = {"rule.min_workers": 200, "rule.max_workers": 100, "max_workers": 50}
    now = job(**counts() | flow(75) | seen | hpa)
    fault = last([*steady(), tick(75, now, faults=faults)]).fault
    before, _, complaint = fault.partition(IGNORED)
    assert before.removesuffix("; ") == own
    assert complaint.startswith("expected min_workers <= max_workers")


@pytest.mark.parametrize("name", ["rate_window_s", "stale_after_s", "error_after_s"])
def test_a_fixed_parameter_is_no_override(name):
    assert OVERRIDE + name not in OVERRIDES
    assert OVERRIDE + name not in tick(15, job(**{OVERRIDE + name: 30, "workers": 2})).by_workload


def test_a_policy_whose_default_contradicts_the_configuration_is_refused():
    book = RuleBook(by_workload=dict.fromkeys(NAMES, Rules(policy="dataflow", target_utilization_ratio=0.15)))
    found, complaints = spread(book, policy=column(POLICIES.index("drain"), POLICIES.index("netflix")))
    assert [POLICIES[int(place)] for place in found.policy] == ["dataflow", "netflix"]
    assert complaints["n/a"].endswith(
        "got low_cpu_ratio = 0.2 (default) and target_utilization_ratio = 0.15: workers at their target utilization "
        "would count as idle"
    )


def test_a_low_ratio_of_its_own_replaces_the_default_that_contradicts():
    found, complaints = spread(low_cpu_ratio=column(0.1, 0.1), target_utilization_ratio=column(0.15, 0.15))
    assert (complaints, found.target_utilization_ratio.tolist()) == ({}, [0.15, 0.15])


def test_two_overrides_that_fit_each_other_are_no_contradiction():
    found, complaints = spread(min_workers=column(200, nan), max_workers=column(300, nan))
    assert complaints == {}
    assert found.min_workers.tolist() == [200, 1]


def test_an_unset_parameter_contradicts_nothing():
    names = [name for pair in ORDERED for name in pair[:2] if getattr(Rules(), name) is None]
    assert spread(**{name: column(nan, nan) for name in names})[1] == {}


def test_a_contradiction_in_the_book_drops_no_override():
    book = RuleBook(by_workload={"n/a": Rules(min_workers=5, max_workers=2)})
    assert spread(book, settle_s=column(10, 10))[1] == {}


@pytest.mark.parametrize(
    ("parameter", "value", "fits"),
    [
        ("min_workers", 3.0, True),
        ("min_workers", 2.5, False),
        ("min_workers", -1.0, False),
        ("max_step_up_workers", 1.5, False),
        ("settle_s", 0.0, True),
        ("settle_s", -0.1, False),
        ("rate_window_s", 0.0, False),
        ("rate_window_s", 600.0, True),
        ("rate_window_s", 600.1, False),
        ("tolerance_ratio", 1.0, False),
        ("policy", float(len(POLICIES)), False),
        ("policy", 0.5, False),
        ("quanta", 1.0, True),
        ("settle_s", np.inf, False),
        ("settle_s", nan, False),
    ],
)
def test_a_value_fits_its_parameter_or_not(parameter, value, fits):
    assert allowed(parameter, column(value)).tolist() == [fits]


@pytest.mark.parametrize("parameter", [name.removeprefix(OVERRIDE) for name in OVERRIDES])
def test_a_default_is_a_value_that_fits(parameter):
    default = getattr(Rules(), parameter)
    assert default is None or allowed(parameter, column(number_of(parameter, default))).all()


def test_overrides_come_in_as_signals_of_a_workload():
    seen = tick(15, job(**{"rule.min_workers": 3, "rule.pause_up_until_s": 9, "rule.weather": 1, "workers": 2}))
    assert seen.by_workload.keys() == {"workers", "rule.min_workers"}
    assert seen.stages == ()


@given(
    st.dictionaries(
        st.sampled_from([name.removeprefix(OVERRIDE) for name in OVERRIDES]),
        st.tuples(*[st.floats(allow_infinity=False, min_value=-1) | st.integers(0, 9)] * 2),
        max_size=6,
    )
)
def test_any_overrides_leave_valid_parameters(drawn):
    found, _ = spread(**{name: column(*values) for name, values in drawn.items()})
    for lower, upper, _ in ORDERED:
        assert not (getattr(found, lower) > getattr(found, upper)).any()
    for name in drawn:
        own = np.isfinite(getattr(found, name))
        assert allowed(name, getattr(found, name))[own].all()


@given(st.permutations(range(4)))
def test_the_order_of_workloads_changes_nothing(order):
    names, own = ("n/a", "n/b", "n/c", "n/d"), column(nan, 0, 200, 5)
    book = RuleBook(by_workload={"n/a": Rules(min_workers=7)}, by_fleet=(Rules(max_workers=9),))
    place = list(order)
    one, complaints = columns(names, column(nan, 0, 0, nan), book, 0.0, {"min_workers": own})
    other, other_complaints = columns(
        tuple(names[at] for at in place), column(nan, 0, 0, nan)[place], book, 0.0, {"min_workers": own[place]}
    )
    assert complaints == other_complaints
    for name in (one_field.name for one_field in fields(one)):
        assert np.array_equal(getattr(one, name)[place], getattr(other, name), equal_nan=True)


def test_s1_drain_scales_up_before_an_expected_event_and_stays_until_its_end():
    """10 workers of 100/s process 600/s; twice as much is expected from 10:00 to 20:00 minutes."""
    rules = {"policy": "drain", "worker_capacity_records_per_s": 100, "rescale_worth_s": 10, "down_window_s": 0}
    busy = {"throughput": 600, "utilization_ratio": 0.6}

    def decided(until_s, times, **signals):
        event = Event(begin_s=600, end_s=1200, times=times)
        ticks = steady(until_s=until_s, from_s=until_s - 600, **counts(10) | signals)
        return last(ticks, book(expected=(event,), **rules))

    assert decided(450, 2, **busy).required_workers == 15
    assert decided(450, 1.1, **busy).required_workers == 10
    idle = {"throughput": 200, "utilization_ratio": 0.2}
    assert decided(900, 2, **idle).bound == Bound.EXPECTED
    assert decided(900, 2, **idle).required_workers == 10
    assert decided(2100, 2, **idle).required_workers < 10
