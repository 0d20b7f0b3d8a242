"""A row from a reading and its estimate."""

from flopwatch_agent.trainers.clocks import elapsed_seconds
from flopwatch_agent.trainers.estimate import Context, Estimate, bar_steps, usual_interval
from flopwatch_agent.trainers.facts import integer
from flopwatch_agent.trainers.numbers import finite, loss_value
from flopwatch_agent.trainers.rows import Row

_EXTRAS = ("micro_iteration_time_s", "mfu_update_phase", "update_phase_s", "generation_seconds")

_OWN_DISTANCE = ("derived_counter", "derived_bar_elapsed", "derived_timestamps", "none")
"""Times that are differences to the row before, however far it is."""


def steps_covered(context: Context, timed: Estimate) -> int | None:
    """Over how many steps the time was taken; ``None`` when neither the log nor the row before tells."""
    grammar, step = context.reading.grammar, context.reading.step
    stated = context.reading.get("covered")
    if stated is not None:
        return int(stated)
    if grammar.covers == "one":
        return 1
    if grammar.window is not None:
        if timed.seconds is None:
            return 1
        return min(_window(context), step - context.base_step if context.base_step is not None else step)
    if context.advanced is not None:
        if timed.seconds is None and not _counts(context):
            return None
        mean_of = None if timed.basis in _OWN_DISTANCE else usual_interval(context)
        return min(max(context.advanced, 1), mean_of or context.advanced)
    interval = integer(context.facts, "log_interval")
    if interval and step % interval == 0:
        return interval
    return 1 if timed.seconds is not None else None


def _counts(context: Context) -> bool:
    return context.reading.grammar.family != "Levanter" or context.previous is not None


def first_line_correction(context: Context) -> float | None:
    """Mean of the steps after the first, where a line's mean still contains the first.

    Newer Megatron-LM logs the first iteration on its own and does not reset the accumulator: the next line is
    the mean of all n iterations, so (n x mean - first) / (n - 1). Done only when the time stamps say that the
    corrected mean is the right one.
    """
    previous, reading = context.previous, context.reading
    if previous is None or context.launch.rows != 1 or context.base_step is None or not context.advanced:
        return None
    first, mean = previous.get("seconds"), reading.get("seconds")
    alone = (
        previous.step == context.base_step + 1 and context.advanced > 1 and "covered" not in reading.values
    )
    if not alone or first is None or mean is None or reading.grammar.covers == "one":
        return None
    interval = integer(context.facts, "log_interval")
    if previous.stamp is None or reading.stamp is None or (interval or 0) not in (0, context.advanced + 1):
        return None
    between = elapsed_seconds(previous.stamp, reading.stamp)
    corrected = ((context.advanced + 1) * mean - first) / context.advanced
    if between is None or corrected <= 0:
        return None
    observed = between / context.advanced
    return corrected if abs(corrected - observed) < abs(mean - observed) else None


def build_row(
    context: Context, timed: Estimate, *, correction: float | None, covered: int | None, why: str | None
) -> Row:
    """The row, without its time of day."""
    reading = context.reading
    seconds = timed.seconds if correction is None else correction
    return Row(
        step=reading.step,
        seconds=None if seconds is None else seconds * (covered or 1),
        steps_covered=covered,
        steps_advanced=context.advanced,
        basis="corrected" if correction is not None else timed.basis,
        resolution_seconds=_resolution(context, timed),
        tokens=None if seconds is None and reading.grammar.untimed_is_warm_up else context.tokens,
        loss=loss_value(reading.get("loss")),
        session=context.launch.index,
        steady=why is None,
        why_not_steady=why,
        tflops_per_gpu=finite(reading.get("tflops")),
        mfu=_mfu(context),
        hfu=reading.get("hfu"),
        tokens_per_second_per_gpu=finite(reading.get("tokens_per_second_per_gpu")),
        printed_step_seconds=timed.seconds if correction is not None else None,
        skipped_steps=_skipped(context),
        data_wait_seconds=reading.get("data_seconds"),
        rank=reading.rank,
        family=reading.family,
        extras=_extras(context),
    )


def _extras(context: Context) -> dict[str, float]:
    reading = context.reading
    found = {name: reading.values[name] for name in _EXTRAS if name in reading.values}
    if "micro_count" in reading.values:
        found["micro_steps"] = reading.values["micro_count"]
    trained = context.grown_per_step("trained_tokens_total", over_sessions=True)
    if trained is not None:
        found["trainable_tokens"] = trained
    return found


def _mfu(context: Context) -> float | None:
    """As printed; negative and, beside a rate of 0, zero mean that the trainer does not know it yet."""
    mfu = finite(context.reading.get("mfu"))
    if mfu is None or mfu < 0 or (mfu == 0 and not context.reading.get("tokens_per_second")):
        return None
    return mfu


def _window(context: Context) -> int:
    """Steps a running rate goes over: what filled it before the first rate, where every step has a row."""
    launch, grammar, base = context.launch, context.reading.grammar, context.base_step
    begins = grammar.untimed_is_warm_up and not launch.timed_rows and context.advanced == 1
    if begins and base is not None and context.reading.step - 1 > base:
        launch.window = context.reading.step - 1 - base
    return launch.window or grammar.window or 1


def _skipped(context: Context) -> int:
    now = context.reading.get("skipped_total")
    if now is None:
        return int(context.reading.get("skipped") or 0)
    before = context.previous.get("skipped_total") if context.previous else 0.0
    return max(int(now - (before or 0.0)), 0)


def _resolution(context: Context, timed: Estimate) -> float | None:
    if timed.basis in ("derived_bar_elapsed", "derived_timestamps"):
        return 1.0 / (bar_steps(context) or context.advanced or 1)
    return None
