"""The hardware estimate from sums over GPUs of one model: tensor activity x SM clock / clock of the peak."""

from collections.abc import Iterable
from dataclasses import dataclass

from flopwatch import accelerators
from flopwatch.accelerator import Accelerator
from flopwatch.mfu import fleet_ratio, hardware_estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """Means over some GPUs of one model."""

    model: str | None
    gpus: float
    tensor_active_ratio: float
    tensor_clock_hertz: float
    """Mean of tensor activity x SM clock."""


def accelerator_of(model: str | None) -> Accelerator | None:
    """The accelerator of a model's name; older drivers leave the maker's name out."""
    if model is None:
        return None
    return accelerators.by_name(model) or accelerators.by_name(f"NVIDIA {model}")


def estimate(parts: Iterable[Activity]) -> float | None:
    """The estimate over all models, weighted by their peaks; None when one of them is not known."""
    pairs = []
    for part in parts:
        kind = accelerator_of(part.model)
        if kind is None or part.gpus <= 0:
            return None
        clock = part.tensor_clock_hertz / part.tensor_active_ratio if part.tensor_active_ratio else 0.0
        found = hardware_estimate(kind, tensor_active_ratio=part.tensor_active_ratio, sm_clock_hertz=clock)
        peak = kind.peak_flops("bf16") or kind.peak_flops("fp16")
        if found is None or peak is None:
            return None
        pairs.append((found.ratio, part.gpus * peak))
    return fleet_ratio(pairs)
