"""Traces: valid and invalid files, scaling and windows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.backtest.trace import (
    LEAD_S,
    STEP_S,
    WINDOW_S,
    Trace,
    TraceError,
    fit_profile,
    normalisation_ratio,
    peak,
    read,
    resample,
    windows,
)
from adapter.simulator.profiles import PROFILES

TRACES = Path(__file__).parents[1] / "data" / "traces"
CONSUMER_GROUP = PROFILES["consumer-group"]


def written(folder: Path, text: str) -> Path:
    path = folder / "orders.csv"
    path.write_text(text, "utf-8")
    return path


def of(rate: list[float], step_s: float) -> Trace:
    return Trace(name="made", step_s=step_s, rate=np.array(rate, dtype=float))


def test_a_trace_is_named_after_its_file_and_keeps_its_step_and_rates(tmp_path: Path) -> None:
    trace = read(written(tmp_path, "seconds,rate\n0,10\n100,20.5\n200,0\n"))
    assert (trace.name, trace.step_s, trace.rate.tolist()) == ("orders", 100.0, [10.0, 20.5, 0.0])


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffseconds,rate\n0,1\n150,2\n",
        "seconds, rate\r\n0, 1\r\n150, 2\r\n",
        "seconds,rate\n1000,1\n1150,2\n\n\n",
    ],
    ids=["a byte-order mark", "spaces and line ends of Windows", "another first second, empty lines at the end"],
)
def test_formats_of_other_programs_are_read(tmp_path: Path, text: str) -> None:
    trace = read(written(tmp_path, text))
    assert (trace.step_s, trace.rate.tolist()) == (150.0, [1.0, 2.0])


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", ":1: expected the header 'seconds,rate', got an empty file; name the two columns so, with a comma"),
        ("0,1\n5,2\n", ":1: expected the header 'seconds,rate', got '0,1'; name the two columns so, with a comma"),
        ("seconds,rate\n", ": expected at least two rows under the header, got 0; two are one step"),
        ("seconds,rate\n0,1\n", ": expected at least two rows under the header, got 1; two are one step"),
        ("seconds,rate\n0,1\n5,x\n", ":3: expected a finite number, got 'x'; fill the row"),
        ("seconds,rate\n0,1\n5,\n", ":3: expected a finite number, got nothing; fill the row"),
        ("seconds,rate\n0,1\n5,nan\n", ":3: expected a finite number, got 'nan'; fill the row"),
        ("seconds,rate\n0,1\n5,inf\n", ":3: expected a finite number, got 'inf'; fill the row"),
        ("seconds,rate\nnoon,1\n5,2\n", ":2: expected a finite number, got 'noon'; write seconds, such as 0, 60, 120"),
        (
            "seconds,rate\n0,1\n60000000,1\n120000000,1\n",
            ": expected at most a year of load, got 3 rows of 6e+07 s; write the times in seconds, or cut the file",
        ),
        ("seconds,rate\n0,1\n5,2,3\n", ":3: expected two numbers, seconds,rate, got '5,2,3'; correct or remove"),
        ("seconds,rate\n0,1\n\n10,3\n", ":3: expected two numbers, seconds,rate, got ''; correct or remove"),
        ("seconds,rate\n0,1\n5,-2\n", ":3: expected a rate from 0 to 1e+15 records/s, got -2; correct the row"),
        ("seconds,rate\n0,1\n5,1e308\n", ":3: expected a rate from 0 to 1e+15 records/s, got 1e308; correct the row"),
        (
            "seconds,rate\n1700000000000,1\n1700000060000,2\n",
            ":2: expected seconds, got 1700000000000, which looks like Unix milliseconds; divide the column by 1000",
        ),
        (
            "seconds,rate\n1700000000000000,1\n1700000060000000,2\n",
            ":2: expected seconds, got 1700000000000000, which looks like Unix microseconds; "
            "divide the column by 1000000",
        ),
        ("seconds,rate\n0,1\n10,2\n5,3\n", ":4: expected a time after 10 s, got 5 s; sort the rows by time"),
        (
            "seconds,rate\n1764510010,1\n1764510020,2\n1764510015,3\n",
            ":4: expected a time after 1764510020 s, got 1764510015 s; sort the rows by time",
        ),
        (
            "seconds,rate\n0,1\n5,2\n5,3\n",
            ":4: expected a time after 5 s, got 5 s; two rows have this time, remove one",
        ),
        (
            "seconds,rate\n0,1\n5,2\n10,3\n25,3\n30,3\n",
            ":5: expected the time 15 s, a step of 5 s after the row before, got 25 s; resample the file",
        ),
        ("seconds,rate\n0,0\n150,0\n", ": nearly every rate is 0; record while the job has input"),
        ("seconds,rate\n0,1e-320\n150,1e-320\n", ": nearly every rate is 0; record while the job has input"),
        ("seconds,rate\n0,1\n1,2\n", ": expected at least 300 s of load, got 2 rows of 1 s; record for longer"),
    ],
    ids=[
        "an empty file",
        "no header",
        "a header alone",
        "one row",
        "a rate that is no number",
        "a rate that is not there",
        "NaN",
        "infinity",
        "a time that is no number",
        "more than a year",
        "a column too many",
        "an empty line between",
        "a negative rate",
        "a rate that no job has",
        "milliseconds",
        "microseconds",
        "times that go back",
        "Unix times that go back",
        "a time twice",
        "a gap",
        "no load at all",
        "nearly no load",
        "less load than a peak is the mean of",
    ],
)
def test_an_invalid_trace_is_refused_with_file_line_and_remedy(tmp_path: Path, text: str, result: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}{result}")


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(TraceError, match="directory"):
        read(tmp_path)
    written(tmp_path, "").write_bytes(b"seconds,rate\n0,\xff\n")
    with pytest.raises(TraceError, match="UTF-8, got the byte 0xff"):
        read(tmp_path / "orders.csv")


def test_two_files_with_the_same_numbers_have_the_same_digest() -> None:
    assert of([1, 2], 5).digest == Trace(name="other", step_s=5.0, rate=np.array([1.0, 2.0])).digest
    assert of([1, 2], 5).digest != of([1, 2], 6).digest
    assert of([1, 2], 5).digest != of([1, 3], 5).digest


@pytest.mark.parametrize(
    ("rate", "step_s", "expected"),
    [
        ([1, 2, 3, 4, 5, 9, 9, 9, 9, 9], 1.0, [3, 9]),
        ([1, 2, 3], 5.0, [1, 2, 3]),
        ([0, 30], 15.0, [0, 10, 20, 30, 30, 30]),
        ([2, 4, 6, 8, 10], 2.0, [4, 9]),
    ],
    ids=["means of finer rows", "rows as they are", "a line between coarser rows", "steps that do not divide five"],
)
def test_a_trace_has_one_rate_every_five_seconds(rate: list[float], step_s: float, expected: list[float]) -> None:
    assert resample(of(rate, step_s)).tolist() == expected


@pytest.mark.parametrize("step_s", [1.0, 5.0, 60.0, 300.0, 1800.0])
def test_the_peak_has_the_utilization_of_the_profile(step_s: float) -> None:
    steady = of([7.0] * int(7200 / step_s), step_s)
    expected = CONSUMER_GROUP.workers * CONSUMER_GROUP.peak_utilization_ratio * 1000
    assert resample(steady) * normalisation_ratio(steady, CONSUMER_GROUP) == pytest.approx(expected)


@pytest.mark.parametrize("exponent", [0.8, 1.0])
@pytest.mark.parametrize("workers", [5, 500])
def test_workers_of_a_given_capacity_have_the_utilization_of_the_profile_at_the_peak(
    exponent: float, workers: int
) -> None:
    profile = replace(CONSUMER_GROUP, scaling_exponent=exponent)
    carried = 100.0 * workers**exponent
    fitted = fit_profile(of([carried] * 400, 5.0), profile, 100.0)
    busy_ratio = carried / (100.0 * fitted.workers**exponent)
    assert busy_ratio == pytest.approx(profile.peak_utilization_ratio * profile.workers ** (1 - exponent), rel=0.2)


def test_the_peak_is_that_of_five_minutes() -> None:
    calm = [1.0] * 3600
    spike = [*calm, *([100.0] * 3), *calm]
    assert peak(of(spike, 1.0)) < 2.1
    assert peak(of([*calm, *([10.0] * 600), *calm], 1.0)) == pytest.approx(10.0)


@given(steps=st.integers(1, 400_000))
def test_windows_score_every_step_once(steps: int) -> None:
    found = windows(of([1.0] * steps, STEP_S))
    scored = [(window.begin + window.lead_steps, window.end) for window in found]
    assert [begin for begin, _ in scored] == [0, *(end for _, end in scored[:-1])]
    assert scored[-1][1] == steps
    assert [window.index for window in found] == list(range(len(found)))


@given(steps=st.integers(1, 400_000))
def test_windows_are_equally_long_and_have_a_lead_in(steps: int) -> None:
    found = windows(of([1.0] * steps, STEP_S))
    assert {window.steps for window in found} == {min(steps, WINDOW_S / STEP_S)}
    assert found[0].lead_steps == 0
    assert all(LEAD_S / STEP_S <= window.lead_steps < window.steps for window in found[1:])


@pytest.mark.parametrize("name", ["dsp_ads_18h_1s", "crane_02_onoff1m", "nab_nyc_taxi_30m", "azure_llm_conv_1s"])
def test_a_real_trace_is_read_and_scaled(name: str) -> None:
    trace = read(TRACES / f"{name}.csv")
    rate = resample(trace) * normalisation_ratio(trace, CONSUMER_GROUP)
    assert len(rate) == int(len(trace.rate) * trace.step_s / STEP_S)
    means = rate[: len(rate) // 60 * 60].reshape(-1, 60).mean(axis=1)
    assert np.quantile(means, 0.999) == pytest.approx(30_000, rel=0.02)
