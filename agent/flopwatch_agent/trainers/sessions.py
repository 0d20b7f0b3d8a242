"""Where a reading belongs: the session that is going on, a new one, or nowhere."""

from itertools import pairwise
from typing import Literal

from flopwatch_agent.trainers.clocks import elapsed_seconds
from flopwatch_agent.trainers.reading import Launch, Reading

Place = Literal["same", "new", "hold", "drop"]

STALE_SECONDS = 3_600.0
"""A row whose own time is so much older than the row before was quoted, not printed now."""
LATE_RANK_SECONDS = 5.0
_LATE_INTERVALS = 8
FAR_INTERVALS = 50
"""A step so many intervals ahead needs a second row that agrees."""


def place(reading: Reading, launch: Launch, *, announced: bool, resumed: bool) -> Place:
    """Where the reading belongs by the row before it.

    A step that goes back, jumps far ahead or carries an old date is held until a second row agrees: a quoted
    line, a file that somebody printed, a late rank must not open a session. A launch that the log announced
    needs no second row.
    """
    previous = launch.previous
    if previous is None:
        return "same"
    follows = reading.step - previous.step
    if announced or (resumed and not 0 < follows <= (launch.interval or 1)):
        return "new"
    other_rank = reading.rank is not None and launch.rank is not None and reading.rank != launch.rank
    if follows == 0 or (other_rank and (follows < 0 or reading.step in launch.seen)):
        return "drop"
    if follows < 0 and (_late_rank(reading, launch) or _overtaken(reading, launch)):
        return "drop"
    if follows < 0 or _stale(previous, reading) or _far(follows, launch):
        return "hold"
    return "same"


def _late_rank(reading: Reading, launch: Launch) -> bool:
    """Whether another rank, later than the first, prints a step that has just been printed."""
    for earlier in launch.latest:
        if earlier.step == reading.step:
            return _alike(earlier.get("loss"), reading.get("loss")) and _same_moment(earlier, reading)
    return False


def _overtaken(reading: Reading, launch: Launch) -> bool:
    """Whether a rank that fell behind prints a step that no rank had printed when others went on.

    A launch that went back begins with a step that was printed before.
    """
    if reading.step in launch.seen or not launch.seen or reading.step < min(launch.seen):
        return False
    behind = max(launch.seen) - reading.step
    regular = launch.interval is not None and behind <= _LATE_INTERVALS * launch.interval
    return regular and _same_moment(launch.latest[-1], reading)


def _alike(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and abs(one - other) <= 1e-3 * abs(one))


def _same_moment(earlier: Reading, reading: Reading) -> bool:
    if earlier.stamp is not None and reading.stamp is not None:
        between = elapsed_seconds(earlier.stamp, reading.stamp)
        return between is not None and abs(between) <= LATE_RANK_SECONDS
    return _alike(earlier.get("seconds"), reading.get("seconds"))


def _stale(previous: Reading, reading: Reading) -> bool:
    if previous.stamp is None or reading.stamp is None or not previous.stamp.dated:
        return False
    between = elapsed_seconds(previous.stamp, reading.stamp)
    return between is not None and between < -STALE_SECONDS


def _far(follows: int, launch: Launch) -> bool:
    steps = [reading.step for reading in launch.latest]
    widest = max((later - earlier for earlier, later in pairwise(steps)), default=1)
    return launch.rows >= 3 and follows > FAR_INTERVALS * max(widest, 1)


def resolve(
    held: Reading, reading: Reading, launch: Launch
) -> Literal["held_new", "held_same", "held_false", "again"]:
    """What the reading after a held one says of it.

    ``held_new``: it opened a session. ``held_same``: it belongs to the session going on. ``held_false``: it
    was no row of this run. ``again``: the same row once more, say nothing yet.
    """
    previous = launch.previous
    last = previous.step if previous else 0
    if reading.step == held.step:
        return "again"
    if held.step <= last:
        continues = 0 < reading.step - last <= 2 * (launch.interval or 1)
        return "held_new" if reading.step > held.step and not continues else "held_false"
    stale = previous is not None and _stale(previous, held)
    return "held_same" if reading.step > held.step and not stale else "held_false"


def resumed_from(reading: Reading, launch: Launch, hint: int | None, log_interval: int | None) -> int:
    """The step that a new session went on from: as the log says it, else one interval before its first row."""
    lowest = reading.grammar.first_step - 1
    if hint is not None and lowest <= hint < reading.step:
        return hint
    if reading.grammar.covers == "one":
        return max(reading.step - 1, lowest)
    interval = log_interval if log_interval and reading.step % log_interval == 0 else launch.interval or 1
    return max(reading.step - interval, lowest)
