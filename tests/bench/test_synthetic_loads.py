"""The synthetic loads are traces, and the same in every run."""

import numpy as np
import pytest

from adapter.backtest.trace import read
from bench import synthetic_loads


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("loads")
    synthetic_loads.main(path)
    return path


@pytest.mark.parametrize("name", synthetic_loads.LOADS)
def test_each_load_is_a_trace_of_two_days(folder, name):
    trace = read(folder / f"{name}.csv")
    assert (trace.step_s, len(trace.rate) * trace.step_s) == (15, 172_800)
    assert np.abs(trace.rate - synthetic_loads.rates(name)).max() < 0.001  # three digits are written


@pytest.mark.parametrize("name", synthetic_loads.LOADS)
def test_a_load_is_the_same_in_whatever_order_the_loads_are_drawn(name):
    first = synthetic_loads.rates(name)
    for other in synthetic_loads.LOADS:
        synthetic_loads.rates(other)
    assert (synthetic_loads.rates(name) == first).all()
