"""The ledger for people: eight classes, and the ratios that follow from them.

Every figure a page shows comes from one answer of ``to_answer``.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flopwatch.query import LEDGER_CLASSES, WASTE_CLASSES, ClassAmount, Ledger, LedgerClass
from flopwatch_collector.compute import money
from flopwatch_collector.compute.buckets import (
    BUCKETS,
    CODE,
    HELD_BUCKETS,
    REASON_CODE,
    UNLEASED_BUCKETS,
    label,
)
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.money import Rates
from flopwatch_collector.model import Columns

Integers = npt.NDArray[np.int64]
CLASS_OF: Final[dict[str, LedgerClass]] = {
    "MAINT": "down", "FAULT": "down", "UNKNOWN": "unknown", "SPARE": "unallocated", "FREE": "unallocated",
    "HELD_EMPTY": "allocated_idle", "HELD_IDLE": "allocated_idle", "BUSY_OPAQUE": "unmeasured",
    "STARTUP": "in_job_loss", "RECOVERY": "stalled", "CKPT": "in_job_loss", "EVAL": "in_job_loss",
    "DATA_WAIT": "in_job_loss", "HANG": "stalled", "GAP": "in_job_loss", "LOST": "stalled", "STEP": "productive",
    "STRAGGLER": "in_job_loss", "THROTTLE": "in_job_loss", "EXPOSED_COMM": "in_job_loss",
}  # fmt: skip
_CLASS_INDEX = np.array([LEDGER_CLASSES.index(CLASS_OF[name]) for name in BUCKETS])
_UNLEASED = np.array([name in UNLEASED_BUCKETS for name in BUCKETS])
_HELD = np.array([name in HELD_BUCKETS for name in BUCKETS])
_WASTE = np.array([CLASS_OF[name] in WASTE_CLASSES for name in BUCKETS])


def is_waste(rows: Columns) -> npt.NDArray[np.bool_]:
    """Of each row, whether its bucket is of a class that is called waste."""
    return np.asarray(_WASTE[rows["bucket"]])


def is_leased(rows: Columns) -> npt.NDArray[np.bool_]:
    """Of each row, whether a lease held the time."""
    reason = rows["reason"]
    unknown = (rows["bucket"] == CODE["UNKNOWN"]) & (reason != REASON_CODE["leased"])
    return np.asarray(~_UNLEASED[rows["bucket"]] & ~unknown & (reason != REASON_CODE["unleased"]))


def is_billable(rows: Columns) -> npt.NDArray[np.bool_]:
    """Of each row, whether the time would have been billed for the same work: leased, known, not idle."""
    return np.asarray(is_leased(rows) & ~_HELD[rows["bucket"]] & (rows["bucket"] != CODE["UNKNOWN"]))


def to_answer(
    rows: Columns, rates: Rates, start: float, end: float, provisional_from: float | None
) -> Ledger:
    """The ledger of these rows, of ``start`` to ``end``; the classes add up to the capacity exactly."""
    time: Integers = rows["gpu_milliseconds"]
    capacity = int(time.sum())
    billable = int(time[is_billable(rows)].sum())
    unknown = int(time[rows["bucket"] == CODE["UNKNOWN"]].sum())
    waste = int(time[is_waste(rows)].sum())
    return Ledger(
        start_seconds=start,
        end_seconds=end,
        provisional_from_seconds=provisional_from,
        capacity_gpu_milliseconds=capacity,
        classes=_classes(rows, rates),
        waste_gpu_milliseconds=waste,
        waste_money=money.total(take(rows, is_waste(rows)), rates),
        billable_ratio=billable / capacity if capacity else None,
        billable_upper_ratio=(billable + unknown) / capacity if capacity else None,
        allocated_ratio=int(time[is_leased(rows)].sum()) / capacity if capacity else None,
        unknown_ratio=unknown / capacity if capacity else None,
    )


def _classes(rows: Columns, rates: Rates) -> tuple[ClassAmount, ...]:
    pairs = by_bucket(rows)
    costs = money.by_key(rows, rates, _CLASS_INDEX[rows["bucket"]], len(LEDGER_CLASSES))
    result = []
    for index, name in enumerate(LEDGER_CLASSES):
        own = {key: amount for key, amount in pairs.items() if _CLASS_INDEX[key[0]] == index}
        total = sum(own.values())
        result.append(
            ClassAmount(
                name=name,
                gpu_milliseconds=total,
                money=costs[index],
                buckets={label(*key): amount for key, amount in own.items()},
            )
        )
    return tuple(result)


def by_bucket(rows: Columns) -> dict[tuple[int, int], int]:
    """GPU milliseconds by (bucket, reason)."""
    return _grouped(rows["bucket"] * 1000 + rows["reason"], rows["gpu_milliseconds"])


def _grouped(keys: npt.NDArray[Any], amounts: Integers) -> dict[tuple[int, int], int]:
    totals = np.zeros(int(keys.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(totals, keys, amounts)
    found = np.flatnonzero(np.bincount(keys, minlength=1))
    return {
        divmod(key, 1000): total for key, total in zip(found.tolist(), totals[found].tolist(), strict=True)
    }


def by_class(rows: Columns) -> dict[str, int]:
    """GPU milliseconds by class; only classes that have any."""
    sums = np.zeros(len(LEDGER_CLASSES), dtype=np.int64)
    np.add.at(sums, _CLASS_INDEX[rows["bucket"]], rows["gpu_milliseconds"])
    return {name: int(sums[index]) for index, name in enumerate(LEDGER_CLASSES) if sums[index]}


def waste_by_job(rows: Columns) -> dict[int, int]:
    """Wasted GPU milliseconds by job; waste of no job is under 0."""
    chosen = is_waste(rows)
    jobs, inverse = np.unique(rows["job"][chosen], return_inverse=True)
    totals = np.zeros(jobs.size, dtype=np.int64)
    np.add.at(totals, inverse, rows["gpu_milliseconds"][chosen])
    return {int(job): int(total) for job, total in zip(jobs, totals, strict=True)}
