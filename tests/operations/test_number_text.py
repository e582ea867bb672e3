"""Numbers of a record as text."""

import pytest

from adapter.operations.number_text import number


@pytest.mark.parametrize(("workers", "text"), [(-0.0, "0"), (-1e-9, "0"), (4.0, "4"), (None, "no number")])
def test_a_count_of_workers_is_never_minus_nothing(workers, text):
    assert number(workers) == text
