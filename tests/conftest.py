"""Settings of every test."""

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# Fixtures that start a program of `make tools`.
PROGRAMS = {"helm", "conform", "promtool"}

# The same tree runs the same examples, however slow the machine. `--hypothesis-profile quick` runs fewer.
settings.register_profile(
    "deterministic", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("deterministic"), max_examples=10)
settings.load_profile("deterministic")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need tools."""
    for item in items:
        if PROGRAMS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.tools)


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """A command configures logging to a stderr that closes with its test."""
    yield
    structlog.reset_defaults()
