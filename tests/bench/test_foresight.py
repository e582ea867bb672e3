"""Plans that know the load: they keep the limit of the time over 60 s, and a dearer rescale makes fewer of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adapter.backtest.trace import Trace
from bench.foresight import ON_TARGET, PRICES_S, ForesightTask, main, plan, table
from bench.played_plan import LATE, LATE_PCT


@pytest.mark.simulation
@pytest.mark.parametrize(
    "prices_s",
    [
        pytest.param((PRICES_S[0], PRICES_S[-1]), id="two prices"),
        pytest.param(PRICES_S, id="all prices", marks=pytest.mark.full),
    ],
)
def test_plans_keep_the_limit_that_the_oracle_exceeds(prices_s: tuple[float, ...]) -> None:
    at_s = np.arange(0, 3 * 3600, 60.0)
    trace = Trace(name="hills", step_s=60.0, rate=1000 * (3 + 2 * np.sin(at_s / 900)))
    oracle, *plans = plan(ForesightTask(trace=trace, profile="consumer-group-small", seed=1, prices_s=prices_s))
    cost, rescales, _, over = (list(column) for column in zip(*plans, strict=True))

    assert oracle[0] == 1
    assert max(over) <= ON_TARGET.most_pct < oracle[3]
    assert rescales[0] >= rescales[-1]
    assert cost[0] <= cost[-1]


@pytest.mark.simulation
def test_plans_that_know_ten_minutes_keep_the_limit() -> None:
    at_s = np.arange(0, 6 * 3600, 60.0)
    trace = Trace(name="steps", step_s=60.0, rate=np.where(at_s // 3600 % 2 == 0, 1000.0, 4000.0))
    task = ForesightTask(trace=trace, profile="consumer-group-small", seed=1, prices_s=(900.0,), known_s=600.0)
    _, known = plan(task)

    assert known[3] <= ON_TARGET.most_pct
    assert known[1] > 0


@pytest.mark.simulation
@pytest.mark.full
def test_late_plans_keep_the_limit_of_the_oracle() -> None:
    at_s = np.arange(0, 6 * 3600, 60.0)
    trace = Trace(name="steps", step_s=60.0, rate=np.where(at_s // 3600 % 2 == 0, 1000.0, 4000.0))
    task = ForesightTask(trace=trace, profile="flink-operator", seed=1, prices_s=(900.0,), known_s=900.0, limit=LATE)
    oracle, known = plan(task)

    assert oracle[2] <= LATE_PCT
    assert known[2] <= LATE_PCT
    assert known[3] > ON_TARGET.most_pct
    assert known[0] > oracle[0]


def test_the_table_has_the_means_of_the_traces() -> None:
    row = [1.0, 14.0, 0.05, 29.5]
    other = [2.0, 16.0, 0.15, 30.5]
    found = [[row] * (1 + len(PRICES_S)), [other] * (1 + len(PRICES_S))]
    task = ForesightTask(trace=Trace(name="flat", step_s=60.0, rate=np.ones(60)), profile="consumer-group", seed=1)
    lines = table(found, task).splitlines()
    with_late = table(found, replace(task, limit=LATE)).splitlines()

    assert lines[2] == "| 900, the oracle: records wait up to 300 s | 1.50 | 15 | 0.10 | 30.00 | 2 |"
    assert lines[-1] == "| 1800 | 1.50 | 15 | 0.10 | 30.00 | 2 |"
    assert with_late[-1] == "| 1800 | 1.50 | 15 | 0.10 | 30.00 | 1 |"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--days", "9"], r"expected --days from 0\.5 to 4, got 9"),
        (["--minutes", "0"], "expected --minutes of at least 1, got 0"),
        (["--minutes", "nan"], "expected --minutes of at least 1, got nan"),
        (["--prices", "900,-1"], "expected --prices of at least 0"),
        (["--traces", "missing"], "there is no such folder"),
    ],
)
def test_a_wrong_option_is_one_line(words: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        main(words)


def test_short_traces_alone_are_refused(tmp_path: Path) -> None:
    (tmp_path / "short.csv").write_text("seconds,rate\n" + "".join(f"{60 * n},5\n" for n in range(60)))
    with pytest.raises(SystemExit, match=r"expected a trace of 0\.5 days or more"):
        main(["--traces", str(tmp_path)])
