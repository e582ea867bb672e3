"""The reasons of a decision in the terms of the dashboards: matchers and colors."""

from adapter.core.reasons import REASONS, Reason
from dashboards.build.panels import BLUE, GREEN, ORANGE, RED


def matcher(reasons: tuple[Reason, ...]) -> str:
    """A matcher of decision_info that selects these reasons."""
    return f'reason=~"{"|".join(reason.value for reason in reasons)}"'


GATES = tuple(reason for reason in REASONS if reason.record.opens)
ATTENTION = tuple(reason for reason in REASONS if reason.record.needs_attention)
UNKNOWN = (Reason.NO_DATA, Reason.EXPIRED)


def color(reason: Reason) -> str:
    """Red needs a person, blue changes the size, orange holds it, green is at rest."""
    if reason.record.needs_attention:
        return RED
    if reason.record.opens:
        return ORANGE
    return BLUE if reason.record.is_moving else GREEN


COLORS = {f"{reason.value}$": color(reason) for reason in REASONS}
LEGEND = "Red needs a person, orange holds the size, blue changes it, green is at rest."
