"""The progress clock of a run: when its next report is due, and when its silence is too long."""

import numpy as np
import numpy.typing as npt

MINIMUM_HANG_SECONDS = 120.0
USUAL_HANG_SECONDS = 600.0
STARTUP_CEILING_SECONDS = 7200.0
"""Longest time before the first step, and longest evaluation, that counts as such."""
GAP_LOOK_SECONDS = 7200.0
"""A silence is measured by the gaps of so long before it: whoever looks later, or at another stretch, sees the same."""
FLUSH_SECONDS = 15.0
"""What a report may be late by buffering before it is called overdue, at least."""


def report_gap_seconds(ends: npt.NDArray[np.float64], same_session: npt.NDArray[np.bool_]) -> float | None:
    """The 99th percentile of the time from one report to the next; None with fewer than two reports.

    ``ends`` are the reports' times in order, ``same_session`` says of each whether the one before is of its
    session. Reports that arrive together count as one; gaps above five times the median are interruptions.
    """
    gaps = np.diff(ends)[same_session[1:]]
    gaps = gaps[gaps > 0.0]
    if not gaps.size:
        return None
    gaps = gaps[gaps >= 0.05 * gaps.max()]
    usual = gaps[gaps <= 5.0 * np.median(gaps)]
    return float(np.percentile(usual, 99))


def hang_threshold_seconds(gap_seconds: float | None) -> float:
    """Silence beyond which a run is not progressing: 5 gaps, at least 120 s, at most 600 s or 2 gaps.

    The factor is NVRx's, the bounds DLRover's; the gap is between reports, so that a log written every
    hundred steps is not a hang.
    """
    if gap_seconds is None:
        return USUAL_HANG_SECONDS
    return min(max(5.0 * gap_seconds, MINIMUM_HANG_SECONDS), max(USUAL_HANG_SECONDS, 2.0 * gap_seconds))


def pending_seconds(gap_seconds: float | None) -> float:
    """How long after a report the next one is not overdue."""
    if gap_seconds is None:
        return USUAL_HANG_SECONDS
    return gap_seconds + max(FLUSH_SECONDS, 0.5 * gap_seconds)
