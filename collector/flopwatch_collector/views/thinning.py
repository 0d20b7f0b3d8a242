"""Rows for a graph of limited width: thinned so that dips and peaks stay. Pure."""

import itertools
import math

import numpy as np
import numpy.typing as npt

from flopwatch_collector.model import Columns


def thinned(rows: Columns, by: str, points: int) -> Columns:
    """At most about ``points`` of the rows, in order: of each stretch the lowest and the highest of column ``by``.

    The first and the last row always stay. Rows are chosen, never averaged, so every value shown was measured.
    """
    count = rows["ts"].size
    if count <= max(points, 4):
        return rows
    chosen = _extremes(rows[by], max(2, points // 2))
    return {name: values[chosen] for name, values in rows.items()}


def _extremes(values: npt.NDArray[np.float64], stretches: int) -> npt.NDArray[np.int64]:
    """Indexes of the lowest and highest value of each stretch; of a stretch without values its first row."""
    edges = np.linspace(0, values.size, stretches + 1).astype(np.int64)
    low = np.where(np.isnan(values), np.inf, values)
    high = np.where(np.isnan(values), -np.inf, values)
    picked = [0, values.size - 1]
    for begin, end in itertools.pairwise(edges.tolist()):
        picked.append(begin + int(low[begin:end].argmin()))
        picked.append(begin + int(high[begin:end].argmax()))
    return np.unique(np.array(picked, dtype=np.int64))


def known(values: npt.NDArray[np.float64]) -> tuple[float | None, ...]:
    """The values as an answer has them: what is not a number is unknown."""
    return tuple(value if math.isfinite(value) else None for value in values.tolist())
