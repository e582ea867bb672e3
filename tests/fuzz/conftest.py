"""The server under test, and the length of the fuzz: short by default, FUZZ_EXAMPLES a test in `make fuzz`."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from conformance.server import Running, run_server

if "FUZZ_EXAMPLES" in os.environ:
    # A new seed for each run; a failure prints how to repeat it.
    settings.register_profile(
        "fuzz",
        max_examples=int(os.environ["FUZZ_EXAMPLES"]),
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("fuzz")


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with run_server() as server:
        yield server
