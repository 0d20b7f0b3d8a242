"""The time of a step, by the most trusted thing the log prints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flopwatch.wire import StepBasis
from flopwatch_agent.trainers.clocks import elapsed_seconds
from flopwatch_agent.trainers.derive import (
    global_batch_size,
    model_parallel_size,
    tokens_per_step,
    world_size,
)
from flopwatch_agent.trainers.facts import Fact, integer
from flopwatch_agent.trainers.reading import Launch, Reading

_SHORTEST_ARRIVAL_SECONDS = 0.5

_ROWS_WITHOUT_TIMER = 3
"""DeepSpeed's timer leaves out the first steps of a launch, no more rows than these."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What an estimator may look at."""

    reading: Reading
    launch: Launch
    base_step: int | None
    advanced: int | None
    """Steps since the row before, or since the start of the session."""
    tokens: float | None
    facts: Mapping[str, Fact]

    @property
    def previous(self) -> Reading | None:
        """The row before, in the same session."""
        return self.launch.previous

    def last_with(self, name: str) -> Reading | None:
        """The latest row of the session before this one whose line had the quantity."""
        rows = (row for row in reversed(self.launch.latest) if row.get(name) is not None)
        return next((row for row in rows if row.step < self.reading.step), None)

    def grown_per_step(self, name: str, *, over_sessions: bool = False) -> float | None:
        """How much a counter grew with each step since the row before.

        The first row of a session that has the counter is taken from 0, unless the counter runs on over
        sessions and this one did not begin at the first step.
        """
        value = self.reading.get(name)
        if value is None or not self.advanced:
            return None
        before = self.last_with(name)
        if before is not None:
            return (value - before.values[name]) / (self.reading.step - before.step)
        if over_sessions and name == "total_tokens" and self.launch.base_total is not None:
            return (value - self.launch.base_total) / self.advanced
        if self.base_step is None or (over_sessions and self.base_step >= self.reading.grammar.first_step):
            return None
        return value / (self.reading.step - self.base_step)


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Seconds of one step and where they are from."""

    seconds: float | None
    basis: StepBasis = "none"


def estimate(context: Context) -> Estimate:
    """The first of the grammar's estimators that gives a time."""
    for name in context.reading.grammar.order:
        estimator, basis = ESTIMATORS[name]
        seconds = estimator(context)
        if seconds is not None and 0.0 < seconds < float("inf"):
            return Estimate(seconds=seconds, basis=basis)
    seconds = _arrival(context)
    return Estimate(seconds=seconds, basis="none" if seconds is None else "arrival")


def tokens_of_step(context: Context) -> float | None:
    """Positions of one optimizer step over all ranks, by the line before the header."""
    reading = context.reading
    stated = reading.get("tokens")
    if stated is not None:
        return stated
    grown = context.grown_per_step("total_tokens", over_sessions=True)
    if grown is not None and grown > 0:
        return grown
    counted = _tokens_counted_after(context) or _tokens_counted_before(context)
    if counted is not None:
        return counted
    batch, length = reading.get("batch"), integer(context.facts, "seq_length")
    if batch and length:
        return batch * length
    known = tokens_per_step(context.facts)
    if known is not None:
        return float(known)
    rate, seconds = reading.get("tokens_per_second"), reading.get("seconds")
    return float(round(rate * seconds)) if rate and seconds and "total_tokens" in reading.values else None


def _tokens_counted_after(context: Context) -> float | None:
    """From a counter that already holds the batch of the step after the printed one."""
    total = context.reading.get("total_tokens_after")
    if total is None:
        return None
    before = context.last_with("total_tokens_after")
    if before is not None:
        return (total - before.values["total_tokens_after"]) / (context.reading.step - before.step)
    return total / context.advanced if context.advanced and context.base_step is not None else None


def _tokens_counted_before(context: Context) -> float | None:
    """From a counter that does not yet hold the batch of the printed step."""
    total = context.reading.get("total_tokens_before")
    if not total or not context.advanced:
        return None
    before = context.last_with("total_tokens_before")
    if before is not None:
        return (total - before.values["total_tokens_before"]) / (context.reading.step - before.step)
    begun = context.base_step is not None and context.base_step < context.reading.grammar.first_step
    return total / (context.advanced - 1) if begun and context.advanced > 1 else None


def _arrival(context: Context) -> float | None:
    """From the times the lines came, while the log is followed and its writer does not buffer."""
    now = context.reading.origin.arrived_at_seconds
    before = context.previous.origin.arrived_at_seconds if context.previous else None
    if now is None or before is None or context.launch.bursts or not context.advanced:
        return None
    between = now - before
    return between / context.advanced if between >= _SHORTEST_ARRIVAL_SECONDS else None


