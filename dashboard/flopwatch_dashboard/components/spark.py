"""Sparklines as images: a tile's and a row's recent course."""

import urllib.parse
from collections.abc import Sequence

from flopwatch_dashboard import wording


def sparkline(values: Sequence[float | None], color: str, width: int = 92, height: int = 20) -> str | None:
    """A data URI of the course from zero (or the smallest value) up; gaps stay gaps; None without two values."""
    points = [wording.finite(value) for value in values]
    known = [value for value in points if value is not None]
    if len(known) < 2:
        return None
    low, high = min(0.0, *known), max(known)
    if low == 0.0 and min(known) > high * 0.6:
        low = min(known) - (high - min(known)) - high * 0.15
    span = (high - low) or 1.0
    lines = []
    for run in _runs(points):
        marks = (
            f"{i * width / (len(points) - 1):.1f},{height - 1.5 - (value - low) / span * (height - 3):.1f}"
            for i, value in run
        )
        lines.append(
            f"<polyline points='{' '.join(marks)}' fill='none' stroke='{color}' stroke-width='1.4'/>"
        )
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}'>{''.join(lines)}</svg>"
    )
    return "data:image/svg+xml," + urllib.parse.quote(svg)


def _runs(points: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The stretches without gaps, with the positions of their values."""
    runs: list[list[tuple[int, float]]] = [[]]
    for i, value in enumerate(points):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((i, value))
    return [run for run in runs if run]
