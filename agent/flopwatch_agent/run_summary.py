"""What a recorded run came to on this node: step time, MFU with its basis, GPU activity with its basis."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from flopwatch import accelerators
from flopwatch.blocks import ShapeError
from flopwatch.flops import ModelShape, flops_per_token
from flopwatch.mfu import mfu_ratio
from flopwatch.partly_trained import is_part, of_numbers, of_shape
from flopwatch.wire import GpuDevice, GpuSample, JobSighting, RunFacts, StepRecord

T = TypeVar("T")
TRUST = {"declared": -1, "sdk": 0, "log": 1, "file": 2}
SOURCE_TRUST = {"sdk": 0, "file": 1, "log": 2}
NO_STEPS = "no steps were found in the command's output and none came from flopwatch.StepReporter"
NO_TIMES = "the steps that were found carry no time"
NO_WORK = (
    "neither the model's shape nor its parameter count is known: set FLOPWATCH_MODEL or FLOPWATCH_PARAMETERS"
)
NO_TOKENS = (
    "the tokens of a step are not known: the output names neither tokens, nor batch and sequence length"
)
NO_WORLD = "the number of GPUs is not known: the output names no world size and no GPU was seen in use"
NO_PEAK = "the dense peak of the GPU is not known in number format {dtype}"
NO_GPU = "the GPU's model is not known without NVML, so an MFU needs its peak: replay with [[peaks]]"
ASSUMED_DTYPE = "bf16"
ACTIVITIES = (
    ("tensor_active_ratio", "tensor activity, GPM"),
    ("sm_active_ratio", "SM activity, GPM"),
    ("kernel_active_ratio", "any kernel resident, as nvidia-smi counts: no measure of work"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSeen:
    """What was recorded."""

    job: JobSighting | None
    steps: tuple[StepRecord, ...]
    samples: tuple[GpuSample, ...]
    devices: tuple[GpuDevice, ...]
    nvml: str | None
    """Why no GPU could be read; None when they could."""
    status: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """How fast the steps went."""

    steps: int
    seconds: float | None
    """Median time of a steady step."""
    tokens: float | None
    """Tokens of one step, where the steps themselves tell."""


def summary(seen: RunSeen) -> dict[str, Any]:
    """The run's figures for people and JSON; what is not known is None, with the reason."""
    facts = () if seen.job is None else seen.job.run
    speed = speed_of(seen.steps)
    return {
        "job": None if seen.job is None else seen.job.name,
        "scheduler_job_id": None if seen.job is None else seen.job.scheduler_job_id,
        "exit_status": seen.status,
        "steps": speed.steps,
        "step_seconds": speed.seconds,
        "mfu": mfu_figure(seen, speed, facts),
        "gpu_activity": activity(seen),
        "gpus": [{"uuid": item.uuid, "name": item.name, "slot": item.slot} for item in seen.devices],
    }


def speed_of(steps: Sequence[StepRecord]) -> Speed:
    """The speed by the most trusted source that has times; its first interval counts only when it is the only one."""
    source = min((item.source for item in steps if item.seconds), key=SOURCE_TRUST.__getitem__, default=None)
    chosen = {item.step: item for item in steps if source is None or item.source == source}
    rows = [chosen[step] for step in sorted(chosen)]
    steady = [item for item in rows if item.steady and item.seconds] or [
        item for item in rows if item.seconds
    ]
    times = [item.seconds / item.steps_covered for item in steady if item.seconds]
    tokens = [item.tokens / item.steps_covered for item in steady if item.tokens]
    return Speed(
        steps=sum(item.steps_covered for item in rows),
        seconds=statistics.median(times) if times else None,
        tokens=statistics.median(tokens) if tokens else None,
    )


def mfu_figure(seen: RunSeen, speed: Speed, facts: Sequence[RunFacts]) -> dict[str, Any]:
    """value_ratio = flops_per_token x tokens_per_step / (step_seconds x gpus x peak_flops)."""
    flops, basis = work(facts)
    tokens = step_tokens(speed, facts)
    gpus, gpus_basis = gpu_count(seen)
    dtype, dtype_basis = number_format(facts)
    peak = peak_flops(seen.devices, dtype)
    missing = (
        (speed.steps == 0, NO_STEPS),
        (speed.seconds is None, NO_TIMES),
        (flops is None, NO_WORK),
        (tokens is None, NO_TOKENS),
        (not seen.devices, NO_GPU),
        (gpus is None, NO_WORLD),
        (peak is None, NO_PEAK.format(dtype=dtype)),
    )
    reason = next((text for is_missing, text in missing if is_missing), None)
    value = None
    if reason is None and flops and tokens and speed.seconds and gpus and peak:
        value = mfu_ratio(flops, tokens=tokens, seconds=speed.seconds, gpus=gpus, peak_flops=peak)
    return {
        "value_ratio": value,
        "basis": basis if value is not None else None,
        "reason": reason,
        "flops_per_token": flops,
        "tokens_per_step": tokens,
        "step_seconds": speed.seconds,
        "gpus": gpus,
        "gpus_basis": gpus_basis,
        "peak_flops": peak,
        "dtype": dtype,
        "dtype_basis": dtype_basis,
    }


