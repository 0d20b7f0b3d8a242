"""Slurm's ways to write things: numbers with flags, states, GRES and TRES, ranges of nodes and of indices. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

MOST_NODES: Final = 200_000
"""A range that stands for more names is no list of nodes."""
_GRES = re.compile(
    r"(?:^|,)(?:gres[:/])?gpu(?=[:=(,]|$)(?::(?P<type>[^:,()=\[\]]*[A-Za-z][^:,()=\[\]]*))?(?:[:=](?P<count>\d+))?"
    r"(?P<notes>(?:\([^)]*\))*)"
)
_INDICES = re.compile(r"\(IDX:([^)]*)\)", re.IGNORECASE)
_RANGE = re.compile(r"\[([^\]]*)\]")


def number(value: Any) -> float | None:
    """A number as any version writes it: plain, as text, or ``{"set": true, "infinite": false, "number": 4}``."""
    if isinstance(value, Mapping):
        if value.get("set") is False or value.get("infinite") is True:
            return None
        return number(value.get("number"))
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return float(str(value))
    except ValueError:
        return None


def whole(value: Any) -> int | None:
    """The same as a whole number."""
    found = number(value)
    return None if found is None else int(found)


def moment(value: Any) -> float | None:
    """A time in seconds; Slurm writes 0 and 2**32 - 2 for one that is not set."""
    found = number(value)
    return None if found is None or not 0.0 < found < 4_294_967_294.0 else found


def text(value: Any) -> str | None:
    """A text; ``(null)``, ``None assigned`` and nothing are none. Of ``{"name": …}`` the name."""
    if isinstance(value, Mapping):
        value = value.get("name")
    if not isinstance(value, str):
        return None if value is None or isinstance(value, (list, bool)) else str(value)
    plain = value.strip()
    return None if plain.lower() in ("", "(null)", "none", "none assigned", "n/a") else plain


def words(value: Any) -> frozenset[str]:
    """States and flags: a list, one text, ``IDLE+DRAIN``, or ``{"current": […]}``."""
    if isinstance(value, Mapping):
        value = value.get("current")
    if isinstance(value, str):
        value = re.split(r"[+,| ]", value)
    if not isinstance(value, (list, tuple)):
        return frozenset()
    return frozenset(str(word).strip(" *~#!%$@^-").upper() for word in value if str(word).strip())


def gpus_of(gres: str | None) -> int | None:
    """GPUs in ``gpu:h100:8(S:0-1)``, ``gpu:a100:4,gpu:h100:4``, ``gres:gpu:2``, ``cpu=8,gres/gpu=16``.

    A count without type is the sum of those with one, which Slurm writes beside it. None: it names no GPU.
    """
    plain: int | None = None
    typed: int | None = None
    for found in _GRES.finditer(gres or ""):
        count = int(found["count"]) if found["count"] is not None else 1
        if found["type"]:
            typed = (typed or 0) + count
        else:
            plain = (plain or 0) + count
    return plain if plain is not None else typed


def indices_of(gres: str | None) -> tuple[int, ...] | None:
    """GPUs by index in ``gpu:h100:6(IDX:0-3,5,7)``; None where they are not told."""
    found: list[int] = []
    for entry in _GRES.finditer(gres or ""):
        told = _INDICES.search(entry["notes"] or "")
        if told is None or told[1].strip().upper() in ("", "N/A"):
            return None
        found += [int(index) for index in _range_items(told[1])]
    return tuple(sorted(set(found))) or None


def _range_items(ranges: str) -> Iterator[str]:
    """The items of ``001-004,007``, with their leading zeros."""
    for part in ranges.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"{ranges!r} is no list of ranges")
        until = int(last) if dash else int(first)
        if until - int(first) > MOST_NODES:
            raise ValueError(f"{ranges!r} stands for more than {MOST_NODES} items")
        for item in range(int(first), until + 1):
            yield str(item).zfill(len(first))


def node_names(ranges: str | None) -> tuple[str, ...]:
    """The names in ``gpu[001-004,007],login1`` and ``r[1-2]n[01-04]``.

    Raises:
        ValueError: it is no list of nodes.
    """
    names: list[str] = []
    for part in _split_outside(ranges or ""):
        names += _expanded(part)
        if len(names) > MOST_NODES:
            raise ValueError(f"a list of nodes stands for more than {MOST_NODES} nodes")
    return tuple(names)


def _split_outside(ranges: str) -> Iterator[str]:
    """The parts between commas that are in no brackets."""
    depth, start = 0, 0
    for position, character in enumerate(ranges):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield ranges[start:position].strip()
            start = position + 1
    if ranges[start:].strip():
        yield ranges[start:].strip()


def _expanded(part: str) -> list[str]:
    found = _RANGE.search(part)
    if found is None:
        if "[" in part or "]" in part:
            raise ValueError(f"{part!r} is no list of nodes")
        return [part]
    rest = _expanded(part[found.end() :]) if found.end() < len(part) else [""]
    before = part[: found.start()]
    return [f"{before}{item}{after}" for item in _range_items(found[1]) for after in rest]
