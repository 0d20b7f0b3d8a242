"""Money of GPU time: hours x (fixed + variable x busy), by the node's own prices where its group has any.

Busy are the buckets in which a job works or waits: all from ``BUSY_OPAQUE`` on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.buckets import BUCKETS, JOB_BUCKETS
from flopwatch_collector.model import Columns

HOUR_MILLISECONDS: Final = 3_600_000.0
_BUSY: Final = np.array([float(name in JOB_BUCKETS) for name in BUCKETS])
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """What a GPU-hour of capacity costs, and what a busy one costs more; ``None`` is not known."""

    fixed_per_gpu_hour: float | None = None
    variable_per_gpu_hour: float = 0.0
    by_node: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    """(fixed, variable) of nodes whose group has prices of its own, by the node's number."""

    @property
    def known(self) -> bool:
        """Whether there is any price."""
        return self.fixed_per_gpu_hour is not None or bool(self.by_node)


def amounts(rows: Columns, rates: Rates) -> Floats:
    """Money of every ledger row; NaN where its node has no price."""
    unknown = rates.fixed_per_gpu_hour is None
    fixed = np.full(rows["bucket"].size, np.nan if unknown else rates.fixed_per_gpu_hour)
    variable = np.full(rows["bucket"].size, rates.variable_per_gpu_hour)
    if rates.by_node:
        numbers = np.array(sorted(rates.by_node), dtype=np.int64)
        prices = np.array([rates.by_node[number] for number in numbers.tolist()])
        place = np.minimum(np.searchsorted(numbers, rows["node"]), numbers.size - 1)
        found = numbers[place] == rows["node"]
        fixed[found], variable[found] = prices[place[found], 0], prices[place[found], 1]
    result: Floats = rows["gpu_milliseconds"] / HOUR_MILLISECONDS * (fixed + variable * _BUSY[rows["bucket"]])
    return result


def total(rows: Columns, rates: Rates) -> float | None:
    """Money of all rows; None without a price, or where a node that has time in them has none."""
    if not rates.known:
        return None
    values = amounts(rows, rates)[rows["gpu_milliseconds"] > 0]
    return None if np.isnan(values).any() else float(values.sum())


def by_key(rows: Columns, rates: Rates, keys: npt.NDArray[Any], size: int) -> list[float | None]:
    """Money of the rows of every key from 0 to ``size``; None as in ``total``."""
    if not rates.known:
        return [None] * size
    held = rows["gpu_milliseconds"] > 0
    values, places = amounts(rows, rates)[held], keys[held]
    sums = np.bincount(places, weights=values, minlength=size)
    return [None if np.isnan(value) else float(value) for value in sums[:size]]
