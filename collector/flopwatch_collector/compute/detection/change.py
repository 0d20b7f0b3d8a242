"""Change points of a run's step time: a step change or a slow drift, blind to single long steps.

A running median takes out checkpoints, evaluations and spikes; then one cut and one straight line are fitted to the
logarithm of what remains, and the better one is reported if it changes the median by enough. Ten percent is the
level at which Greyhound confirms a fail-slow; a drift is judged against the fitted line's ends.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
CHANGE_RATIO: Final = 0.10
DRIFT_RATIO: Final = 0.07
LEAST_STEPS: Final = 60
LEAST_SIDE: Final = 15
FILTER_WIDTH: Final = 9
"""Up to four long steps in a row are taken for a pause."""
NOISE_FACTOR: Final = 4.0
MAD_TO_SIGMA: Final = 1.4826


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """How the step time changed."""

    kind: Literal["step", "drift"]
    index: int
    """First step of the new level; of a drift, 0."""
    before_seconds: float
    after_seconds: float

    @property
    def ratio(self) -> float:
        """Relative change; positive is slower."""
        return self.after_seconds / self.before_seconds - 1.0


def running_median(values: Floats, width: int = FILTER_WIDTH) -> Floats:
    """Median of ``width`` values around each, the first and last values repeated beyond the ends."""
    half = width // 2
    padded = np.concatenate((np.repeat(values[:1], half), values, np.repeat(values[-1:], half)))
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1))


def change_of(seconds: Floats) -> Change | None:
    """The change of a course of step times of one shape and batch, oldest first; None where there is none."""
    known = seconds[np.isfinite(seconds) & (seconds > 0.0)]
    if known.size < LEAST_STEPS:
        return None
    course = np.log(running_median(known))
    index, cut_error = _best_cut(course)
    line, line_error = _line(course)
    before, after = (float(np.exp(np.median(part))) for part in (course[:index], course[index:]))
    if cut_error <= line_error:
        found = Change(kind="step", index=index, before_seconds=before, after_seconds=after)
        return found if _stands(found.ratio, CHANGE_RATIO, np.log(known) - _levels(course, index)) else None
    first, last = float(np.exp(line[0])), float(np.exp(line[-1]))
    found = Change(kind="drift", index=0, before_seconds=first, after_seconds=last)
    return found if _stands(found.ratio, DRIFT_RATIO, np.log(known) - line) else None


def _best_cut(course: Floats) -> tuple[int, float]:
    """Where one cut leaves the least squares, and these."""
    size = course.size
    cuts = np.arange(LEAST_SIDE, size - LEAST_SIDE + 1)
    sums, squares = np.cumsum(course), np.cumsum(course**2)
    left = squares[cuts - 1] - sums[cuts - 1] ** 2 / cuts
    rest = sums[-1] - sums[cuts - 1]
    right = squares[-1] - squares[cuts - 1] - rest**2 / (size - cuts)
    best = int(np.argmin(left + right))
    return int(cuts[best]), max(0.0, float((left + right)[best]))


def _line(course: Floats) -> tuple[Floats, float]:
    place = np.arange(course.size, dtype=np.float64)
    slope, intercept = np.polyfit(place, course, 1)
    line = intercept + slope * place
    return line, float(((course - line) ** 2).sum())


def _levels(course: Floats, index: int) -> Floats:
    levels = np.full(course.size, np.median(course[:index]))
    levels[index:] = np.median(course[index:])
    return levels


def _stands(ratio: float, least: float, noise: Floats) -> bool:
    """Whether a change is large enough, and well beyond what the mean of so many noisy steps varies by."""
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(noise - np.median(noise))))
    error = NOISE_FACTOR * sigma / np.sqrt(min(noise.size / 2.0, 50.0))
    return abs(ratio) >= least and abs(np.log1p(ratio)) > error
