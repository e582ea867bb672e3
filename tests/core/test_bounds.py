"""Steps, minimum, maximum, partitions and pauses: each cut, and its name."""

from math import isnan, nan

import numpy as np
import pytest
from builders import column, rule_columns
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.bounds import BOUNDS, limits, within
from adapter.core.decisions import Bound
from adapter.core.samples import WORKLOAD_SIGNALS


def cut(wanted, current=10, at_s=0.0, facts=None, **rules):
    columns = rule_columns(1, **rules)
    known = {name: column((facts or {}).get(name, nan)) for name in WORKLOAD_SIGNALS}
    size, bound = within(column(wanted), column(current), columns, limits(columns, known, at_s))
    return size[0], BOUNDS[bound[0]]


# wanted, changes -> size, bound
CUTS = {
    "nothing cuts": (20, {}, 20, Bound.NONE),
    "S4-29 maximum of the rules": (20, {"max_workers": 15}, 15, Bound.MAX),
    "S4-29 maximum of the HPA": (20, {"facts": {"max_workers": 15}}, 15, Bound.MAX),
    "the smaller maximum": (20, {"max_workers": 12, "facts": {"max_workers": 15}}, 12, Bound.MAX),
    "a maximum of 0 is not known yet": (20, {"facts": {"max_workers": 0}}, 20, Bound.NONE),
    "S0-16 S4-29 partitions": (20, {"facts": {"partitions": 12}}, 12, Bound.PARTITIONS),
    "partitions above the maximum": (20, {"max_workers": 15, "facts": {"partitions": 64}}, 15, Bound.MAX),
    "partitions equal to the maximum": (20, {"max_workers": 15, "facts": {"partitions": 15}}, 15, Bound.MAX),
    "partitions 0 are not known yet": (20, {"facts": {"partitions": 0}}, 20, Bound.NONE),
    "S4-29 minimum of the rules": (1, {"min_workers": 3}, 3, Bound.MIN),
    "S4-29 minimum of the HPA": (1, {"facts": {"min_workers": 4}}, 4, Bound.MIN),
    "the larger minimum": (1, {"min_workers": 5, "facts": {"min_workers": 4}}, 5, Bound.MIN),
    "the maximum wins over the minimum": (1, {"min_workers": 5, "facts": {"max_workers": 2}}, 2, Bound.MIN),
    "min above max from the HPA": (9, {"facts": {"min_workers": 8, "max_workers": 4}}, 4, Bound.MAX),
    "minimum 0 lets go to 0": (0, {"min_workers": 0}, 0, Bound.NONE),
    "S4-29 step up": (90, {"max_step_up_workers": 50}, 60, Bound.STEP),
    "S4-29 step down": (2, {"max_step_down_workers": 3}, 7, Bound.STEP),
    "a step above the maximum": (90, {"max_step_up_workers": 50, "max_workers": 40}, 40, Bound.MAX),
    "a step that is not longer": (15, {"max_step_up_workers": 5}, 15, Bound.NONE),
    "steps are from the current size; it is unknown": (90, {"current": nan, "max_step_up_workers": 50}, 90, Bound.NONE),
    "pause of ups by rule": (20, {"pause_up_until_s": 1}, 10, Bound.PAUSE),
    "pause of ups lets down": (5, {"pause_up_until_s": 1}, 5, Bound.NONE),
    "pause of downs by rule": (5, {"pause_down_until_s": 1}, 10, Bound.PAUSE),
    "pause of downs lets up": (20, {"pause_down_until_s": 1}, 20, Bound.NONE),
    "a pause that ended": (20, {"pause_up_until_s": 1, "at_s": 1.0}, 20, Bound.NONE),
    "pause of ups by annotation": (20, {"facts": {"pause_up": 1}}, 10, Bound.PAUSE),
    "pause of downs by annotation": (5, {"facts": {"pause_down": 1}}, 10, Bound.PAUSE),
    "an annotation that ended": (20, {"facts": {"pause_up": 0}}, 20, Bound.NONE),
    "a pause from an unknown size": (20, {"current": nan, "pause_up_until_s": 1}, 20, Bound.NONE),
    "the minimum holds against a pause": (20, {"pause_up_until_s": 1, "min_workers": 12}, 12, Bound.MIN),
    "the maximum holds against a pause": (5, {"pause_down_until_s": 1, "max_workers": 8}, 8, Bound.MAX),
    "partitions hold against a pause": (5, {"pause_down_until_s": 1, "facts": {"partitions": 8}}, 8, Bound.PARTITIONS),
    "current above the maximum": (200, {"current": 200}, 100, Bound.MAX),
}


@pytest.mark.parametrize(("wanted", "changes", "size", "bound"), CUTS.values(), ids=CUTS)
def test_each_cut_has_its_name(wanted, changes, size, bound):
    assert cut(wanted, **changes) == (size, bound)


def test_an_unknown_size_is_not_cut():
    size, bound = cut(nan, min_workers=3, pause_up_until_s=1, max_step_up_workers=5)
    assert isnan(size)
    assert bound == Bound.NONE


counts = st.one_of(st.just(nan), st.integers(0, 200).map(float))


FACTS = dict.fromkeys(("min_workers", "max_workers", "partitions"), counts)
FACTS |= {name: st.sampled_from([nan, 0, 1]) for name in ("pause_up", "pause_down")}


@given(st.integers(0, 500), counts, st.integers(0, 50), st.integers(1, 200), st.fixed_dictionaries(FACTS))
def test_p_06_never_below_the_minimum_nor_above_maximum_and_partitions(wanted, current, least, most, facts):
    size, _ = cut(wanted, current, facts=facts, min_workers=least, max_workers=most)
    caps = [most, *(facts[name] for name in ("max_workers", "partitions") if facts[name] >= 1)]
    floors = [least, *([facts["min_workers"]] if facts["min_workers"] >= 0 else [])]
    assert min(*caps, max(floors)) <= size <= min(caps)


def test_rows_are_cut_by_their_own_limits():
    columns = rule_columns(2) | {"max_workers": column(5, 50)}
    facts = {name: np.full(2, nan) for name in WORKLOAD_SIGNALS}
    size, _ = within(column(20, 20), column(10, 10), columns, limits(columns, facts, 0.0))
    assert size.tolist() == [5, 20]
