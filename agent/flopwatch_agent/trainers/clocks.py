"""Times that stand in log lines, as epoch seconds, and what is unsure about them."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

SEARCHED_CHARACTERS = 240
"""A line's time stands at its beginning."""

_DAY_SECONDS = 86_400.0
_CLOCK_SLACK_SECONDS = 60.0
"""A line may seem to come from a moment after its arrival: clocks differ a little."""

_TIME = r"(?P<h>[0-2]\d):(?P<mi>[0-5]\d):(?P<s>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"(?P<y>20\d\d)[-/](?P<mo>[01]\d)[-/](?P<d>[0-3]\d)[T ]{_TIME}(?P<z>Z|[+-]\d\d:?\d\d)?",
        rf"(?<!\d)(?P<mo>[01]\d)/(?P<d>[0-3]\d)/(?P<y>20\d\d)[ ,]+{_TIME}",
        rf"\[(?P<mo>[01]\d)/(?P<d>[0-3]\d)/(?P<yy>\d\d) {_TIME}\]",
        rf"(?<![\d-])(?P<mo>[01]\d)-(?P<d>[0-3]\d) {_TIME}",
        rf"(?<![\d/])(?P<mo>[01]\d)/(?P<d>[0-3]\d) {_TIME}",
        rf"(?:^|\s)[IWEF](?P<mo>[01]\d)(?P<d>[0-3]\d) {_TIME}",
        rf"^\W{{0,4}}{_TIME}(?=\W)",
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stamp:
    """A time read from a line. Without a zone it counts as UTC; without a date, as seconds of the day."""

    seconds: float
    dated: bool
    zoned: bool


def read_stamp(text: str) -> Stamp | None:
    """The first time that stands in the beginning of ``text``."""
    head = text[:SEARCHED_CHARACTERS]
    for form in _FORMS:
        found = form.search(head)
        if found:
            return _stamp(found.groupdict())
    return None


def _stamp(part: dict[str, str | None]) -> Stamp | None:
    clock = int(part["h"] or 0) * 3_600 + int(part["mi"] or 0) * 60 + int(part["s"] or 0)
    fraction = float(f"0.{part['f']}") if part.get("f") else 0.0
    year = part.get("y") or (f"20{part['yy']}" if part.get("yy") else None)
    if year is None:
        return Stamp(seconds=clock + fraction, dated=False, zoned=False)
    try:
        day = datetime(int(year), int(part["mo"] or 1), int(part["d"] or 1), tzinfo=timezone.utc)
    except ValueError:
        return None
    zone = part.get("z")
    return Stamp(
        seconds=day.timestamp() + clock + fraction - _offset_seconds(zone), dated=True, zoned=zone is not None
    )


def _offset_seconds(zone: str | None) -> float:
    if zone is None or zone == "Z":
        return 0.0
    sign = -1.0 if zone[0] == "-" else 1.0
    digits = zone[1:].replace(":", "")
    return sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:])).total_seconds()


def elapsed_seconds(earlier: Stamp, later: Stamp) -> float | None:
    """Seconds between two times of one log; a bare time of day that went back has crossed midnight."""
    if earlier.dated != later.dated:
        return None
    difference = later.seconds - earlier.seconds
    if not later.dated and difference < -_DAY_SECONDS / 2:
        difference += _DAY_SECONDS
    return difference


def event_seconds(
    stamp: Stamp | None, arrived_at_seconds: float | None, utc_offset_seconds: float
) -> float | None:
    """Epoch seconds of the event: the printed time where it can be placed, else the arrival.

    A time without a zone is the writer's local time: ``utc_offset_seconds`` east of Greenwich. A time without
    a date is the last such moment before the arrival.
    """
    if stamp is None:
        return arrived_at_seconds
    if stamp.dated:
        return stamp.seconds if stamp.zoned else stamp.seconds - utc_offset_seconds
    if arrived_at_seconds is None:
        return None
    behind = (arrived_at_seconds + utc_offset_seconds - stamp.seconds + _CLOCK_SLACK_SECONDS) % _DAY_SECONDS
    return arrived_at_seconds + _CLOCK_SLACK_SECONDS - behind
