"""Whether metrics of a job's load are missing, so that the others show less load than there is."""

from adapter.core.observe import Tick
from adapter.core.policies.sizing import policy_has
from adapter.core.rates import Mask
from adapter.core.stage_reports import misses_stage

_FEWER_PARTITIONS_S = 600.0


def misses_metrics(tick: Tick) -> Mask:
    """Whether metrics of the load are missing, which a policy that follows the partitions does not need."""
    missing = misses_stage(tick.state.fast.reports, tick.at_s) | lost_partitions(tick)
    return missing & ~policy_has("follows_partitions", tick.rules)


def lost_partitions(tick: Tick) -> Mask:
    """Whether the partitions became fewer a short time ago, as when a worker misses some scrapes.

    A policy that follows the partitions follows them down at once.
    """
    fell: Mask = tick.at_s - tick.state.fast.partitions_fell_at_s < _FEWER_PARTITIONS_S
    return fell & ~policy_has("follows_partitions", tick.rules)
