"""A user's own format: an expression with named groups, and the units of its numbers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from flopwatch_agent.trainers.grammar import Grammar

QUANTITIES = (
    "step", "total_steps", "seconds", "interval_seconds", "elapsed_seconds", "tokens", "total_tokens",
    "tokens_per_second", "tokens_per_second_per_gpu", "samples_per_second", "steps_per_second", "batch", "loss",
    "mfu", "tflops", "data_seconds",
)  # fmt: skip
UNITS = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3_600.0, "%": 1e-2, "K": 1e3, "M": 1e6, "G": 1e9, "1": 1.0,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class UserFormat:
    """How an in-house trainer prints a step."""

    grammar: Grammar
    literal: str
    """A text that every step line has; empty when there is none, and every line must be tried."""


def user_format(
    expression: str,
    units: Mapping[str, str] | None = None,
    *,
    literal: str = "",
    name: str = "user format",
) -> UserFormat:
    """The format of a named-group expression.

    Args:
        expression: a Python regular expression; its groups are named after ``QUANTITIES``, ``step`` is needed.
        units: unit of a group, of ``UNITS``, where it is not the base unit.
        literal: a text that stands in every step line: it makes reading cheap.
        name: what the trainer is called in tables.

    Raises:
        ValueError: the expression is wrong, or a group or unit is not known.
    """
    try:
        pattern = re.compile(expression)
    except re.error as error:
        raise ValueError(f"log format {expression!r} is no regular expression: {error}") from error
    for group in pattern.groupindex:
        if group not in QUANTITIES:
            raise ValueError(f"log format has a group {group!r}; allowed: {', '.join(QUANTITIES)}")
    if "step" not in pattern.groupindex:
        raise ValueError("log format has no group 'step'; it needs one")
    scales = {}
    for group, unit in (units or {}).items():
        if unit not in UNITS or group not in pattern.groupindex:
            raise ValueError(
                f"log format unit {group} = {unit!r}; allowed: a group of the format and {', '.join(UNITS)}"
            )
        scales[group] = UNITS[unit]
    return UserFormat(grammar=Grammar(family=name, anchor=pattern, units=scales), literal=literal)