def work(facts: Sequence[RunFacts]) -> tuple[float | None, str | None]:
    """FLOPs of a trained token and their basis, from shape, parameters, or the trainer's own word."""
    shape, part = known(facts, lambda one: one.shape), known(facts, _trained_part)
    if shape is not None:
        try:
            model = ModelShape.from_dict(shape)
            length = known(facts, lambda one: one.sequence_length) or model.seq_len
            if length and not model.stacks and model.finetuning is None and part:
                return of_shape(model, length, "causal", trained=part), "steps+shape"
            if length and not model.stacks:
                return float(flops_per_token(model, length, "causal")), "steps+shape"
        except ShapeError:
            pass  # the next basis is taken, and named
    parameters = known(facts, lambda one: one.parameter_count)
    if parameters and part:
        return of_numbers(parameters, part), "steps+params"
    if parameters:
        return 6.0 * parameters, "steps+params"
    told = known(facts, lambda one: one.flops_per_token)
    return (told, "steps+reported") if told else (None, None)


def _trained_part(facts: RunFacts) -> int | None:
    """Trained parameters by who told that others are not."""
    trained = facts.trained_parameter_count
    return trained if is_part(facts.parameter_count, trained) else None


def step_tokens(speed: Speed, facts: Sequence[RunFacts]) -> float | None:
    """Tokens of a step over all ranks: as its record says, else as told of the run, else batch x length."""
    told = speed.tokens or known(facts, lambda one: one.tokens_per_step)
    if told:
        return float(told)
    batch = known(facts, lambda one: one.global_batch_size)
    length = known(facts, lambda one: one.sequence_length)
    return float(batch * length) if batch and length else None


def world_size(job: JobSighting) -> int | None:
    """Ranks of the whole run, as its trainer or its launcher says."""
    return known(job.run, lambda one: one.world_size) or job.world_size


def gpu_count(seen: RunSeen) -> tuple[int | None, str | None]:
    """GPUs of the whole run: the world size, else those given, else those seen in use here."""
    world = None if seen.job is None else world_size(seen.job)
    if world:
        return world, "world_size"
    if seen.job is not None and seen.job.leased_gpus:
        return len(seen.job.leased_gpus), "lease"
    used = {item.gpu for item in seen.samples if item.job is not None} or set(
        seen.job.gpus if seen.job else ()
    )
    return (len(used), "observed") if used else (None, None)


def number_format(facts: Sequence[RunFacts]) -> tuple[str, str]:
    """The number format, and whether it was told or is assumed."""
    told = next((one for one in sorted(facts, key=order) if one.dtype), None)
    if told is None or told.dtype is None:
        return ASSUMED_DTYPE, "assumed"
    return told.dtype, told.dtype_basis or "log"


def peak_flops(devices: Sequence[GpuDevice], dtype: str) -> float | None:
    """Mean dense FLOP/s of a GPU; None when it is not known for one of them."""
    peaks = []
    for device in devices:
        found = accelerators.by_name(device.name)
        peak = None if found is None else found.peak_flops(dtype)
        if peak is None or device.mig_profile is not None:
            return None
        peaks.append(peak)
    return sum(peaks) / len(peaks) if peaks else None


def activity(seen: RunSeen) -> dict[str, Any]:
    """Mean activity of the command's GPUs, from the best counter that all of its samples have."""
    used = set(seen.job.gpus if seen.job else ())
    samples = [item for item in seen.samples if not used or item.gpu in used]
    for name, basis in ACTIVITIES:
        values = [value for item in samples if (value := getattr(item, name)) is not None]
        if values:
            return {
                "value_ratio": sum(values) / len(values),
                "basis": basis,
                "samples": len(values),
                "reason": None,
            }
    reason = seen.nvml or "no GPU answered while the command ran"
    return {"value_ratio": None, "basis": None, "samples": 0, "reason": reason}


def known(facts: Sequence[RunFacts], value: Callable[[RunFacts], T | None]) -> T | None:
    """A fact from its most trusted source; among equals the newest launch's."""
    return next((found for one in sorted(facts, key=order) if (found := value(one)) is not None), None)


def order(one: RunFacts) -> tuple[int, int]:
    """Most trusted first."""
    return TRUST[one.source], -one.session


def text_of(found: dict[str, Any]) -> str:
    """The summary for people, four or five lines."""
    mfu, gpu = found["mfu"], found["gpu_activity"]
    lines = [
        f"{found['steps']} steps"
        + (f", {found['step_seconds']:.4g} s each (median)" if found["step_seconds"] else "")
    ]
    lines.append(
        f"MFU {mfu['value_ratio']:.1%} ({mfu_basis(mfu)})"
        if mfu["value_ratio"] is not None
        else f"MFU unknown: {mfu['reason']}"
    )
    lines.append(
        f"GPU activity {gpu['value_ratio']:.1%} ({gpu['basis']})"
        if gpu["value_ratio"] is not None
        else f"GPU activity unknown: {gpu['reason']}"
    )
    if found["waiting_batches"]:
        lines.append(
            f"{found['waiting_batches']} batches did not reach the collector; they wait beside the recording"
        )
    lines.append(f"recorded in {found['recording']}; flopwatch replay reads it")
    return "\n".join(f"flopwatch run: {line}" for line in lines) + "\n"


def mfu_basis(mfu: dict[str, Any]) -> str:
    """What the MFU rests on, in words."""
    assumed = ", assumed" if mfu["dtype_basis"] == "assumed" else ""
    return (
        f"{mfu['basis']}; {mfu['gpus']} GPUs by {mfu['gpus_basis']}, "
        f"{mfu['peak_flops'] / 1e12:.4g} TFLOP/s {mfu['dtype']} peak each{assumed}"
    )
