"""One deterministic hypothesis profile: the same tree always runs the same examples, however slow the machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "deterministic", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("deterministic")
