"""The load of the demo: its shapes, its pace, and its messages. tests/e2e/node runs it against a broker."""

import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from examples.demo import load

RATES = st.floats(0, 1e5)
TIMES_S = st.floats(0, 1e5)
PERIODS_S = st.floats(1, 1e5)
COMMAND = ["--bootstrap-servers", "kafka:9092", "--topic", "demo"]


@given(low=RATES, high=RATES, period_s=PERIODS_S, at_s=TIMES_S)
def test_a_sine_repeats_between_its_two_rates(low: float, high: float, period_s: float, at_s: float) -> None:
    wave = load.Sine(low, high, period_s)
    assert min(low, high) - 1e-6 <= wave.rate(at_s) <= max(low, high) + 1e-6
    assert wave.rate(at_s) == pytest.approx(wave.rate(at_s + period_s), abs=1e-3 + 1e-6 * (low + high))
    assert (wave.rate(0), wave.rate(period_s / 2)) == pytest.approx((low, high))


@given(low=RATES, high=RATES, begin_s=TIMES_S, length_s=PERIODS_S, at_s=TIMES_S)
def test_a_step_has_the_high_rate_between_its_times_only(
    low: float, high: float, begin_s: float, length_s: float, at_s: float
) -> None:
    step = load.Step(low, high, begin_s, begin_s + length_s)
    assert step.rate(at_s) == (high if begin_s <= at_s < begin_s + length_s else low)


@given(first=RATES, last=RATES, over_s=PERIODS_S, times_s=st.lists(TIMES_S, min_size=2))
def test_a_ramp_never_turns_and_stays_at_its_last_rate(
    first: float, last: float, over_s: float, times_s: list[float]
) -> None:
    ramp = load.Ramp(first, last, over_s)
    signs = {math.copysign(1, after - before) for before, after in pairwise(map(ramp.rate, sorted(times_s)))
             if abs(after - before) > 1e-6}  # fmt: skip
    assert signs <= {math.copysign(1, last - first)}
    assert ramp.rate(over_s) == ramp.rate(over_s * 2) == pytest.approx(last)


@given(
    rates=st.lists(RATES, min_size=2, max_size=50),
    step_s=PERIODS_S,
    speed=st.sampled_from((0.5, 1, 4, 64)),
    scale=st.sampled_from((0.5, 1, 1024)),
)
def test_a_replay_passes_through_every_row_and_begins_again(
    rates: list[float], step_s: float, speed: float, scale: float
) -> None:
    times_s = tuple(row * step_s for row in range(len(rates)))
    replay = load.Replay(times_s, tuple(rates), speed, scale)
    for at_s, rate in list(zip(times_s, rates, strict=True))[:-1]:
        assert replay.rate(at_s / speed) == pytest.approx(scale * rate)
    assert replay.rate(times_s[-1] / speed) == pytest.approx(scale * rates[0])


@given(
    rate=st.floats(0, 1e4),
    pauses_s=st.lists(st.floats(1e-3, load.BURST_S / 2), min_size=1, max_size=200),
)
def test_without_a_stall_every_record_is_written_in_its_time(rate: float, pauses_s: list[float]) -> None:
    bucket, now_s, taken = load.TokenBucket(0.0), 0.0, 0
    assume(rate * load.BURST_S >= 2 or rate == 0)
    for pause_s in pauses_s:
        now_s += pause_s
        taken += bucket.take(now_s, rate)
    assert rate * now_s - 1 - 1e-6 * rate <= taken <= rate * now_s + 1e-6 * rate


@given(rate=RATES, stall_s=st.floats(load.BURST_S, 1e6))
def test_after_a_stall_at_most_a_second_of_records_comes_late(rate: float, stall_s: float) -> None:
    bucket = load.TokenBucket(0.0)
    assert bucket.take(stall_s, rate) <= max(1.0, rate * load.BURST_S)


def test_a_slow_rate_is_not_lost_between_steps() -> None:
    bucket = load.TokenBucket(0.0)
    assert sum(bucket.take(step * 0.05, 0.1) for step in range(1, 2001)) in (9, 10)


def test_a_trace_of_the_backtest_is_replayed_from_its_first_row(tmp_path: Path) -> None:
    trace = tmp_path / "load.csv"
    trace.write_text("seconds,rate\n100,10\n160,30\n")
    replay = load.read_trace(trace, speed=60, scale=2)
    assert [replay.rate(at_s) for at_s in (0, 0.5, 1)] == [20, 40, 20]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "load.csv:1: expected the header seconds,rate, got ''"),
        ("time,value\n0,1\n", "load.csv:1: expected the header seconds,rate, got 'time,value'"),
        ("seconds,rate\n0,1\n", "load.csv: expected at least two rows under the header, got 1"),
        ("seconds,rate\n0,1\n5,many\n", "load.csv:3: expected two numbers, seconds and rate, got '5,many'"),
        ("seconds,rate\n0,1\n5\n", "load.csv:3: expected two numbers, seconds and rate, got '5'"),
        ("seconds,rate\n0,1\n5,-2\n", "load.csv:3: expected a finite time and a rate of at least 0, got '5,-2'"),
        ("seconds,rate\n0,1\n5,nan\n", "load.csv:3: expected a finite time and a rate of at least 0, got '5,nan'"),
        ("seconds,rate\n5,1\n5,2\n", "load.csv:3: expected a time after 5 s, got 5; sort the rows"),
    ],
)
def test_a_wrong_trace_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    trace = tmp_path / "load.csv"
    trace.write_text(text)
    with pytest.raises(load.LoadError) as caught:
        load.read_trace(trace, 1, 1)
    assert str(caught.value) == f"{tmp_path}/{message}"


def test_a_missing_trace_is_one_line_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load.main([*COMMAND, "replay", str(tmp_path / "none.csv")])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"load: {tmp_path}/none.csv: expected a readable trace: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sine", "--low", "-1", "--high", "2", "--period-s", "9"], "--low: invalid number of at least 0 value: '-1'"),
        (["ramp", "--first", "1", "--last", "2", "--over-s", "0"], "--over-s: invalid number above 0 value: '0'"),
        (["step", "--low", "1", "--high", "1_0", "--at-s", "2"], "--high: invalid number of at least 0 value: '1_0'"),
        (["sine", "--low", "1"], "the following arguments are required: --high, --period-s"),
        (["waves"], "invalid choice: 'waves'"),
    ],
)
def test_a_wrong_option_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load.main([*COMMAND, *arguments])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [
        ("sine --low 1 --high 9 --period-s 60", load.Sine(1, 9, 60)),
        ("step --low 1 --high 9 --at-s 60", load.Step(1, 9, 60, math.inf)),
        ("step --low 1 --high 9 --at-s 60 --until-s 90", load.Step(1, 9, 60, 90)),
        ("ramp --first 1 --last 9 --over-s 60", load.Ramp(1, 9, 60)),
    ],
)
def test_the_command_line_makes_the_shape(arguments: str, shape: load.Shape) -> None:
    assert load.shape_of(load.parser().parse_args([*COMMAND, *arguments.split()])) == shape
