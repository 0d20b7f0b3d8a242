"""MFU of a job from its steps: the figure with everything needed to check it, series, and useful time.

MFU = FLOPs per token x tokens per second / (GPUs x dense peak FLOP/s of one GPU).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch.query import MfuFigure, Term
from flopwatch_collector.compute.devices import Devices
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.runs import Run, Work, work_of
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns

FIGURE_STEPS = 50
"""Newest steady step reports a figure is made from."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobBasis:
    """What a job's MFU is made from, apart from its steps."""

    run: Run
    devices: Devices
    work: Work
    shared: bool = False
    """Whether the job shares its GPUs: then it has no MFU against their full peak."""

    @property
    def reason(self) -> str | None:
        """Why there can be no MFU; None when only steps are needed."""
        if self.work.reason is not None:
            return self.work.reason
        if self.devices.reason is not None:
            return self.devices.reason
        return "unknown_gpu" if self.devices.total_flops is None else None

    @property
    def full_peak(self) -> float | None:
        """FLOP/s of all GPUs, when the job has them to itself."""
        return None if self.shared else self.devices.total_flops


def basis_of(run: Run, devices: Devices, *, shared: bool = False) -> JobBasis:
    """The basis of a job's MFU from its joined facts and its GPUs."""
    return JobBasis(run=run, devices=devices, work=work_of(run), shared=shared)


def tokens_of(steps: Columns, run: Run) -> Floats:
    """Tokens of every step record, padding left out: as recorded, else tokens a step x steps covered; NaN unknown."""
    each = run.step_tokens
    told = np.full(steps["ts"].size, np.nan) if each is None else each * steps["steps_covered"]
    return np.where(np.isnan(steps["tokens"]), told, steps["tokens"])


def flops_of(steps: Columns, basis: JobBasis) -> tuple[Floats, Floats]:
    """Model FLOPs of every step record, causal and PaLM; NaN where unknown."""
    tokens = tokens_of(steps, basis.run)
    causal, palm = basis.work.causal, basis.work.palm
    nothing = np.full(tokens.size, np.nan)
    result = nothing if causal is None else tokens * causal
    squared = steps["sum_squared_document_tokens"]
    packed = np.isfinite(squared) & (tokens > 0)
    if basis.work.basis == "steps+shape" and packed.any():
        length = float(squared[packed].sum() / tokens[packed].sum())
        causal = work_of(basis.run, max(1.0, length)).causal
        result = np.where(packed, tokens * (causal or np.nan), result)
    return result, nothing if palm is None else tokens * palm


def useful_seconds(steps: Columns, basis: JobBasis) -> Floats:
    """Seconds of every step record that full use of the peak would have needed; NaN where unknown."""
    peak = basis.full_peak
    if peak is None or basis.reason is not None:
        return np.full(steps["ts"].size, np.nan)
    return flops_of(steps, basis)[0] / peak


def step_figure(timeline: JobTimeline, basis: JobBasis, newest: int = FIGURE_STEPS) -> MfuFigure:
    """The job's step MFU over its newest steady steps, all of one session."""
    steps = timeline.steady()
    timed = take(steps, steps["seconds"] > 0)
    if timed["ts"].size:
        timed = take(timed, timed["session"] == timed["session"][-1])
        timed = {name: values[-newest:] for name, values in timed.items()}
    reason = _missing(timeline, steps, timed, basis)
    return _figure(timed, basis, reason)


def _missing(timeline: JobTimeline, steady: Columns, timed: Columns, basis: JobBasis) -> str | None:
    if not timeline.steps["ts"].size:
        return "waiting" if timeline.instrumented else "no_steps"
    if not steady["ts"].size:
        return "waiting"
    if not timed["ts"].size:
        return "no_step_time"
    if basis.reason is not None:
        return basis.reason
    return "no_tokens" if np.isnan(tokens_of(timed, basis.run)).all() else None


