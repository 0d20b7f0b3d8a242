"""The period of a report, as people ask for it: ``7d``, or dates in the site's time zone. Pure."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

from flopwatch_collector.compute.buckets import WINDOW_SECONDS

UNITS = {"h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}
LONGEST_SECONDS = 3 * 366 * 86_400.0
_LAST = re.compile(r"(\d+(?:\.\d+)?)([hdw])")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
ALLOWED_LAST = "a time such as 24h, 7d or 4w, at most three years"
ALLOWED_TIME = "a date such as 2026-11-30, an ISO time, or epoch seconds"


class WrongPeriod(ValueError):
    """A period is none; ``name`` is the option, ``value`` what was given, ``allowed`` what may be."""

    def __init__(self, name: str, value: str, allowed: str) -> None:
        super().__init__(f"{name} is {value!r}; allowed: {allowed}")
        self.name = name
        self.value = value
        self.allowed = allowed


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What was asked: how far back, or from when to when; without either the last seven days."""

    last: str | None = None
    start: str | None = None
    end: str | None = None


def period_of(asked: Asked, now: float, zone: tzinfo) -> tuple[float, float]:
    """(start, end) in epoch seconds, on the borders of the ledger's five minutes, never beyond ``now``.

    A date given as the end is included to its last moment.

    Raises:
        WrongPeriod: it is no period, is empty, or lies in the future.
    """
    if asked.start is None and asked.end is None:
        seconds = _seconds(asked.last or "7d")
        return _aligned(now - seconds), now
    if asked.last is not None:
        raise WrongPeriod("last", asked.last, "either last, or from and to")
    if asked.start is None:
        raise WrongPeriod("to", asked.end or "", "together with from")
    start = _aligned(_moment("from", asked.start, zone, is_end=False))
    end = now if asked.end is None else _moment("to", asked.end, zone, is_end=True)
    end = now if end >= now else _aligned(end)
    if start >= now:
        raise WrongPeriod("from", asked.start, "a time that has begun")
    if end <= start:
        raise WrongPeriod("to", asked.end or "now", f"later than from ({asked.start})")
    if end - start > LONGEST_SECONDS:
        raise WrongPeriod("from", asked.start, "at most three years before to")
    return start, end


def _seconds(text: str) -> float:
    found = _LAST.fullmatch(text.strip())
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    if not WINDOW_SECONDS <= seconds <= LONGEST_SECONDS:
        raise WrongPeriod("last", text, ALLOWED_LAST)
    return seconds


def _moment(name: str, text: str, zone: tzinfo, *, is_end: bool) -> float:
    plain = text.strip()
    try:
        if re.fullmatch(r"\d+(\.\d+)?", plain) and len(plain) > 8:
            return float(plain)
        if _DATE.fullmatch(plain):
            day = date.fromisoformat(plain) + timedelta(days=1 if is_end else 0)
            return datetime.combine(day, time(), tzinfo=zone).timestamp()
        found = datetime.fromisoformat(plain.replace("Z", "+00:00"))
        return (found if found.tzinfo is not None else found.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        raise WrongPeriod(name, text, ALLOWED_TIME) from None


def _aligned(seconds: float) -> float:
    return seconds // WINDOW_SECONDS * WINDOW_SECONDS