def _printed(context: Context) -> float | None:
    return context.reading.get("seconds")


def _unstamped(context: Context) -> float | None:
    """A printed time that may be of several counted batches: only where no time stamps tell better."""
    return None if context.reading.stamp is not None else _printed(context)


def _interval(context: Context) -> float | None:
    seconds = context.reading.get("interval_seconds")
    steps = context.reading.get("covered") or usual_interval(context) or context.advanced
    return seconds / steps if seconds is not None and steps else None


def usual_interval(context: Context) -> int | None:
    """Over how many steps the trainer takes its means; fewer than the distance where lines were lost."""
    stated = integer(context.facts, "log_interval")
    if stated is not None and context.reading.step % stated == 0:
        return stated
    usual = context.launch.interval
    if usual and context.launch.rows >= 3 and context.advanced and context.advanced % usual == 0:
        return usual
    return None


def _counter(context: Context) -> float | None:
    return context.grown_per_step("elapsed_seconds")


def _between(context: Context) -> float | None:
    """From a clock that also ran before the first step: only differences mean something."""
    before = context.previous.get("fit_seconds") if context.previous else None
    now = context.reading.get("fit_seconds")
    return (
        (now - before) / context.advanced
        if now is not None and before is not None and context.advanced
        else None
    )


def _mean_counter(context: Context) -> float | None:
    mean = _mean_seconds(context.reading)
    if mean is None or not context.advanced or context.base_step is None:
        return None
    sum_now = mean * (context.reading.step - context.base_step)
    if context.previous is None:
        return sum_now / context.advanced
    before = _mean_seconds(context.previous)
    if before is None:
        return None
    return (sum_now - before * (context.previous.step - context.base_step)) / context.advanced


def _mean_seconds(reading: Reading) -> float | None:
    rate = reading.get("mean_rate")
    return 1.0 / rate if rate else reading.get("mean_seconds")


def _tokens(context: Context) -> float | None:
    if context.tokens is None:
        return None
    rate = context.reading.get("tokens_per_second")
    if rate:
        return context.tokens / rate
    rate, world = context.reading.get("tokens_per_second_per_gpu"), world_size(context.facts)
    return context.tokens / world / rate if rate and world else None


def _trained_tokens(context: Context) -> float | None:
    rate, world = context.reading.get("trained_tokens_per_second_per_gpu"), world_size(context.facts)
    grown = context.grown_per_step("trained_tokens_total", over_sessions=True)
    return grown / (rate * world) if rate and world and grown is not None else None


def _samples(context: Context) -> float | None:
    rate, batch = context.reading.get("samples_per_second"), global_batch_size(context.facts)
    return batch / rate if rate and batch else None


def _rate(context: Context) -> float | None:
    rate = context.reading.get("steps_per_second")
    return 1.0 / rate if rate else None


def seconds_between(context: Context) -> float | None:
    """Seconds of one step by the time stamps of this line and the one before."""
    return _timestamps(context)


def _timestamps(context: Context) -> float | None:
    before = context.previous
    if before is None or before.stamp is None or context.reading.stamp is None or not context.advanced:
        return None
    between = elapsed_seconds(before.stamp, context.reading.stamp)
    return between / context.advanced if between is not None else None


def _timestamps_only(context: Context) -> float | None:
    """By the time stamps, where rows without a timer's figure have shown that none will come."""
    launch, rate = context.launch, context.reading.get("samples_per_second")
    if rate is not None or launch.rated or launch.rows < _ROWS_WITHOUT_TIMER:
        return None
    return _timestamps(context)


def _bar(context: Context) -> float | None:
    """Since the clock last moved, not since the row before: else only the rows that a second ends at had a time."""
    bar, steps = context.reading.bar, bar_steps(context)
    before = context.launch.timed_bar or context.launch.first_bar
    if bar is None or before is None or steps is None:
        return None
    return (bar.elapsed_seconds - before.elapsed_seconds) / steps


def bar_steps(context: Context) -> int | None:
    """Steps since the bar's clock last moved; None without bars of one length."""
    bar, before = context.reading.bar, context.launch.timed_bar or context.launch.first_bar
    if bar is None or before is None or bar.total != before.total:
        return None
    begin = before.n if context.launch.timed_bar else max(before.n, context.base_step or 0)
    return bar.n - begin if bar.n > begin else None


