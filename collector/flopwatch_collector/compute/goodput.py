"""Goodput of runs: how much of their time was kept, what interruptions cost, and what faster recovery would bring."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from flopwatch.answers.goodput import Checkpointing, Gain, GainName, Goodput, Interruption
from flopwatch.recovery import LossTerms, loss_ratio, optimum_interval_seconds
from flopwatch_collector.compute.buckets import CODE, REASON_CODE
from flopwatch_collector.compute.inputs import Liable
from flopwatch_collector.compute.interruptions import interruptions_of
from flopwatch_collector.compute.timeline import CHECKPOINT, JobTimeline
from flopwatch_collector.model import Columns

OPAQUE_OF_RUNS = ("steps_lost", "report_pending", "generation")
"""Reasons of BUSY_OPAQUE that belong to a run; without one of these it is a lease without reports."""
KEPT = ("STEP", "STRAGGLER", "THROTTLE", "EXPOSED_COMM")
OF_RUNS = (
    "STARTUP", "RECOVERY", "CKPT", "EVAL", "DATA_WAIT", "HANG", "GAP", "LOST", *KEPT,
)  # fmt: skip


def goodput_of(
    timeline: JobTimeline, rows: Columns, span: tuple[float, float], liable: Liable | None = None
) -> Goodput:
    """The goodput of one job from its timeline and its ledger rows, seen over ``span`` (seconds)."""
    every = interruptions_of(timeline, span[1], liable or {})
    found = tuple(each for each in every if each.start_seconds >= span[0])
    kept, unknown = _time(rows, KEPT), _opaque(rows)
    run = _time(rows, OF_RUNS) + unknown
    first = timeline.instrumented_since_seconds
    wall = 0.0 if first is None else max(0.0, span[1] - max(first, span[0]))
    return _made(
        run_time=(run, kept, unknown),
        wall=wall,
        found=found,
        lost=_time(rows, ("LOST",)),
        saves=_checkpointing(timeline, wall),
    )


def together(parts: Iterable[Goodput]) -> Goodput | None:
    """Several runs as one; None without any."""
    known = list(parts)
    if not known:
        return None
    saves = sum(each.checkpointing.saves for each in known)
    checkpointing = Checkpointing(
        saves=saves,
        save_seconds=_weighted(known, "save_seconds"),
        interval_seconds=_weighted(known, "interval_seconds"),
        overhead_ratio=_ratio(
            sum((each.checkpointing.overhead_ratio or 0.0) * each.wall_seconds for each in known),
            sum(each.wall_seconds for each in known),
        ),
        optimum_interval_seconds=None,
    )
    made = _made(
        run_time=(
            sum(each.run_gpu_milliseconds for each in known),
            sum(each.kept_gpu_milliseconds for each in known),
            sum(each.unknown_gpu_milliseconds for each in known),
        ),
        wall=sum(each.wall_seconds for each in known),
        found=tuple(each for part in known for each in part.interruptions),
        lost=sum(each.lost_gpu_milliseconds for each in known),
        saves=checkpointing,
    )
    return replace(made, jobs=len(known))


def _weighted(parts: Sequence[Goodput], name: str) -> float | None:
    """Mean over all saves of several runs."""
    known = [
        (value, each.checkpointing.saves)
        for each in parts
        if (value := getattr(each.checkpointing, name)) is not None
    ]
    return _ratio(sum(value * count for value, count in known), float(sum(count for _, count in known)))


def _made(
    *,
    run_time: tuple[int, int, int],
    wall: float,
    found: tuple[Interruption, ...],
    lost: int,
    saves: Checkpointing,
) -> Goodput:
    run, kept, unknown = run_time
    outage = sum(each.outage_seconds or 0.0 for each in found)
    mttf = _ratio(wall - outage, float(len(found)))
    best = saves.save_seconds
    optimum = optimum_interval_seconds(best, mttf) if best and mttf else None
    made = Goodput(
        jobs=1,
        run_gpu_milliseconds=run,
        kept_gpu_milliseconds=kept,
        unknown_gpu_milliseconds=unknown,
        ettr_ratio=_ratio(kept, run),
        ettr_upper_ratio=_ratio(kept + unknown, run),
        wall_seconds=wall,
        interruptions=found,
        mtbf_seconds=_ratio(wall, float(len(found))),
        mttf_seconds=mttf,
        mttr_seconds=_mean(each.outage_seconds for each in found),
        detect_seconds=_mean(each.detect_seconds for each in found),
        isolate_seconds=_mean(each.isolate_seconds for each in found),
        resume_seconds=_mean(each.resume_seconds for each in found),
        lost_gpu_milliseconds=lost,
        lost_per_interruption_gpu_milliseconds=round(lost / len(found)) if found else None,
        checkpointing=replace(saves, optimum_interval_seconds=optimum),
        modelled_loss_ratio=None,
        gains=(),
    )
    terms = terms_of(made)
    if terms is None:
        return made
    return replace(made, modelled_loss_ratio=loss_ratio(terms), gains=gains_of(made, terms))


def terms_of(goodput: Goodput) -> LossTerms | None:
    """The loss model's terms as they were measured; None where one is missing."""
    saves = goodput.checkpointing
    values = (goodput.mttf_seconds, goodput.detect_seconds, goodput.mttr_seconds, saves.save_seconds)
    mttf, detect, repair, save = values
    if mttf is None or detect is None or repair is None or save is None or saves.interval_seconds is None:
        return None
    return LossTerms(
        mttf_seconds=max(mttf, 1.0),
        detect_seconds=detect,
        restart_seconds=max(0.0, repair - detect),
        interval_seconds=max(saves.interval_seconds, 1.0),
        save_seconds=save,
    )


