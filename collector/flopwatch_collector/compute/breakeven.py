"""The fleet against the line at which owning beats renting: the state machine of *sustained*.

A mean alone never sets the state: it is entered after so many valid days at or above the line, and left
after so many below it by a margin.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from flopwatch.answers.ledger import Day, Verdict, VerdictCode


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The utilisation at which owning pays; ``ratio`` None: at none."""

    ratio: float | None = 0.70
    source: Literal["default", "costs"] = "default"


@dataclass(frozen=True, kw_only=True, slots=True)
class SustainedRule:
    """When a utilisation counts as sustained; days are valid calendar days."""

    line_ratio: float = 0.70
    margin_ratio: float = 0.05
    days_up: int = 14
    days_down: int = 7
    gap_days: int = 1
    """Invalid days in a row that neither count nor reset."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sustained:
    """The state after a day."""

    above: bool = False
    up_run: int = 0
    down_run: int = 0
    invalid_run: int = 0
    days_in_state: int = 0
    """Days since the state was entered, that day included."""
    valid_days: int = 0


def after(state: Sustained, value: float | None, rule: SustainedRule) -> Sustained:
    """The state after one more day; ``value`` is None on an invalid day."""
    aged = replace(state, days_in_state=state.days_in_state + 1)
    if value is None:
        invalid = state.invalid_run + 1
        if invalid > rule.gap_days:
            return replace(aged, up_run=0, down_run=0, invalid_run=invalid)
        return replace(aged, invalid_run=invalid)
    up = state.up_run + 1 if value >= rule.line_ratio else 0
    down = state.down_run + 1 if value < rule.line_ratio - rule.margin_ratio else 0
    known = replace(aged, up_run=up, down_run=down, invalid_run=0, valid_days=state.valid_days + 1)
    if not state.above and up >= rule.days_up:
        return replace(known, above=True, days_in_state=1)
    if state.above and down >= rule.days_down:
        return replace(known, above=False, days_in_state=1)
    return known


def sustained(values: Sequence[float | None], rule: SustainedRule) -> Sustained:
    """The state after all days, oldest first."""
    state = Sustained()
    for value in values:
        state = after(state, value, rule)
    return state


def verdict(
    days: Sequence[Day],
    *,
    line: Line,
    price: tuple[float | None, float | None] = (None, None),
    rule: SustainedRule | None = None,
) -> Verdict:
    """The verdict over complete days, oldest first; a day still running is left out.

    ``price``: of a GPU-hour of capacity, and what a busy one costs more.
    """
    line_ratio = 1.0 if line.ratio is None else line.ratio
    used = replace(rule or SustainedRule(), line_ratio=math.inf if line.ratio is None else line_ratio)
    complete = [day for day in days if day.complete]
    values = _values(complete)
    known = [value for value in values if value is not None]
    state = sustained(values, used)
    mean = _mean(complete[-30:])
    enough = len(known) >= used.days_up
    strict = [replace(day, billable_ratio=day.billable_without_barely_used_ratio) for day in complete]
    strict_mean = _mean(strict[-30:])
    return Verdict(
        code=_code(state, mean, used) if enough else "insufficient_data",
        code_without_barely_used=_code_of(strict, used) if strict_mean is not None else None,
        mean_30d_without_barely_used_ratio=strict_mean,
        line_ratio=line_ratio,
        line_source=line.source,
        never=line.ratio is None,
        mean_30d_ratio=mean,
        valid_days=len(known),
        days_above=sum(1 for value in known if value >= used.line_ratio),
        days_total=len(complete),
        sustained=enough and (state.above or state.down_run >= used.days_down),
        days_in_state=_days_in_state(state, used) if enough else used.days_up,
        cost_at_mean=_used_hour(price, mean),
        cost_at_line=None if line.ratio is None else _used_hour(price, line.ratio),
    )


def _values(complete: Sequence[Day]) -> list[float | None]:
    return [day.billable_ratio if day.valid else None for day in complete]


def _code_of(complete: Sequence[Day], rule: SustainedRule) -> VerdictCode:
    values = _values(complete)
    if sum(value is not None for value in values) < rule.days_up:
        return "insufficient_data"
    return _code(sustained(values, rule), _mean(complete[-30:]), rule)


def _used_hour(price: tuple[float | None, float | None], utilisation: float | None) -> float | None:
    """What a billable GPU-hour costs at a utilisation."""
    fixed, variable = price
    if fixed is None or not utilisation:
        return None
    return fixed / utilisation + (variable or 0.0)


def _mean(days: Sequence[Day]) -> float | None:
    """Mean of the valid days, weighted by capacity so that it equals the month's own ratio."""
    valid = [day for day in days if day.valid and day.billable_ratio is not None]
    capacity = sum(day.capacity_gpu_milliseconds for day in valid)
    if not capacity:
        return None
    return sum((day.billable_ratio or 0.0) * day.capacity_gpu_milliseconds for day in valid) / capacity


def _days_in_state(state: Sustained, rule: SustainedRule) -> int:
    """Days above, or the run of days below, or how long the run at or above the line lasts so far."""
    if state.above:
        return state.days_in_state
    return state.down_run if state.down_run >= rule.days_down else state.up_run


def _code(state: Sustained, mean: float | None, rule: SustainedRule) -> VerdictCode:
    if mean is None:
        return "insufficient_data"
    if state.above:
        return "above_sustained"
    if mean >= rule.line_ratio:
        return "above_not_sustained"
    return "below_sustained" if state.down_run >= rule.days_down else "below"
