"""Whether a row belongs into steady-state averages, and why not."""

from statistics import median

from flopwatch_agent.trainers.reading import Launch, Reading

PAUSE_RATIO = 1.25
"""A row after an evaluation or checkpoint is unsteady from this multiple of the usual step on."""
OUTLIER_RATIO = 3.0
"""From this multiple on a row is unsteady whatever the log says: a stall, an unprinted pause."""
REPEATED_FIRST_STEP = "the printed mean contains the first step again; the time is that of the steps after it"
UNSTARTED_TIMER = "the trainer's own timer has not started"
DATA_WAIT_SHARE = 0.5
IMPOSSIBLE_TFLOPS = 20_000.0
"""No accelerator does more, in any number format."""

_WORDS = {"eval": "an evaluation", "checkpoint": "a checkpoint", "generation": "a rollout"}


def why_not_steady(
    reading: Reading, launch: Launch, *, seconds: float | None, base_step: int | None, covered: int | None
) -> str | None:
    """The reason to keep the row out of steady averages, ``None`` when it is steady."""
    return (
        _warm_up(reading, launch, seconds=seconds, base_step=base_step, covered=covered)
        or _pause(reading, launch, seconds)
        or _odd(reading, launch, seconds)
    )


def _warm_up(
    reading: Reading, launch: Launch, *, seconds: float | None, base_step: int | None, covered: int | None
) -> str | None:
    grammar = reading.grammar
    if grammar.untimed_is_warm_up and seconds is None and not launch.timed_rows:
        return UNSTARTED_TIMER
    if not grammar.warms_up or base_step is None:
        return None
    if launch.rows == 0:
        return "first step of the launch" if (covered or 1) == 1 else "first interval of the launch"
    if grammar.window is not None:
        return "window not yet full" if covered is not None and covered < grammar.window else None
    first = reading.step - (covered or 1) + 1
    return "warm-up (compilation, dispatch)" if first <= base_step + grammar.warm_up_steps else None


def _pause(reading: Reading, launch: Launch, seconds: float | None) -> str | None:
    grammar = reading.grammar
    if reading.get("pause_seconds") or reading.get("save_seconds"):
        return "the printed time contains " + (
            "a validation" if reading.get("pause_seconds") else "a checkpoint"
        )
    pauses = " and ".join(_WORDS[kind] for kind in sorted(launch.pauses, reverse=True) if kind in _WORDS)
    if not pauses or grammar.pauses_outside or seconds is None:
        return None
    usual = usual_seconds(launch)
    if grammar.pauses_inside or (usual is not None and seconds > PAUSE_RATIO * usual):
        return f"interval contains {pauses}"
    return None


def _odd(reading: Reading, launch: Launch, seconds: float | None) -> str | None:
    tflops, waited = reading.get("tflops"), reading.get("data_seconds")
    if tflops is not None and tflops > IMPOSSIBLE_TFLOPS:
        return f"{tflops:g} TFLOP/s is more than any accelerator does"
    if seconds is None:
        return None
    if waited is not None and waited > DATA_WAIT_SHARE * seconds:
        return f"{waited:g} s of it waited for data"
    usual = usual_seconds(launch)
    if usual is not None and seconds > OUTLIER_RATIO * usual:
        return f"{seconds / usual:.1f} times the usual step: a pause or a stall inside"
    return None


def usual_seconds(launch: Launch) -> float | None:
    """Median of the latest steady steps, once there are three."""
    return median(launch.steady_seconds) if len(launch.steady_seconds) >= 3 else None