def gains_of(goodput: Goodput, terms: LossTerms) -> tuple[Gain, ...]:
    """What detecting or restarting in half the time, or the best checkpoint interval, would bring."""
    now = loss_ratio(terms)
    changed: tuple[tuple[GainName, LossTerms], ...] = (
        ("detect_halved", replace(terms, detect_seconds=terms.detect_seconds / 2.0)),
        ("restart_halved", replace(terms, restart_seconds=terms.restart_seconds / 2.0)),
        ("checkpoint_optimum", _with_optimum(terms)),
    )
    run = goodput.run_gpu_milliseconds
    return tuple(
        Gain(name=name, ratio=gain, gpu_milliseconds=round(gain * run))
        for name, other in changed
        for gain in (max(0.0, now - loss_ratio(other)),)
    )


def _with_optimum(terms: LossTerms) -> LossTerms:
    best = optimum_interval_seconds(terms.save_seconds, terms.mttf_seconds)
    return replace(terms, interval_seconds=best) if best > 0.0 else terms


def _checkpointing(timeline: JobTimeline, wall: float) -> Checkpointing:
    phases = timeline.phases
    chosen = (phases["kind"] == CHECKPOINT) & ~(phases["blocking"] == 0) & np.isfinite(phases["end"])
    begin, end = phases["ts"][chosen], phases["end"][chosen]
    same = np.diff(phases["session"][chosen]) == 0 if begin.size else np.zeros(0, dtype=np.bool_)
    apart = (begin[1:] - end[:-1])[same]
    length = end - begin
    return Checkpointing(
        saves=int(begin.size),
        save_seconds=float(length.mean()) if begin.size else None,
        interval_seconds=float(apart.mean()) if apart.size else None,
        overhead_ratio=_ratio(float(length.sum()), wall) if begin.size else None,
        optimum_interval_seconds=None,
    )


def _time(rows: Columns, buckets: Sequence[str]) -> int:
    chosen = np.isin(rows["bucket"], np.array([CODE[name] for name in buckets], dtype=np.int64))
    return int(rows["gpu_milliseconds"][chosen].sum())


def _opaque(rows: Columns) -> int:
    reasons = np.array([REASON_CODE[name] for name in OPAQUE_OF_RUNS], dtype=np.int64)
    chosen = (rows["bucket"] == CODE["BUSY_OPAQUE"]) & np.isin(rows["reason"], reasons)
    return int(rows["gpu_milliseconds"][chosen].sum())


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
