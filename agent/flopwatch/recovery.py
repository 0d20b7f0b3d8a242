"""What failures and checkpoints cost a run, to first order, and the interval between checkpoints that costs least."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class LossTerms:
    """What the loss model is made from, seconds."""

    mttf_seconds: float
    detect_seconds: float
    restart_seconds: float
    """From the end of a session to the first step after it."""
    interval_seconds: float
    """Time between checkpoints."""
    save_seconds: float
    """What a save blocks the run for."""


def loss_ratio(terms: LossTerms) -> float:
    """Share of time that is lost, at most 1.

    Failures a second x (time to detect + time to restart + half a checkpoint interval) + save / interval.
    """
    rollback = terms.interval_seconds / 2.0
    failures = (terms.detect_seconds + terms.restart_seconds + rollback) / terms.mttf_seconds
    return min(1.0, failures + terms.save_seconds / terms.interval_seconds)


def optimum_interval_seconds(save_seconds: float, mttf_seconds: float) -> float:
    """The interval that loses least, by Young and Daly: the square root of 2 x save x mean time to failure."""
    return math.sqrt(2.0 * save_seconds * mttf_seconds)
