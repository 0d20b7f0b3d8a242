"""GPU-hours of running jobs since they began, from the ledger."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from flopwatch_collector.compute.buckets import CODE, HELD_BUCKETS
from flopwatch_collector.compute.classes import is_leased
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.money import HOUR_MILLISECONDS
from flopwatch_collector.model import Columns, FleetState
from flopwatch_collector.views.sources import Sources
from flopwatch_collector.watched import Spending

FRESH_SECONDS = 300.0
"""So long what was read of the ledger is used again; of a job that began since, nothing is known yet."""
HELD = tuple(CODE[name] for name in sorted(HELD_BUCKETS))


@dataclass(kw_only=True, slots=True)
class SpendingBook:
    """Reads what running jobs used; used by one thread."""

    _read_seconds: float = -math.inf
    _newest: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def of(
        self, sources: Sources, state: FleetState, jobs: Collection[int], now: float
    ) -> dict[int, Spending]:
        """By job: what it used and what of that it held without work. Jobs without a row of the ledger are left out."""
        if not 0.0 <= now - self._read_seconds < FRESH_SECONDS:
            self._newest = _read(sources, state, jobs, now)
            self._read_seconds = now
        found = self._newest
        return {
            job: Spending(
                used_gpu_hours=found[job][0],
                idle_gpu_hours=found[job][1],
                declared_gpu_hours=state.jobs[job].declared_gpu_hours,
            )
            for job in jobs
            if job in found
        }


def _read(
    sources: Sources, state: FleetState, jobs: Collection[int], now: float
) -> dict[int, tuple[float, float]]:
    wanted = frozenset(jobs)
    begins = [state.jobs[job].start_seconds for job in jobs]
    begins += [lease.start_seconds for lease in state.leases.values() if lease.job in wanted]
    first = min((begin for begin in begins if begin is not None), default=math.inf)
    return spent(sources.accounting.ledger_rows(first, now)) if first < now else {}


def spent(rows: Columns) -> dict[int, tuple[float, float]]:
    """By job: (GPU-hours of its leases, those of them without work)."""
    own = take(rows, is_leased(rows) & (rows["job"] > 0))
    numbers, index = np.unique(own["job"], return_inverse=True)
    amounts = own["gpu_milliseconds"].astype(np.float64)
    idle = np.where(np.isin(own["bucket"], HELD), amounts, 0.0)
    totals = [np.bincount(index, weights=each, minlength=numbers.size) for each in (amounts, idle)]
    used, without = (each / HOUR_MILLISECONDS for each in totals)
    return dict(zip(numbers.tolist(), zip(used.tolist(), without.tolist(), strict=True), strict=True))