def _bar_counter(context: Context) -> float | None:
    before = context.previous.get("bar_seconds") if context.previous else None
    now = context.reading.get("bar_seconds")
    return (
        (now - before) / context.advanced
        if now is not None and before is not None and context.advanced
        else None
    )


def _micro_sum(context: Context) -> float | None:
    return context.reading.get("micro_seconds")


ESTIMATORS: dict[str, tuple[Callable[[Context], float | None], StepBasis]] = {
    "printed": (_printed, "printed"),
    "unstamped": (_unstamped, "printed"),
    "interval": (_interval, "printed"),
    "between": (_between, "derived_counter"),
    "mean_counter": (_mean_counter, "derived_counter"),
    "counter": (_counter, "derived_counter"),
    "tokens": (_tokens, "derived_tokens"),
    "trained_tokens": (_trained_tokens, "derived_tokens"),
    "samples": (_samples, "derived_samples"),
    "rate": (_rate, "derived_rate"),
    "timestamps": (_timestamps, "derived_timestamps"),
    "timestamps_only": (_timestamps_only, "derived_timestamps"),
    "bar": (_bar, "derived_bar_elapsed"),
    "micro_sum": (_micro_sum, "sum_of_micro_steps"),
    "bar_counter": (_bar_counter, "derived_bar_elapsed"),
}


def infer_facts(context: Context) -> dict[str, int]:
    """Facts that only follow from a row: each when exactly one whole number fits, and no line states it."""
    facts, found = context.facts, {}
    micro_steps = context.reading.get("micro_steps")
    step = context.reading.step
    if micro_steps and step > 0 and micro_steps % step == 0 and "gradient_accumulation_steps" not in facts:
        found["gradient_accumulation_steps"] = int(micro_steps // step)
    if "seq_length" not in facts:
        found.update(_named("seq_length", _sequence_length(context)))
    elif tokens_per_step(facts) is None:
        found.update(_named("global_batch_size", _global_batch(context)))
    if world_size(facts) is None:
        found.update(_named("world_size", _world_size(context)))
    return found


def _named(name: str, value: int | None) -> dict[str, int]:
    return {} if value is None else {name: value}


def _sequence_length(context: Context) -> int | None:
    """From tokens and samples per second."""
    world = world_size(context.facts)
    rate, samples = (
        context.reading.get("tokens_per_second_per_gpu"),
        context.reading.get("samples_per_second"),
    )
    if not world or not rate or not samples:
        return None
    length = rate * world / samples
    whole = round(length)
    return whole if whole >= 64 and abs(length - whole) <= 0.002 * whole else None


def _global_batch(context: Context) -> int | None:
    """From a device's rate and the time between two lines, where the sequence length is known."""
    length, rate = integer(context.facts, "seq_length"), context.reading.get("tokens_per_second_per_gpu")
    world, seconds = world_size(context.facts), _seconds_since(context)
    if not length or not rate or not seconds or not world:
        return None
    sequences = rate * seconds * model_parallel_size(context.facts) / length
    whole = round(sequences)
    fits = whole >= 1 and abs(sequences - whole) <= 0.05
    return whole * max(world // model_parallel_size(context.facts), 1) if fits else None


def _seconds_since(context: Context) -> float | None:
    if context.previous is not None:
        return _timestamps(context)
    begin, stamp = context.launch.begin_stamp, context.reading.stamp
    if begin is None or stamp is None or not context.advanced:
        return None
    between = elapsed_seconds(begin, stamp)
    return between / context.advanced if between is not None else None


def _world_size(context: Context) -> int | None:
    """From a step's tokens and its rates."""
    reading = context.reading
    per_gpu = reading.get("tokens_per_second_per_gpu")
    if not per_gpu or reading.grammar.rate_of_replicas:
        return None
    seconds = reading.get("seconds") or _rate(context) or _timestamps(context)
    return _whole_number(context.tokens / (per_gpu * seconds)) if seconds and context.tokens else None


def _whole_number(value: float) -> int | None:
    """The power of two within 10 %, else the only count within 2 %: of GPUs below 12, of nodes of 8 below 100."""
    power = 1 << max(int(value).bit_length() - 1, 0)
    nearest = min((power, power * 2), key=lambda size: abs(size - value))
    if abs(value - nearest) <= 0.1 * nearest:
        return nearest
    unit = 1 if value <= 12 else 8
    whole = unit * round(value / unit)
    return whole if 1 <= value <= 100 and abs(value - whole) <= 0.02 * value else None
