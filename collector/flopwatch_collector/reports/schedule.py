"""When reports go out by themselves, and about which period: the day, week or month before. Pure."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

from flopwatch_collector.config_reports import WEEKDAYS, ReportSettings

LATE_SECONDS = 86_400.0
"""A report that could not go out for so long does not go out any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Occasion:
    """One time a report is due, and its period."""

    due_seconds: float
    start_seconds: float
    end_seconds: float

    def is_open(self, now: float) -> bool:
        """Whether it may go out now."""
        return self.due_seconds <= now < self.due_seconds + LATE_SECONDS


def newest(settings: ReportSettings, now: float, zone: tzinfo) -> Occasion:
    """The last time the report was due, up to now."""
    today = datetime.fromtimestamp(now, tz=zone).date()
    last = _day(settings, today)
    if _at(last, settings.at, zone) > now:
        last = _day(settings, last - timedelta(days=1))
    first, end = _period(settings, last)
    return Occasion(
        due_seconds=_at(last, settings.at, zone),
        start_seconds=_at(first, "00:00", zone),
        end_seconds=_at(end, "00:00", zone),
    )


def _day(settings: ReportSettings, day: date) -> date:
    """The newest day up to this one on which the report goes out."""
    if settings.period == "daily":
        return day
    if settings.period == "weekly":
        return day - timedelta(days=(day.weekday() - WEEKDAYS.index(settings.weekday)) % 7)
    if day.day >= settings.day:
        return day.replace(day=settings.day)
    return (day.replace(day=1) - timedelta(days=1)).replace(day=settings.day)


def _period(settings: ReportSettings, day: date) -> tuple[date, date]:
    """(first day, day after the last one): the day before, the seven days before, the calendar month before."""
    if settings.period == "monthly":
        end = day.replace(day=1)
        return (end - timedelta(days=1)).replace(day=1), end
    return day - timedelta(days=1 if settings.period == "daily" else 7), day


def _at(day: date, clock: str, zone: tzinfo) -> float:
    hour, _, minute = clock.partition(":")
    return datetime.combine(day, time(int(hour), int(minute)), tzinfo=zone).timestamp()
