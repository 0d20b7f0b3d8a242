"""How many GPUs a training run takes.

N = FLOPs / (peak x seconds x MFU x goodput), rounded up to whole nodes; spares are a share of those, in whole nodes
again. The efficiency is MFU x goodput, never a utilisation.
"""

import math
from dataclasses import dataclass

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What is to be trained, on what, and how well."""

    flops: float
    """Model FLOPs of the whole run."""
    peak_flops: float
    """Dense FLOP/s of one GPU in the number format of the run."""
    days: float
    mfu: float
    goodput: float
    spares_ratio: float = 0.0
    gpus_per_node: int = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """GPUs and GPU-hours of a run."""

    gpus_exact: float
    gpus: int
    """Rounded up to a whole GPU."""
    gpus_in_nodes: int
    nodes: int
    spares_exact: float
    """GPUs in whole nodes with the share of spares, before it is rounded up again."""
    gpus_with_spares: int
    nodes_with_spares: int
    working_gpu_hours: float
    """Hours that the run itself takes, whatever the number of GPUs."""
    capacity_gpu_hours: float
    """Hours of all GPUs over the time, spares included: what is paid for when one owns them."""


def size_of(run: Run) -> Size:
    """The size of a run."""
    efficiency = run.mfu * run.goodput
    exact = run.flops / (run.peak_flops * run.days * DAY_SECONDS * efficiency)
    nodes = math.ceil(_settled(exact / run.gpus_per_node))
    spared = nodes * run.gpus_per_node * (1.0 + run.spares_ratio)
    all_nodes = math.ceil(_settled(spared / run.gpus_per_node))
    return Size(
        gpus_exact=exact,
        gpus=math.ceil(_settled(exact)),
        gpus_in_nodes=nodes * run.gpus_per_node,
        nodes=nodes,
        spares_exact=spared,
        gpus_with_spares=all_nodes * run.gpus_per_node,
        nodes_with_spares=all_nodes,
        working_gpu_hours=run.flops / (run.peak_flops * efficiency) / 3600.0,
        capacity_gpu_hours=all_nodes * run.gpus_per_node * run.days * 24.0,
    )


def _settled(value: float) -> float:
    """Without the last digits, so that a whole number that is missed by rounding is not rounded up."""
    return round(value, 9)
