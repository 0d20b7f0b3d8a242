"""A range of time as people write it on a command line."""

import re
from datetime import datetime, timezone

_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


class WrongUse(ValueError):
    """An option is wrong; the message has its name, its value and what is allowed."""


def timespan(start: str | None, end: str | None, last: str | None, now: float) -> tuple[float, float]:
    """Epoch seconds of [start, end): ``end`` is now where it is not given.

    Raises:
        WrongUse: neither or both of ``start`` and ``last`` are given, one is not understood, or nothing is between.
    """
    until = now if end is None else _moment("--to", end)
    if (start is None) == (last is None):
        raise WrongUse("give either --from TIME or --last SPAN")
    begin = until - _span(last) if last is not None else _moment("--from", start or "")
    if not 0 <= begin < until:
        raise WrongUse(f"--from {start or last} is not before --to {end or 'now'}")
    return begin, until


def _moment(option: str, text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        allowed = "ISO 8601, such as 2026-11-30T12:00 (UTC) or 2026-11-30T13:00+01:00"
        raise WrongUse(f"{option} is {text!r}; allowed: {allowed}") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)).timestamp()


def _span(text: str) -> float:
    found = _SPAN.fullmatch(text)
    if found is None or not float(found[1]):
        raise WrongUse(
            f"--last is {text!r}; allowed: a number above 0 and s, m, h, d or w, such as 90m or 7d"
        )
    return float(found[1]) * _UNITS[found[2]]
