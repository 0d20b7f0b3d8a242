"""Numbers, times and amounts as people read them; ``None`` is ``n/a``, never zero."""

import datetime
import functools
import math
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

UNKNOWN = "n/a"
SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "CNY": "¥", "JPY": "¥"}
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SI = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18), ("Z", 1e21))


def finite(value: float | None) -> float | None:
    """The value, or None where it is not a number that can be shown."""
    return value if value is not None and math.isfinite(value) else None


def number(value: float | None, digits: int = 0) -> str:
    """``12,345.6`` with a fixed number of decimals."""
    value = finite(value)
    return UNKNOWN if value is None else f"{value:,.{digits}f}"


def percent(ratio: float | None, digits: int = 1) -> str:
    """``61.8%`` of a ratio; the same form in both languages."""
    ratio = finite(ratio)
    return UNKNOWN if ratio is None else f"{ratio * 100:.{digits}f}%"


def line_percent(ratio: float | None) -> str:
    """A reference line's percentage: decimals only where it has them."""
    ratio = finite(ratio)
    if ratio is None:
        return UNKNOWN
    return f"{round(ratio * 100, 1):g}%"


def points(ratio: float | None) -> str:
    """A signed difference in percentage points, ``-6.4``."""
    ratio = finite(ratio)
    return UNKNOWN if ratio is None else f"{ratio * 100:+.1f}"


def hours(gpu_milliseconds: float | None, digits: int = 0) -> str:
    """GPU-hours of GPU milliseconds; small amounts keep a decimal so that they do not read as none."""
    if gpu_milliseconds is None:
        return UNKNOWN
    value = gpu_milliseconds / 3_600_000
    if value >= 1e6 and not digits:
        return f"{value / 1e6:,.2f}M"
    return number(value, 1 if 0 < value < 10 and not digits else digits)


def money(amount: float | None, currency: str, digits: int = 0) -> str:
    """``$17,862``, or ``CHF 17,862`` for a currency without a well-known sign."""
    amount = finite(amount)
    if amount is None:
        return UNKNOWN
    sign = "-" if amount < 0 else ""
    return f"{sign}{SYMBOLS.get(currency, currency + ' ')}{abs(amount):,.{digits}f}"


def si(value: float | None, unit: str = "", digits: int = 1) -> str:
    """``989.5 TFLOP/s``: the value with the SI prefix that keeps it between 1 and 1,000."""
    value = finite(value)
    if value is None:
        return UNKNOWN
    size = max(1.0, abs(value))
    prefix, scale = next((p, s) for p, s in reversed(SI) if size >= s)
    shown = f"{value / scale:,.{digits}f}" if prefix or value % 1 else f"{value:,.0f}"
    return f"{shown} {prefix}{unit}".rstrip()


def zone(name: str) -> datetime.tzinfo:
    """The time zone of that name; UTC where this machine does not know it, and the clock says so."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return datetime.timezone.utc


@functools.lru_cache(maxsize=256)
def is_zone(name: str) -> bool:
    """Whether this machine knows a time zone of that name."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def utc(epoch_seconds: float) -> str:
    """``2026-11-30T15:12Z``, as addresses hold it."""
    return local(epoch_seconds, "UTC").strftime("%Y-%m-%dT%H:%MZ")


def span(begin_seconds: float, end_seconds: float, zone_name: str, lang: str) -> str:
    """``30 Nov 2026 10:00 - 12:30`` with a dash between; the second day is named where it is another."""
    begin, end = local(begin_seconds, zone_name), local(end_seconds, zone_name)
    last = f"{end:%H:%M}" if begin.date() == end.date() else f"{day(end, lang)} {end:%H:%M}"
    return f"{day(begin, lang)} {begin:%H:%M} – {last}"  # noqa: RUF001 - a range takes an en dash


def local(epoch_seconds: float, zone_name: str) -> datetime.datetime:
    """The moment as that zone's calendar and clock."""
    return datetime.datetime.fromtimestamp(epoch_seconds, zone(zone_name))


def clock(epoch_seconds: float | None, zone_name: str) -> str:
    """``15:12:00 CET``."""
    return UNKNOWN if epoch_seconds is None else local(epoch_seconds, zone_name).strftime("%H:%M:%S %Z")


def day(date: datetime.date, lang: str) -> str:
    """``30 Nov 2026``, or ``2026年11月30日``."""
    if lang == "zh":
        return f"{date.year}年{date.month}月{date.day}日"
    return f"{date.day} {MONTHS[date.month - 1]} {date.year}"


def written_day(text: str, lang: str) -> str:
    """The day of an ISO date as the language writes it; any other text as it stands."""
    try:
        return day(datetime.date.fromisoformat(text), lang)
    except ValueError:
        return text


def moment(epoch_seconds: float | None, zone_name: str, lang: str) -> str:
    """``30 Nov 2026 15:12``, or ``2026年11月30日 15:12``."""
    if epoch_seconds is None:
        return UNKNOWN
    at = local(epoch_seconds, zone_name)
    return f"{day(at, lang)} {at:%H:%M}"


def step_time(seconds: float | None) -> str:
    """A step's duration: ``0.412 s``, ``12.40 s``, ``184 s``."""
    seconds = finite(seconds)
    if seconds is None:
        return UNKNOWN
    digits = 3 if seconds < 1 else 2 if seconds < 100 else 0
    return f"{seconds:,.{digits}f} s"
