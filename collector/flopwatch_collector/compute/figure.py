"""A job's step MFU as the pages show it: the value, and everything needed to check it."""

from dataclasses import replace

import numpy as np

from flopwatch.mfu import hardware_estimate
from flopwatch.query import MfuFigure, Term
from flopwatch_collector.compute.devices import Devices
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.mfu import Floats, JobBasis, flops_of, possible_of, tokens_of
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns

FIGURE_STEPS = 50
"""Newest steady step reports a figure is made from."""
SAME_GPUS = 1e-6


def step_figure(timeline: JobTimeline, basis: JobBasis, newest: int = FIGURE_STEPS) -> MfuFigure:
    """The job's step MFU over its newest steady steps, all of one session."""
    steps = timeline.steady()
    timed = take(steps, steps["seconds"] > 0)
    if timed["ts"].size:
        timed = take(timed, timed["session"] == timed["session"][-1])
        timed = {name: values[-newest:] for name, values in timed.items()}
    return _figure(timed, basis, _missing(timeline, steps, timed, basis))


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
    work, devices = basis.work, basis.devices
    sums = _Sums(timed, basis)
    value = sums.ratio(sums.causal) if reason is None else None
    return MfuFigure(
        value_ratio=value,
        palm_ratio=sums.ratio(sums.palm) if value is not None and work.palm is not None else None,
        convention=work.convention,
        basis=work.basis if value is not None else None,
        reason=reason,
        flops_per_token=sums.causal / sums.tokens if value is not None and sums.tokens else work.causal,
        palm_flops_per_token=work.palm,
        tokens_per_second=sums.tokens / sums.seconds if sums.seconds > 0 else None,
        gpus=devices.gpus,
        gpus_basis=devices.gpus_basis,
        gpus_observed=devices.observed,
        gpu_model=devices.model,
        peak_flops=devices.peak_flops if value is None else sums.peak_flops,
        peak_source=devices.peak_source,
        dtype=devices.dtype,
        dtype_basis=devices.dtype_basis,
        shape_origin=basis.run.shape_origin,
        steps=int(timed["steps_covered"].sum()),
        window_start_seconds=float(timed["begin"][0]) if timed["ts"].size else None,
        window_end_seconds=float(timed["ts"][-1]) if timed["ts"].size else None,
        reported_ratio=_mean(timed["reported_mfu_ratio"]),
        reported_flops_per_gpu=_mean(timed["reported_flops_per_gpu"]),
        tokens=sums.tokens or None,
        padded_tokens=sums.padded_tokens,
        left_out=work.left_out,
        run_dtype=devices.run_dtype,
        run_dtype_peak_flops=devices.run_dtype_peak_flops,
        run_dtype_ratio=_against_own(value, devices),
        gpus_mean=sums.gpus_mean if value is not None else None,
    )


def _mean(values: Floats) -> float | None:
    return float(np.nanmean(values)) if np.isfinite(values).any() else None


def _against_own(value: float | None, devices: Devices) -> float | None:
    """The same work against the peak of the run's own narrower format."""
    own, peak = devices.run_dtype_peak_flops, devices.peak_flops
    return None if value is None or own is None or peak is None else value * peak / own


class _Sums:
    """Sums over the records whose tokens are known."""

    def __init__(self, timed: Columns, basis: JobBasis) -> None:
        tokens = tokens_of(timed, basis.run)
        known = np.isfinite(tokens)
        chosen = take(timed, known)
        causal, palm = flops_of(chosen, basis)
        self._basis = basis
        self.tokens = float(tokens[known].sum())
        self.seconds = float(chosen["seconds"].sum())
        self.causal, self.palm = float(causal.sum()), float(palm.sum())
        wall = chosen["ts"] - chosen["begin"]
        gpus = basis.gpus(chosen["begin"], chosen["ts"], chosen["launch_session"])
        rate = np.full(wall.size, basis.full_peak or np.nan)
        np.divide(possible_of(chosen, basis), wall, out=rate, where=wall > 0)
        self._possible = float((rate * chosen["seconds"]).sum())
        self._gpu_seconds = float((gpus * chosen["seconds"]).sum())
        padded = chosen["padded_tokens"]
        self.padded_tokens = float(padded.sum()) if padded.size and np.isfinite(padded).all() else None

    def ratio(self, flops: float) -> float | None:
        """FLOPs over what the GPUs could have done; None where that is not known."""
        ratio = flops / self._possible if self._possible > 0 else np.nan
        return float(ratio) if np.isfinite(ratio) else None

    @property
    def peak_flops(self) -> float | None:
        """Dense FLOP/s of one GPU, weighted by the GPU-seconds of each."""
        return self._possible / self._gpu_seconds if self._gpu_seconds > 0 else None

    @property
    def gpus_mean(self) -> float | None:
        """GPUs over the window, where they were not the count that is known now."""
        mean = self._gpu_seconds / self.seconds if self.seconds > 0 else np.nan
        now = self._basis.devices.gpus
        return None if not np.isfinite(mean) or not now or abs(mean - now) <= SAME_GPUS * now else float(mean)


