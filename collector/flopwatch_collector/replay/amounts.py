"""Ledger rows as the figures of waste accounting: 17 buckets, the split of STEP, and the ratios. Pure."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flopwatch.query import LEDGER_CLASSES
from flopwatch_collector.compute import money
from flopwatch_collector.compute.buckets import BUCKETS, CODE, label
from flopwatch_collector.compute.classes import by_bucket, by_class, is_billable, is_leased, is_waste
from flopwatch_collector.compute.money import Rates
from flopwatch_collector.model import Columns

SPLIT: Final = ("STRAGGLER", "THROTTLE", "EXPOSED_COMM")
"""Buckets that are parts of kept step time."""
NAMES: Final = tuple(name for name in BUCKETS if name not in SPLIT)
"""The 17 buckets; STEP is all kept step time."""
Answer = dict[str, Any]


def seconds(milliseconds: float) -> float:
    """GPU-seconds, exact to the millisecond."""
    return round(milliseconds / 1000.0, 3)


def gpu_seconds(rows: Columns) -> dict[str, float]:
    """GPU-seconds by bucket, all 17, those without time as 0."""
    return {name: seconds(amount) for name, amount in _by_name(rows).items()}


def _by_name(rows: Columns) -> dict[str, int]:
    totals = dict.fromkeys(NAMES, 0)
    for (bucket, _), amount in by_bucket(rows).items():
        name = BUCKETS[bucket]
        totals["STEP" if name in SPLIT else name] += amount
    return totals


def amounts(rows: Columns) -> Answer:
    """GPU-seconds, GPU-hours and shares by bucket, their sum, classes and reasons."""
    totals = _by_name(rows)
    capacity = sum(totals.values())
    classes = by_class(rows)
    reasons = {label(*key): seconds(amount) for key, amount in sorted(by_bucket(rows).items()) if key[1]}
    return {
        "capacity_gpu_seconds": seconds(capacity),
        "capacity_gpu_hours": capacity / 3.6e6,
        "gpu_seconds": {name: seconds(amount) for name, amount in totals.items()},
        "gpu_hours": {name: amount / 3.6e6 for name, amount in totals.items()},
        "ratio": {name: ratio(amount, capacity) for name, amount in totals.items()},
        "reasons_gpu_seconds": reasons,
        "classes_gpu_seconds": {name: seconds(classes.get(name, 0)) for name in LEDGER_CLASSES},
        "waste_gpu_seconds": seconds(int(rows["gpu_milliseconds"][is_waste(rows)].sum())),
    }


def money_by_bucket(rows: Columns, rates: Rates) -> dict[str, float | None]:
    """Money by bucket, all 17; None where a node that has time in it has no price."""
    places = np.array([NAMES.index("STEP" if name in SPLIT else name) for name in BUCKETS])
    return dict(zip(NAMES, money.by_key(rows, rates, places[rows["bucket"]], len(NAMES)), strict=True))


def grouped(rows: Columns, keys: npt.NDArray[np.int64], name_of: Callable[[int], str]) -> dict[str, Answer]:
    """GPU-seconds by bucket of each key's rows, by the key's name; only buckets that have any."""
    result: dict[str, Answer] = {}
    for key in np.unique(keys).tolist():
        own = {name: values[keys == key] for name, values in rows.items()}
        found = {name: amount for name, amount in gpu_seconds(own).items() if amount}
        total = seconds(int(own["gpu_milliseconds"].sum()))
        result[name_of(int(key))] = {"capacity_gpu_seconds": total, "gpu_seconds": found}
    return result


def step_split(rows: Columns, known_jobs: npt.NDArray[np.int64]) -> Answer:
    """Kept step time in GPU-second equivalents: useful, straggler, throttle, exposed communication, intrinsic.

    ``known_jobs`` are those whose MFU is known.

    ``INTRINSIC_UNKNOWN`` is that of jobs whose MFU is not known: nothing of it is called useful.
    """
    bucket, time = rows["bucket"], rows["gpu_milliseconds"]
    step = bucket == CODE["STEP"]
    known = step & np.isin(rows["job"], known_jobs)
    useful = int(rows["useful_gpu_milliseconds"][known].sum())
    parts = {name: seconds(int(time[bucket == CODE[name]].sum())) for name in SPLIT}
    return {
        "USEFUL": seconds(useful) if known.any() or not step.any() else None,
        **parts,
        "INTRINSIC": seconds(int(time[known].sum()) - useful),
        "INTRINSIC_UNKNOWN": seconds(int(time[step & ~known].sum())),
    }


def metrics(rows: Columns, known_jobs: npt.NDArray[np.int64]) -> Answer:
    """Ratios as bucket sums; None without a denominator."""
    totals = _by_name(rows)
    capacity = sum(totals.values())
    leased = int(rows["gpu_milliseconds"][is_leased(rows)].sum())
    billable = int(rows["gpu_milliseconds"][is_billable(rows)].sum())
    step, opaque = totals["STEP"], _leased_opaque(rows)
    useful, known = _useful(rows, known_jobs)
    return {
        "availability": ratio(capacity - totals["MAINT"] - totals["FAULT"], capacity),
        "U_alloc": ratio(leased, capacity),
        "U_bill": ratio(billable, capacity),
        "U_bill_upper": ratio(billable + totals["UNKNOWN"], capacity),
        "SG": ratio(leased, capacity),
        "RG_lower": ratio(step, leased),
        "RG_upper": ratio(step + opaque, leased),
        "PG": ratio(useful, known) if known else None,
        "PG_coverage": ratio(known, step),
        "MPG_lower_bound": ratio(useful, capacity) if known else None,
        "unknown_ratio": ratio(totals["UNKNOWN"], capacity),
        "busy_opaque_ratio": ratio(totals["BUSY_OPAQUE"], capacity),
    }


def _leased_opaque(rows: Columns) -> int:
    chosen = (rows["bucket"] == CODE["BUSY_OPAQUE"]) & is_leased(rows)
    return int(rows["gpu_milliseconds"][chosen].sum())


def _useful(rows: Columns, known_jobs: npt.NDArray[np.int64]) -> tuple[int, int]:
    """(useful, kept) GPU milliseconds of jobs whose MFU is known; a step's parts are all of it."""
    kept = np.isin(rows["bucket"], [CODE[name] for name in ("STEP", *SPLIT)])
    chosen = kept & np.isin(rows["job"], known_jobs)
    return int(rows["useful_gpu_milliseconds"][chosen].sum()), int(rows["gpu_milliseconds"][chosen].sum())


def ratio(part: float, whole: float) -> float | None:
    """A share; None of nothing."""
    return part / whole if whole else None
