"""The buckets of waste accounting: every GPU millisecond of capacity is in exactly one.

Rows keep small numbers, so both tables may grow at their end only.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

BUCKETS: Final = (
    "MAINT", "FAULT", "UNKNOWN", "SPARE", "FREE", "HELD_EMPTY", "HELD_IDLE", "BUSY_OPAQUE", "STARTUP", "RECOVERY",
    "CKPT", "EVAL", "DATA_WAIT", "HANG", "GAP", "LOST", "STEP", "STRAGGLER", "THROTTLE", "EXPOSED_COMM",
)  # fmt: skip
"""``STEP`` is kept step time less what a straggler, throttling and exposed communication took of it."""
CODE: Final = {name: code for code, name in enumerate(BUCKETS)}

REASONS: Final = (
    "", "no_demand", "fragmented", "sched_delay", "stranded", "unspecified", "unleased", "steps_lost", "idle_unknown",
    "generation", "report_pending", "no_steps", "leased", "unassigned", "stale_process", "platform", "user",
)  # fmt: skip
"""Why a bucket applies, where that is known; empty when there is nothing to add.

``leased``: unknown time inside a lease. ``unassigned``: the part of a GPU that no MIG instance or share takes.
``report_pending``: the run is inside the time in which its next report is due. ``platform`` and ``user``: whose
loss a hang, a recovery or rolled-back work is; without either it is not known.
"""
REASON_CODE: Final = {name: code for code, name in enumerate(REASONS)}

LEDGER_COLUMNS: Final = (
    "ts",
    "node",
    "job",
    "bucket",
    "reason",
    "gpu_milliseconds",
    "useful_gpu_milliseconds",
)
"""``bucket`` and ``reason`` are indexes into the tables above; the cluster is the node's."""
INTEGER_COLUMNS: Final = LEDGER_COLUMNS[1:]

WINDOW_SECONDS: Final = 300
WINDOW_MILLISECONDS: Final = WINDOW_SECONDS * 1000

UNLEASED_BUCKETS: Final = frozenset({"MAINT", "FAULT", "SPARE", "FREE"})
HELD_BUCKETS: Final = frozenset({"HELD_EMPTY", "HELD_IDLE"})
JOB_BUCKETS: Final = frozenset(BUCKETS[CODE["BUSY_OPAQUE"] :])


def label(bucket: int, reason: int) -> str:
    """``BUCKET`` or ``BUCKET:reason``."""
    return BUCKETS[bucket] + (f":{REASONS[reason]}" if reason else "")


def empty_rows() -> dict[str, npt.NDArray[Any]]:
    """A ledger of no rows."""
    rows: dict[str, npt.NDArray[Any]] = {name: np.empty(0, dtype=np.int64) for name in INTEGER_COLUMNS}
    return {"ts": np.empty(0), **rows}


def distinct(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The values in order, each once; faster than ``numpy.unique``, which hashes."""
    ordered = np.sort(values)
    if not ordered.size:
        return ordered
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]


def milliseconds(seconds: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Epoch seconds as whole milliseconds, to the nearest."""
    return np.rint(np.asarray(seconds, dtype=np.float64) * 1000.0).astype(np.int64)