def estimated(
    figure: MfuFigure,
    devices: Devices,
    *,
    tensor_active_ratio: float | None,
    tensor_clock_hertz: float | None,
    max_sm_clock_hertz: float | None,
) -> MfuFigure:
    """The figure with a hardware estimate where there are no steps to measure an MFU from; ``reason`` stays.

    ``tensor_clock_hertz``: mean of tensor activity x SM clock over the window of ``tensor_active_ratio``.
    """
    if figure.reason not in ("waiting", "no_steps") or tensor_clock_hertz is None or not tensor_active_ratio:
        return figure
    estimates = [
        (
            hardware_estimate(
                kind,
                tensor_active_ratio=tensor_active_ratio,
                sm_clock_hertz=tensor_clock_hertz / tensor_active_ratio,
                max_sm_clock_hertz=max_sm_clock_hertz,
            ),
            count * (kind.peak_flops(devices.dtype or "bf16") or 0.0),
        )
        for kind, count in devices.kinds
    ]
    known = [(found, weight) for found, weight in estimates if found is not None]
    total = sum(weight for _, weight in known)
    if len(known) < len(estimates) or total <= 0:
        return figure
    bound = any(found.clock_basis == "max_clock" for found, _ in known)
    ratio = sum(found.ratio * weight for found, weight in known) / total
    return replace(
        figure,
        value_ratio=ratio,
        basis="hardware",
        convention="hardware",
        clock_basis="max_clock" if bound else "peak_clock",
        tensor_active_ratio=tensor_active_ratio,
        sm_clock_hertz=tensor_clock_hertz / tensor_active_ratio,
        clock_hertz=tensor_clock_hertz / ratio,
    )


def _estimate_terms(figure: MfuFigure) -> tuple[Term, ...]:
    clock = "clock of the peak" if figure.clock_basis == "peak_clock" else "highest SM clock"
    return (
        Term(symbol="A", meaning="tensor activity", value=figure.tensor_active_ratio, unit="ratio"),
        Term(symbol="C", meaning="SM clock while active", value=figure.sm_clock_hertz, unit="Hz"),
        Term(symbol="C_peak", meaning=clock, value=figure.clock_hertz, unit="Hz"),
        Term(symbol="estimate", meaning="A x C / C_peak, no MFU", value=figure.value_ratio, unit="ratio"),
    )


GPUS_WORDS = {"world_size": "world size", "lease": "leased", "observed": "observed"}


def arithmetic(figure: MfuFigure) -> tuple[Term, ...]:
    """The terms of a figure's formula with its numbers, in the order they are read."""
    if figure.basis == "hardware":
        return _estimate_terms(figure)
    gpus = GPUS_WORDS.get(figure.gpus_basis or "", "unknown")
    count = figure.gpus if figure.gpus_mean is None else figure.gpus_mean
    terms = [
        Term(
            symbol="F",
            meaning=f"FLOPs per token, {figure.convention}",
            value=figure.flops_per_token,
            unit="FLOP",
        ),
        Term(symbol="T", meaning="tokens per second", value=figure.tokens_per_second, unit="1/s"),
        Term(symbol="G", meaning=f"GPUs ({gpus})", value=count, unit=""),
        Term(
            symbol="P",
            meaning=f"dense peak, {figure.dtype or 'unknown'}",
            value=figure.peak_flops,
            unit="FLOP/s",
        ),
        Term(symbol="MFU", meaning="F x T / (G x P)", value=figure.measured_ratio, unit="ratio"),
    ]
    if figure.palm_ratio is not None:
        terms += [
            Term(
                symbol="F_palm",
                meaning="FLOPs per token, palm",
                value=figure.palm_flops_per_token,
                unit="FLOP",
            ),
            Term(symbol="MFU_palm", meaning="F_palm x T / (G x P)", value=figure.palm_ratio, unit="ratio"),
        ]
    if figure.run_dtype_ratio is not None:
        own = figure.run_dtype
        terms += [
            Term(
                symbol=f"P_{own}",
                meaning=f"dense peak, {own}",
                value=figure.run_dtype_peak_flops,
                unit="FLOP/s",
            ),
            Term(
                symbol=f"MFU_{own}",
                meaning=f"F x T / (G x P_{own})",
                value=figure.run_dtype_ratio,
                unit="ratio",
            ),
        ]
    return tuple(terms)
