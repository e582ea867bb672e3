"""Select the disputes between two sources about a backlog that an operator has to look at."""

from collections.abc import Mapping

from adapter.core.observe import Tick
from adapter.core.samples import Dispute

_USUAL_S = 120.0  # between two commits of a group, or two checkpoints, an engine and a broker count differently
_LEAST_RECORDS = 1_000.0


def disputes(tick: Tick, reported: Mapping[str, Dispute]) -> tuple[str, ...]:
    """The dispute of each workload as a sentence; "" if the backlogs differ by less than the throughput of _USUAL_S."""
    names = tick.state.slow.workloads
    if not reported:
        return ("",) * len(names)
    throughput = tick.largest(tick.signals.throughput_records_per_s).tolist()
    return tuple(
        reported[name].sentence if name in reported and _is_significant(reported[name], each) else ""
        for name, each in zip(names, throughput, strict=True)
    )


def _is_significant(dispute: Dispute, throughput_records_per_s: float) -> bool:
    # Without a throughput (NaN), the usual difference between two commits is unknown: the dispute is not significant.
    return dispute.records > _LEAST_RECORDS and dispute.records > _USUAL_S * throughput_records_per_s
