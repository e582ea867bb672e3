"""The calendar: periods of the day without decisions, and events with more input."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

EVENT_LEAD_S = 600.0  # the least time from a scale-up to its event, so that the workers are warm when it begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period of certain days of the week, in a time zone. An end at or before the start is on the next day."""

    days: tuple[int, ...]  # on which it begins; 0 is Monday
    begin_min: int  # minutes after midnight, included
    end_min: int  # minutes after midnight, excluded
    zone: str = "UTC"  # a name of the IANA database

    def holds(self, at_s: float) -> bool:
        """Whether the period includes a time in Unix seconds."""
        local = datetime.fromtimestamp(at_s, ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        today, yesterday = local.weekday() in self.days, (local - timedelta(days=1)).weekday() in self.days
        if self.begin_min < self.end_min:
            return today and self.begin_min <= minute < self.end_min
        return (today and minute >= self.begin_min) or (yesterday and minute < self.end_min)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A time with a known multiple of the usual input."""

    begin_s: float  # Unix seconds
    end_s: float
    times: float  # the input of the event / the input without an event
