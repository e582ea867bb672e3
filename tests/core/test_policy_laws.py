"""Laws of every published policy, for any input.

A law that a formula does not have is left out by name: `segments` looks at no load; `varga` and `netflix` steer to a
utilization, so that P-07 holds up to theirs; a higher throughput at the same growth rightly needs fewer workers.
"""

from math import ceil, inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_inputs import FORMULAS, joined, stage_input, wanted

rates = st.floats(0.01, 1e6)
growths = st.floats(-1e6, 1e6)
backlogs = st.one_of(st.just(0.0), st.floats(0.01, 1e9))
sizes = st.integers(1, 200)
stages = st.tuples(sizes, rates, growths, backlogs)
records = st.one_of(
    st.just(()),
    st.lists(st.tuples(sizes, st.floats(1, 1e6)), min_size=1, max_size=8, unique_by=lambda entry: entry[0]).map(sorted),
)
fits = st.one_of(st.just((nan, nan, nan)), st.tuples(st.sampled_from([0.0, 1e-3, 0.1]), st.floats(-100, 100), rates))
facts = st.fixed_dictionaries(
    {"cpu": st.one_of(st.just(nan), st.floats(0, 1)), "partitions": st.integers(1, 300), "records": records}
)
formulas = st.sampled_from(sorted(FORMULAS))
HOTTEST = {"varga": 0.7, "netflix": 0.8}  # above it they rightly grow
IN_TIME = {
    "dataflow": "time_to_reduce_backlog_s",
    "beam-flink": "time_to_reduce_backlog_s",
    "netflix": "catch_up_s",
}
RATES = ("workers", "throughput", "growth", "backlog")
DECIDING = {"segments": ("partitions",)}
UNKNOWN = [(policy, signal) for policy in FORMULAS for signal in DECIDING.get(policy, RATES)]


@pytest.mark.parametrize(("policy", "signal"), UNKNOWN)
@pytest.mark.parametrize("backlog", [0, 30_000, 300_000])
def test_x_06_an_unknown_deciding_input_gives_no_size(policy, signal, backlog):
    known = {"workers": 10, "throughput": 1000, "growth": 500, "backlog": backlog, "partitions": 20, "cpu": 0.5}
    assert isfinite(wanted(policy, **known, records=((10, 1000),)))
    assert not isfinite(wanted(policy, **known | {signal: nan}, records=((10, 1000),)))


@given(formulas, stages, facts, fits)
def test_p_11_s4_06_the_size_is_whole_and_reproducible(policy, stage, known, fit):
    size = wanted(policy, *stage, **known, fit=fit)
    assert 0 < size < inf
    assert size == ceil(size)
    assert size == wanted(policy, *stage, **known, fit=fit)


@given(formulas, stages, facts, st.tuples(growths, backlogs))
def test_p_05_more_backlog_or_growth_never_needs_fewer_workers(policy, stage, known, other):
    workers, rate, *first = stage
    (less, more), (calm, behind) = (sorted(pair) for pair in zip(first, other, strict=True))
    smallest, grown, late, both = (
        wanted(policy, workers, rate, growth, backlog, **known)
        for growth, backlog in [(less, calm), (more, calm), (less, behind), (more, behind)]
    )
    assert smallest <= grown <= both
    assert smallest <= late <= both


@given(sizes, rates, st.tuples(st.floats(1, 10), st.floats(1, 10)), facts, fits)
def test_p_05_more_input_never_needs_fewer_workers(workers, rate, inputs, known, fit):
    calm, busy = (
        wanted("netflix", workers, rate, (times - 1) * rate, **known, fit=[times * part for part in fit])
        for times in sorted(inputs)
    )
    assert calm <= busy


def test_a_higher_input_with_the_same_forecast_can_need_fewer_workers():
    sized = [wanted("netflix", 10, rate, cpu=0.1, records=((10, 20_000),), fit=(0, 0, 10_000), rescale_pause_s=0)
             for rate in (8_000, 10_000)]  # fmt: skip
    assert sized == [10, 5]


@given(st.sampled_from(sorted(IN_TIME)), stages, facts, st.tuples(st.floats(1, 3600), st.floats(1, 3600)))
def test_p_05_a_shorter_time_to_catch_up_never_needs_fewer_workers(policy, stage, known, times_s):
    hurried, patient = (wanted(policy, *stage, **known, **{IN_TIME[policy]: time_s}) for time_s in sorted(times_s))
    assert hurried >= patient


@given(formulas, stages, facts, st.tuples(sizes, sizes))
def test_p_05_a_larger_maximum_never_needs_fewer_workers(policy, stage, known, caps):
    # without quanta, because they depend on the maximum (13 becomes 15 of 60, 13 of 100)
    tight, wide = (min(wanted(policy, *stage, **known, quanta="none", most=cap), cap) for cap in sorted(caps))
    assert tight <= wide


@given(formulas, sizes, rates, st.floats(0, 1), records)
def test_p_07_a_steady_job_is_never_scaled_up(policy, workers, rate, load, known):
    steady = {"partitions": workers, "records": known}
    assert wanted(policy, workers, rate, cpu=load * HOTTEST.get(policy, 1.0), **steady) <= workers
    assert wanted(policy, workers, rate, **steady) == workers


@given(formulas, stages, facts, fits, st.integers(-20, 20))
def test_p_08_x_12_records_or_bytes_make_no_difference(policy, stage, known, fit, power):
    unit, (workers, *numbers) = 2.0**power, stage
    in_bytes = {
        "records": [(size, unit * rate) for size, rate in known["records"]],
        "fit": [unit * part for part in fit],
        "lag_threshold_records": unit * 50_000,  # a count in the backlog's own unit
    }
    scaled = wanted(policy, workers, *(unit * number for number in numbers), **known | in_bytes)
    assert scaled == wanted(policy, *stage, **known, fit=fit)


@given(formulas, st.lists(st.tuples(stages, facts, fits), min_size=1, max_size=6))
def test_the_size_of_a_stage_does_not_depend_on_other_stages(policy, stages):
    alone = [stage_input(*stage, **known, fit=fit) for stage, known, fit in stages]
    sizes_alone = [FORMULAS[policy](one).wanted_workers[0] for one in alone]
    assert FORMULAS[policy](joined(alone)).wanted_workers.tolist() == sizes_alone
    assert FORMULAS[policy](joined(alone[::-1])).wanted_workers.tolist() == sizes_alone[::-1]


@pytest.mark.parametrize("policy", FORMULAS)
@pytest.mark.parametrize("numbers", [(2.0**20, 1e-8, 2.0**63, 2.0**63), (2.0**20, 0, 2.0**63, 2.0**63)])
def test_x_01_huge_counts_are_sized_without_overflow(policy, numbers):
    assert 0 < wanted(policy, *numbers, cpu=1.0, partitions=2.0**20) < inf
