"""Predict how an HPA follows the target, by the arithmetic of its controller."""

from adapter.core.decisions import Reason
from adapter.operations.number_text import number, time_text
from adapter.operations.recorded_decision import RecordedDecision
from adapter.operations.rows import Row, TextSection
from adapter.simulator.hpa import Tolerance, by_average_value

_TOLERANCES = {
    "tolerance 10 %, the default": Tolerance(),
    'tolerance "0", as in hpa/': Tolerance(up_ratio=0.0, down_ratio=0.0),
}


def hpa_section(recorded: RecordedDecision) -> TextSection:
    """The new replicas for an External metric required_workers with AverageValue "1", by likely tolerances."""
    served, status = recorded.served, recorded.number("workload_status.current_workers")
    title = 'What the HPA will do (required_workers, AverageValue "1")'
    if served is None:
        return TextSection(
            title, (Row(name="no metric", value="503: the HPA keeps its replicas and shows the sentence above"),)
        )
    if status is None:
        return TextSection(title, (Row(name=f"metric {number(served)}", value="the number of workers is unknown"),))
    if recorded.decision.hpa_off:
        return TextSection(
            title, (Row(name="0 replicas", value="the HPA is off: scale the target to 1 to switch it on"),)
        )
    rows = [_by(name, tolerance, served, status) for name, tolerance in _TOLERANCES.items()]
    return TextSection(title, (*rows, *_late(recorded)))


def _by(name: str, tolerance: Tolerance, served: float, status: float) -> Row:
    wanted = float(by_average_value(served, 1.0, int(status), tolerance))
    return Row(name=name, value=f"{number(status)} -> {number(wanted)}", note=_why(served, status, wanted))


def _why(served: float, status: float, wanted: float) -> str:
    if served != status and wanted == status:
        return f"it ignores {number(served)}: set `tolerance`, or scale on required_workers_padded"
    if wanted == status:
        return "it stays"
    return "at once, or in steps as its `behavior` says" if wanted > status else "once its stabilization window allows"


def _late(recorded: RecordedDecision) -> list[Row]:
    if recorded.decision.reason is not Reason.NOT_ENACTED:
        return []
    namespace = recorded.decision.workload.partition("/")[0]
    waited = f"for {time_text(recorded.number('workload_status.committed_age_s'))}"
    return [
        Row(name=f"not enacted {waited}", note=f"read its HPA: kubectl --namespace {namespace} describe hpa"),
        Row(name="if ScalingLimited", note="minReplicas, maxReplicas or behavior of the HPA limit the change"),
        Row(name="otherwise", note="look for a quota, for pending pods, and for events of the HPA"),
    ]
