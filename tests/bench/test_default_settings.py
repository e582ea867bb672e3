"""`drain` without the cost of a rescale beside a `drain` that knows it, after a day of learning."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adapter.backtest.trace import Trace
from adapter.backtest.units import Grid, groups, units
from adapter.simulator.profiles import PROFILES
from bench.default_settings import POLICIES, main, rows, simulate

HILLS = Trace(name="hills", step_s=60.0, rate=1000 * (3 + 2 * np.sin(np.arange(0, 1.5 * 86_400, 60.0) / 3600)))
GRID = Grid(
    policies=POLICIES, profiles=(PROFILES["consumer-group-small"],), delays_s=(120.0,), seeds=(1,), normalised=True
)


@pytest.mark.simulation
@pytest.mark.full
@pytest.mark.timeout(600)
def test_drain_defaults_needs_about_as_many_workers_after_a_day_of_learning() -> None:
    (group,) = groups(units(HILLS, GRID))
    (configured, *_), (measuring, *_) = (score for _, score in simulate(group, {"hills": HILLS}))

    assert measuring == pytest.approx(configured, rel=0.1)
    assert 0 < configured < 12 * 12  # worker-hours of half a day of at most 12 workers


def test_a_row_has_the_means_of_the_traces_and_the_worst_of_them() -> None:
    scores = {
        ("hills", "drain"): [10.0, 20.0, 0.5, 0.01],
        ("hills", "drain:defaults"): [11.0, 22.0, 0.7, 0.02],
        ("other", "drain"): [20.0, 30.0, 1.5, 0.03],
        ("other", "drain:defaults"): [20.0, 34.0, 1.7, 0.05],
    }
    found = [unit for name in ("hills", "other") for unit in units(replace(HILLS, name=name), GRID)]

    assert rows({unit: scores[unit.trace, unit.policy] for unit in found}) == [
        ["consumer-group-small", "120", "1.050", "1.100", "25, 28", "1.0, 1.2", "0.03, 0.05"]
    ]


def test_an_unknown_profile_is_reported_with_the_known_ones() -> None:
    with pytest.raises(SystemExit, match=r"default_settings: .*there is no 'typo'; there are consumer-group, "):
        main(["--profiles", "typo"])


def test_short_traces_alone_are_refused(tmp_path: Path) -> None:
    (tmp_path / "short.csv").write_text("seconds,rate\n" + "".join(f"{60 * n},5\n" for n in range(60)))
    with pytest.raises(SystemExit, match=r"expected a trace of 1\.5 to 4 days, got none"):
        main(["--traces", str(tmp_path)])
