"""What an HPA does with the number, by the arithmetic of its controller."""

from adapter.core.decisions import Reason
from adapter.operations.reading import Reading
from adapter.operations.rows import Row, Section
from adapter.operations.words import lasting, number
from adapter.simulator.hpa import Tolerance, by_average_value, milli

_TARGET_MILLI = milli("1")
_TOLERANCES = {
    "tolerance 10 %, the default": Tolerance(),
    'tolerance "0", as in hpa/': Tolerance(up_ratio=0.0, down_ratio=0.0),
}


def enacted(reading: Reading) -> Section:
    """For an External metric required_workers with AverageValue "1", by the tolerances an HPA is likely to have."""
    served, status = reading.served, reading.number("workload_status.current_workers")
    title = 'What the HPA will do (required_workers, AverageValue "1")'
    if served is None:
        return Section(title, (Row(name="no metric", value="503: it keeps its size, and shows the sentence above"),))
    if status is None:
        return Section(title, (Row(name=f"metric {number(served)}", value="the number of workers is unknown"),))
    rows = [_by(name, tolerance, served, status) for name, tolerance in _TOLERANCES.items()]
    return Section(title, (*rows, *_late(reading)))


def _by(name: str, tolerance: Tolerance, served: float, status: float) -> Row:
    wanted = float(by_average_value(round(served * 1000), _TARGET_MILLI, int(status), tolerance))
    return Row(name=name, value=f"{number(status)} -> {number(wanted)}", note=_why(served, status, wanted))


def _why(served: float, status: float, wanted: float) -> str:
    if served != status and wanted == status:
        return f"it ignores {number(served)}: set `tolerance`, or scale on required_workers_padded"
    if wanted == status:
        return "it stays"
    return "at once, or in steps as its `behavior` says" if wanted > status else "once its stabilization window allows"


def _late(reading: Reading) -> list[Row]:
    if reading.decision.reason is not Reason.NOT_ENACTED:
        return []
    namespace = reading.decision.workload.partition("/")[0]
    waited = f"for {lasting(reading.number('workload_status.committed_age_s'))}"
    return [
        Row(name=f"not enacted {waited}", note=f"kubectl -n {namespace} describe hpa: find the HPA that names it"),
        Row(name="ScalingLimited there", note="its minReplicas, maxReplicas or behavior keep it"),
        Row(name="else", note="look for a quota, for pods that are pending, and for its events"),
    ]
