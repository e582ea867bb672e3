"""One deterministic hypothesis profile: the same tree always runs the same examples, however slow the machine. And logs
that go where they went before."""

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

settings.register_profile(
    "deterministic", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("deterministic")


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """A command that a test called sends all logging to a stderr that is closed with the test."""
    yield
    structlog.reset_defaults()
