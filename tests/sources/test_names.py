import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sources.names import LONGEST, slug, stage_slug

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("orders", "orders", id="a valid name stays"),
        pytest.param("Orders_v1.2-eu", "Orders_v1.2-eu", id="case, dots and underscores stay"),
        pytest.param("team/orders: eu", "team-orders--eu", id="a foreign character becomes a dash"),
        pytest.param("--orders__", "orders", id="the ends are alphanumeric"),
        pytest.param("x" * 62 + ".." + "y", "x" * 62, id="no dot is left at the end of a shortened name"),
        pytest.param("x" * 70, "x" * 63, id="at most 63 characters"),
        pytest.param("…", "", id="nothing is left"),
        pytest.param("", "", id="no name"),
    ],
)
def test_a_name_becomes_the_label_value_nearest_to_it(name: str, expected: str) -> None:
    assert slug(name) == expected


@given(st.text(max_size=200))
def test_a_slug_is_a_valid_label_value_and_its_own_slug(name: str) -> None:
    assert LABEL_VALUE.fullmatch(slug(name))
    assert slug(slug(name)) == slug(name)


@given(st.text(alphabet="abc-. ", min_size=LONGEST + 1, max_size=200), st.text(alphabet="abc-. ", max_size=200))
def test_long_names_that_begin_alike_are_different_stages(name: str, more: str) -> None:
    assert LABEL_VALUE.fullmatch(stage_slug(name))
    assert (stage_slug(name) == stage_slug(name + more)) == (more == "")


def test_a_short_name_of_a_stage_is_its_slug() -> None:
    assert stage_slug("Source: orders") == slug("Source: orders")
