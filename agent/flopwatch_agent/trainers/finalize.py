"""What only the end of a file shows: superseded steps, times that a later line explains, steps that stand out."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from flopwatch_agent.trainers.derive import world_size
from flopwatch_agent.trainers.facts import Fact
from flopwatch_agent.trainers.rows import Parsed, Row, SessionInfo
from flopwatch_agent.trainers.steady import OUTLIER_RATIO, REPEATED_FIRST_STEP, UNSTARTED_TIMER

_ENOUGH_ROWS = 5


def finalized(parsed: Parsed) -> Parsed:
    """The same, seen from the end of the file."""
    facts = dict(enumerate(parsed.facts))
    rows = [_timed(row, facts.get(row.session, {}), parsed.steps) for row in parsed.steps]
    rows = [_superseded(row, parsed.sessions) for row in rows]
    timed = {row.session for row in rows if row.seconds is not None}
    rows = [row if row.session in timed else _without_timer(row) for row in rows]
    factors = {row.session: factor for row in rows for factor in (_factor(row),) if factor is not None}
    rows = [_rescaled(row, factors.get(row.session)) for row in rows]
    usual = {session: _usual(rows, session) for session in {row.session for row in rows}}
    return replace(parsed, steps=tuple(_standing_out(row, usual[row.session]) for row in rows))


def _timed(row: Row, facts: Mapping[str, object], rows: tuple[Row, ...]) -> Row:
    """With the time that follows from its tokens, once the world size is known."""
    plain: dict[str, Fact] = {
        name: value for name, value in facts.items() if isinstance(value, int | float | str)
    }
    world = world_size(plain)
    rate, tokens = row.tokens_per_second_per_gpu, row.tokens
    if row.basis != "none" or not (world and rate and tokens):
        return row
    if not any(other.basis == "derived_tokens" and other.session == row.session for other in rows):
        return row
    covered = row.steps_covered or row.steps_advanced or 1
    seconds = tokens / world / rate * covered
    return replace(row, seconds=seconds, steps_covered=covered, basis="derived_tokens")


def _without_timer(row: Row) -> Row:
    """No row of the session has a time: then the trainer has no timer that had yet to start."""
    return replace(row, steady=True, why_not_steady=None) if row.why_not_steady == UNSTARTED_TIMER else row


def _factor(row: Row) -> float | None:
    """By how much the trainer's own time was corrected; the correction of a first interval is none of this."""
    if row.basis != "corrected" or not row.printed_step_seconds or row.why_not_steady == REPEATED_FIRST_STEP:
        return None
    return (row.step_seconds or 0.0) / row.printed_step_seconds


def _rescaled(row: Row, factor: float | None) -> Row:
    """The same correction for the rows before it could be known."""
    if factor is None or row.seconds is None or row.basis == "corrected":
        return row
    printed = row.step_seconds
    return replace(row, seconds=row.seconds * factor, basis="corrected", printed_step_seconds=printed)


def _superseded(row: Row, sessions: tuple[SessionInfo, ...]) -> Row:
    again = any(
        later.session > row.session
        and later.resumed_from_step is not None
        and row.step > later.resumed_from_step
        for later in sessions
    )
    return replace(row, superseded=True) if again else row


def _usual(rows: list[Row], session: int) -> float | None:
    times = [row.step_seconds for row in rows if row.session == session and row.steady and row.step_seconds]
    return median(times) if len(times) >= _ENOUGH_ROWS else None


def _standing_out(row: Row, usual: float | None) -> Row:
    seconds = row.step_seconds
    if not row.steady or usual is None or seconds is None:
        return row
    if seconds > OUTLIER_RATIO * usual:
        return replace(
            row,
            steady=False,
            why_not_steady=f"{seconds / usual:.1f} times the usual step: a pause or a stall inside",
        )
    if seconds * OUTLIER_RATIO < usual:
        return replace(row, steady=False, why_not_steady="impossibly short beside the other steps")
    return row
