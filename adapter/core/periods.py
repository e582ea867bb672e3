"""Times of the day at which nothing is decided."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From begin_min to end_min (minutes after midnight, begin included) on the days it begins on, in a time zone.

    An end at or before the begin lies on the next day. days: 0 is Monday. zone: a name of the IANA database.
    """

    days: tuple[int, ...]
    begin_min: int
    end_min: int
    zone: str = "UTC"

    def holds(self, at_s: float) -> bool:
        """Whether the instant, in Unix seconds, lies within, by the clocks on the wall of the zone."""
        local = datetime.fromtimestamp(at_s, ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        today, yesterday = local.weekday() in self.days, (local - timedelta(days=1)).weekday() in self.days
        if self.begin_min < self.end_min:
            return today and self.begin_min <= minute < self.end_min
        return (today and minute >= self.begin_min) or (yesterday and minute < self.end_min)
