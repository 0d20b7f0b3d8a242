"""Lengths of time as people write them: ``30m``, ``1h30m``, ``7d``, or seconds as a number. Pure."""

import re

_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
ALLOWED = 'a length of time such as "90s", "30m", "1h30m" or "7d", or seconds as a number'


def seconds_of(value: object) -> float | None:
    """The length in seconds; None where it is none, or below 0."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value) if value >= 0 else None
    text = str(value).strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def text_of(seconds: float) -> str:
    """The shortest exact text: 5400 is ``1h30m``."""
    left, parts = seconds, []
    for unit in "dhm":
        count = int(left // _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
            left -= count * _UNITS[unit]
    if left or not parts:
        parts.append(f"{left:g}s")
    return "".join(parts)
