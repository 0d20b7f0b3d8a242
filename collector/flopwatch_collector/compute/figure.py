"""A job's step MFU as the pages show it: the value, and everything needed to check it."""

from dataclasses import replace

import numpy as np

from flopwatch.mfu import HardwareEstimate, fleet_ratio, hardware_estimate
from flopwatch.query import MfuFigure, Term
from flopwatch_collector.compute.devices import Devices
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.mfu import Floats, JobBasis, flops_of, possible_of, tokens_of
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns

FIGURE_STEPS = 50
"""Newest steady step reports a figure is made from."""
SAME = 1e-9
"""What differs less is the same, up to rounding."""


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
        mean = self._possible / self._gpu_seconds if self._gpu_seconds > 0 else np.nan
        now = self._basis.devices.peak_flops
        if now is not None and abs(mean - now) <= SAME * now:
            return now
        return float(mean) if np.isfinite(mean) else None

    @property
    def gpus_mean(self) -> float | None:
        """GPUs over the window, where they were not the count that is known now."""
        mean = self._gpu_seconds / self.seconds if self.seconds > 0 else np.nan
        now = self._basis.devices.gpus
        return None if not np.isfinite(mean) or not now or abs(mean - now) <= SAME * now else float(mean)


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
    found = _estimate(
        devices, tensor_active_ratio, tensor_clock_hertz / tensor_active_ratio, max_sm_clock_hertz
    )
    if found is None:
        return figure
    return replace(
        figure,
        value_ratio=found.ratio,
        basis="hardware",
        convention="hardware",
        clock_basis=found.clock_basis,
        tensor_active_ratio=tensor_active_ratio,
        sm_clock_hertz=tensor_clock_hertz / tensor_active_ratio,
        clock_hertz=tensor_clock_hertz / found.ratio,
    )


def _estimate(
    devices: Devices, active: float, sm_clock_hertz: float, max_sm_clock_hertz: float | None
) -> HardwareEstimate | None:
    """The estimate over all models of GPU, weighted by their peaks; None when one of them has none."""
    pairs = []
    for kind, count in devices.kinds:
        found = hardware_estimate(
            kind,
            tensor_active_ratio=active,
            sm_clock_hertz=sm_clock_hertz,
            max_sm_clock_hertz=max_sm_clock_hertz,
        )
        if found is None:
            return None
        pairs.append((found, count * (kind.peak_flops(devices.dtype or "bf16") or 0.0)))
    ratio = fleet_ratio((found.ratio, weight) for found, weight in pairs)
    if not ratio:
        return None
    is_bound = any(found.clock_basis == "max_clock" for found, _ in pairs)
    return HardwareEstimate(ratio=ratio, clock_basis="max_clock" if is_bound else "peak_clock")


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
    peak = f"dense peak, {figure.dtype or 'unknown'}"
    return (
        _term("F", f"FLOPs per token, {figure.convention}", figure.flops_per_token, "FLOP"),
        _term("T", "tokens per second", figure.tokens_per_second, "1/s"),
        _term("G", f"GPUs ({gpus})", count, ""),
        _term("P", peak, figure.peak_flops, "FLOP/s"),
        _term("MFU", "F x T / (G x P)", figure.value_ratio, "ratio"),
        *_other_terms(figure),
    )


def _term(symbol: str, meaning: str, value: float | None, unit: str) -> Term:
    return Term(symbol=symbol, meaning=meaning, value=value, unit=unit)


def _other_terms(figure: MfuFigure) -> list[Term]:
    """The same run by PaLM's convention, and against the peak of its own narrower number format."""
    terms, own = [], figure.run_dtype
    if figure.palm_ratio is not None:
        terms += [
            _term("F_palm", "FLOPs per token, palm", figure.palm_flops_per_token, "FLOP"),
            _term("MFU_palm", "F_palm x T / (G x P)", figure.palm_ratio, "ratio"),
        ]
    if figure.run_dtype_ratio is not None:
        terms += [
            _term(f"P_{own}", f"dense peak, {own}", figure.run_dtype_peak_flops, "FLOP/s"),
            _term(f"MFU_{own}", f"F x T / (G x P_{own})", figure.run_dtype_ratio, "ratio"),
        ]
    return terms
