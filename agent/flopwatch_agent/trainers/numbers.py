"""Numbers and durations as trainers print them."""

import math
import re
from typing import Literal

Loss = float | Literal["inf", "-inf", "nan"]

NUMBER = (
    r"[-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|[nN][aA][nN]|[iI][nN][fF](?:inity|INITY)?)"
    r"(?![\d.]*[eE][-+]?$)"
)
"""A printed number: thousands separators, exponents, nan and inf included; none whose exponent was cut off."""

_SUFFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?![\d,])")
_CLOCK = re.compile(r"(?:(\d+) days?, *)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$")
_WORDS = re.compile(r"(?:(\d+) ?d(?:ays?)? ?)?(?:(\d+) ?h ?)?(?:(\d+) ?m ?)?(?:(\d+(?:\.\d+)?) ?s)?$")


def parse_number(text: str, suffix: str = "") -> float | None:
    """The number, scaled by an SI suffix (``K`` .. ``P``; ``B`` is 1e9); ``None`` when it is no number.

    Commas stand between groups of three digits or after the number: ``3,42`` is what another locale writes, and none.
    """
    text = text.rstrip(",")
    if "," in text:
        if _GROUPED.match(text) is None:
            return None
        text = text.replace(",", "")
    try:
        return float(text) * _SUFFIX[suffix]
    except (ValueError, KeyError):
        return None


def finite(value: float | None) -> float | None:
    """``value`` unless it is nan or infinite."""
    return value if value is not None and math.isfinite(value) else None


def loss_value(value: float | None) -> Loss | None:
    """A loss for a row: a finite number, or the text ``inf``, ``-inf`` or ``nan``."""
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"


def parse_duration(text: str) -> float | None:
    """Seconds of ``1 day, 2:03:04``, ``01:35`` or ``1h 20m 39s``; ``None`` when it is neither."""
    stripped = text.strip()
    found = _CLOCK.match(stripped) or _WORDS.match(stripped)
    if found is None or not stripped:
        return None
    days, hours, minutes, seconds = (float(part) if part else 0.0 for part in found.groups())
    return days * 86_400 + hours * 3_600 + minutes * 60 + seconds


def resolution(text: str) -> float:
    """The worth of the last digit of a printed number: ``12.73`` gives 0.01, ``1.106e+04`` gives 10."""
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    try:
        return float(10.0 ** (int(exponent or 0) - decimals))
    except (ValueError, OverflowError):
        return 0.0
