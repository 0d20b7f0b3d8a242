"""The number of a step, for trainers whose line does not print it."""

import math
from collections.abc import Mapping

from flopwatch_agent.trainers.bars import Bar
from flopwatch_agent.trainers.derive import tokens_per_step
from flopwatch_agent.trainers.facts import Fact, integer
from flopwatch_agent.trainers.reading import Launch, Reading

_MOST_SLACK_STEPS = 5.0
_TWO_DECIMALS = 0.01
_SAME_PACE = 1.5
"""Two paces of epochs a step differ from this ratio on."""


def numbered(values: Mapping[str, float]) -> dict[str, float]:
    """The finite quantities with the step that follows from an epoch's number, or from the steps before.

    Times are in seconds; a loss may be nan or infinite.
    """
    found = {name: value for name, value in values.items() if name == "loss" or math.isfinite(value)}
    milliseconds = found.pop("elapsed_milliseconds", None)
    if milliseconds is not None:
        found["elapsed_seconds"] = milliseconds / 1_000
    if "step" in found:
        return found
    each, inside, epoch = (found.get(name) for name in ("steps_in_epoch", "step_in_epoch", "epoch_number"))
    if epoch is None and "epoch_index" in found:
        epoch = found["epoch_index"] + 1
    if "steps_before" in found:
        found["step"] = found["steps_before"] + 1
    elif each is not None and inside is not None:
        found["step"] = ((1 if epoch is None else epoch) - 1) * each + inside
    return found


def step_of(
    values: Mapping[str, float],
    bar: Bar | None,
    launch: Launch,
    facts: Mapping[str, Fact],
    *,
    relaunched: bool,
) -> int:
    """The printed step, else the bar's, else what the epoch says, else the number of the line."""
    printed = values.get("step")
    if printed is not None:
        return int(printed)
    total = integer(facts, "total_steps")
    if bar is not None and (total is None or bar.total == total):
        return bar.n
    counted = _by_tokens(values, facts)
    if counted is not None:
        return counted
    return _by_epoch(values, launch, facts, relaunched=relaunched)


def _by_tokens(values: Mapping[str, float], facts: Mapping[str, Fact]) -> int | None:
    total, each = values.get("total_tokens"), tokens_per_step(facts)
    if total is None or not each:
        return None
    steps = total / each
    return round(steps) if steps >= 1 and abs(steps - round(steps)) < 1e-6 * steps else None


def _by_epoch(
    values: Mapping[str, float], launch: Launch, facts: Mapping[str, Fact], *, relaunched: bool
) -> int:
    epoch, previous = values.get("epoch"), launch.previous
    each = _steps_in_epoch(launch, facts)
    if epoch is None or each is None or (previous is not None and _begun_later(launch, facts)):
        return previous.step + 1 if previous else 1
    estimate = epoch * each
    if (
        previous is not None
        and counts_lines(previous, facts)
        and not relaunched
        and estimate < previous.step + 0.5
    ):
        return previous.step + 1
    shown = min(_resolution(epoch), _resolution((previous and previous.get("epoch")) or 0.0))
    if previous is not None and not relaunched:
        following = previous.step + (launch.interval or 1)
        if launch.interval and abs(estimate - following) <= 0.6 * shown * each + 0.51:
            return following
        if estimate <= previous.step < following and launch.interval is None and "num_epochs" not in facts:
            return following
    return max(_likely(estimate, 0.5 * shown * each, two_decimals=shown == _TWO_DECIMALS), 1)


def _likely(estimate: float, slack: float, *, two_decimals: bool) -> int:
    """The roundest step that an epoch of two decimals may stand for: people log every 10 or 25 steps, not every 9."""
    if slack > _MOST_SLACK_STEPS or not two_decimals:
        return round(estimate)
    candidates = range(math.ceil(estimate - slack), math.floor(estimate + slack) + 1)
    return max(
        candidates, key=lambda step: (_roundness(step), -abs(step - estimate)), default=round(estimate)
    )


def _resolution(epoch: float) -> float:
    """The worth of the last decimal that an epoch was printed with: two are always meant."""
    for decimals in range(2, 6):
        if abs(epoch * 10**decimals - round(epoch * 10**decimals)) < 1e-6:
            return float(10**-decimals)
    return 1e-6


def _roundness(step: int) -> int:
    return next((unit for unit in (1000, 500, 250, 100, 50, 25, 10, 5) if step % unit == 0), 1)


def _steps_in_epoch(launch: Launch, facts: Mapping[str, Fact]) -> float | None:
    total, epochs = integer(facts, "total_steps"), integer(facts, "num_epochs")
    if total and epochs:
        return total / epochs
    previous = launch.previous
    epoch = previous.get("epoch") if previous else None
    return previous.step / epoch if previous and epoch else None


def _begun_later(launch: Launch, facts: Mapping[str, Fact]) -> bool:
    """Whether the epochs of lines that are only numbered show that lines are missing before the first."""
    rows = [row for row in launch.latest if row.get("epoch")]
    if len(rows) < 2 or not counts_lines(rows[-1], facts):
        return False
    earlier, later = rows[-2], rows[-1]
    steps, passed = later.step - earlier.step, later.values["epoch"] - earlier.values["epoch"]
    return passed * later.step < steps * later.values["epoch"] / _SAME_PACE


def counts_lines(reading: Reading, facts: Mapping[str, Fact]) -> bool:
    """Whether the step is only the number of the line: neither the line, a bar, a counter nor a header told it."""
    told = "step" in reading.values or reading.bar is not None or facts.get("total_steps")
    return not (told or _by_tokens(reading.values, facts))