def _figure(timed: Columns, basis: JobBasis, reason: str | None) -> MfuFigure:
    tokens = tokens_of(timed, basis.run)
    known = np.isfinite(tokens)
    seconds = float(timed["seconds"][known].sum())
    work, devices = basis.work, basis.devices
    value = palm = None
    if reason is None and basis.full_peak is not None:
        causal, other = flops_of(timed, basis)
        value = float(causal[known].sum()) / (seconds * basis.full_peak)
        palm = None if work.palm is None else float(other[known].sum()) / (seconds * basis.full_peak)
    rate = float(tokens[known].sum()) / seconds if seconds > 0 else None
    reported = timed["reported_mfu_ratio"]
    return MfuFigure(
        value_ratio=value,
        palm_ratio=palm,
        convention=work.convention,
        basis=work.basis if value is not None else None,
        reason=reason,
        flops_per_token=_per_token(timed, basis, value),
        palm_flops_per_token=work.palm,
        tokens_per_second=rate,
        gpus=devices.gpus,
        gpus_basis=devices.gpus_basis,
        gpus_observed=devices.observed,
        gpu_model=devices.model,
        peak_flops=devices.peak_flops,
        peak_source=devices.peak_source,
        dtype=devices.dtype,
        dtype_basis=devices.dtype_basis,
        shape_origin=basis.run.shape_origin,
        steps=int(timed["steps_covered"].sum()),
        window_start_seconds=float(timed["begin"][0]) if timed["ts"].size else None,
        window_end_seconds=float(timed["ts"][-1]) if timed["ts"].size else None,
        reported_ratio=float(np.nanmean(reported)) if np.isfinite(reported).any() else None,
    )


def _per_token(timed: Columns, basis: JobBasis, value: float | None) -> float | None:
    """FLOPs per token as used: the mean when packed documents made it differ."""
    if value is None:
        return basis.work.causal
    tokens, flops = tokens_of(timed, basis.run), flops_of(timed, basis)[0]
    known = np.isfinite(tokens)
    return float(flops[known].sum() / tokens[known].sum()) if tokens[known].sum() > 0 else None


def mfu_series(timeline: JobTimeline, basis: JobBasis, edges: Floats) -> Floats:
    """Step MFU of kept steps between consecutive ``edges`` (seconds); steps count by the time they overlap.

    NaN where no step with known work lies.
    """
    steps = timeline.kept()
    useful = useful_seconds(steps, basis)
    known = np.isfinite(useful) & (steps["ts"] > steps["begin"])
    begin, end = steps["begin"][known], steps["ts"][known]
    share = useful[known] / (end - begin)
    done = np.diff(_cumulative(begin, end, share, edges))
    spent = np.diff(_cumulative(begin, end, np.ones(begin.size), edges))
    result = np.full(edges.size - 1, np.nan)
    np.divide(done, spent, out=result, where=spent > 1e-9)
    return result


def _cumulative(begin: Floats, end: Floats, rate: Floats, at: Floats) -> Floats:
    """The integral up to each time of a function that is ``rate`` within disjoint, ordered intervals, else 0."""
    total = np.concatenate(([0.0], np.cumsum(rate * (end - begin))))
    index = np.searchsorted(begin, at, side="right")
    if not begin.size:
        return np.zeros(at.size)
    last = np.maximum(index - 1, 0)
    inside = np.clip(at - begin[last], 0.0, end[last] - begin[last]) * rate[last]
    return np.where(index > 0, total[last] + inside, 0.0)


def wall_ratio(rollups: Columns) -> float | None:
    """Wall MFU from rollup rows of a job: kept FLOPs over all that its GPUs could have done while leased."""
    flops, peak = rollups["kept_flops"], rollups["leased_peak_flop_seconds"]
    if not np.isfinite(peak).any() or np.nansum(peak) <= 0.0:
        return None
    return float(np.nansum(flops) / np.nansum(peak))


def arithmetic(figure: MfuFigure) -> tuple[Term, ...]:
    """The terms of a figure's formula with its numbers, in the order they are read."""
    gpus = {"world_size": "world size", "lease": "leased", "observed": "observed"}.get(
        figure.gpus_basis or ""
    )
    return (
        Term(
            symbol="F",
            meaning=f"FLOPs per token, {figure.convention}",
            value=figure.flops_per_token,
            unit="FLOP",
        ),
        Term(symbol="T", meaning="tokens per second", value=figure.tokens_per_second, unit="1/s"),
        Term(symbol="G", meaning=f"GPUs ({gpus or 'unknown'})", value=figure.gpus, unit=""),
        Term(
            symbol="P",
            meaning=f"dense peak, {figure.dtype or 'unknown'}",
            value=figure.peak_flops,
            unit="FLOP/s",
        ),
        Term(symbol="MFU", meaning="F x T / (G x P)", value=figure.value_ratio, unit="ratio"),
    )
