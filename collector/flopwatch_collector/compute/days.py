"""Local calendar days: their borders (23 and 25 hours happen), and a day's utilisation."""

from datetime import date, datetime, time, timedelta, tzinfo

import numpy as np

from flopwatch.query import Day
from flopwatch_collector.compute.buckets import CODE
from flopwatch_collector.compute.classes import is_billable
from flopwatch_collector.model import Columns

Border = tuple[date, float, float]
"""(day, start, end), epoch seconds."""
VALID_RATIO = 0.90
"""Known time as a share of capacity from which a day counts."""


def day_of(seconds: float, zone: tzinfo) -> date:
    """The local calendar day of a time."""
    return datetime.fromtimestamp(seconds, tz=zone).date()


def day_start(day: date, zone: tzinfo) -> float:
    """Epoch seconds of the day's first moment."""
    return datetime.combine(day, time(), tzinfo=zone).timestamp()


def borders(now: float, count: int, zone: tzinfo) -> tuple[Border, ...]:
    """The last ``count`` days up to today, oldest first: (day, start, end), each end the next start."""
    today = day_of(now, zone)
    days = [today - timedelta(days=back) for back in range(count - 1, -1, -1)]
    return tuple((day, day_start(day, zone), day_start(day + timedelta(days=1), zone)) for day in days)


def day_answer(day: date, rows: Columns, *, complete: bool) -> Day:
    """A day's utilisation from its ledger rows; without capacity it is unknown."""
    time_held = rows["gpu_milliseconds"]
    capacity = int(time_held.sum())
    unknown = int(time_held[rows["bucket"] == CODE["UNKNOWN"]].sum())
    billable = int(time_held[is_billable(rows)].sum())
    return Day(
        day=day.isoformat(),
        billable_ratio=billable / capacity if capacity else None,
        unknown_ratio=unknown / capacity if capacity else None,
        capacity_gpu_milliseconds=capacity,
        complete=complete,
        valid=bool(capacity) and capacity - unknown >= VALID_RATIO * capacity,
    )


def without(day: Day, barely_used_gpu_milliseconds: int | None) -> float | None:
    """The day's utilisation if barely used time were not billed; None where either is unknown."""
    if day.billable_ratio is None or barely_used_gpu_milliseconds is None:
        return None
    return max(0.0, day.billable_ratio - barely_used_gpu_milliseconds / day.capacity_gpu_milliseconds)


def split_by_day(rows: Columns, edges: list[float]) -> list[Columns]:
    """Rows of each interval between consecutive edges, by the start of their window."""
    index = np.searchsorted(np.array(edges), rows["ts"], side="right") - 1
    return [
        {name: values[index == number] for name, values in rows.items()} for number in range(len(edges) - 1)
    ]
