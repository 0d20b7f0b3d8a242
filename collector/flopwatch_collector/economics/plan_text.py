"""The answer of ``flopwatch plan`` for people."""

from collections.abc import Callable, Iterator

from flopwatch.run_sizing import Run
from flopwatch_collector.economics.planner import Plan

UNKNOWN = "unknown"


def render(run: Run, plans: dict[str, Plan], currency: str | None) -> str:
    """The run, its arithmetic, and a column for each efficiency."""
    lines = [
        f"{run.flops:.4g} FLOPs in {run.days:g} days on GPUs of {run.peak_flops / 1e12:g} TFLOP/s dense",
        "",
        "  " + " " * 34 + "".join(f"{name:>16}" for name in plans),
    ]
    for label, text in _rows(run, currency):
        lines.append(f"  {label:<34}" + "".join(f"{text(made):>16}" for made in plans.values()))
    planned = plans["planned"]
    seconds = run.days * 86_400.0
    below = f"{run.peak_flops:.4g} x {seconds:,.0f} s x {planned.mfu:g} x {planned.goodput:g}"
    lines += ["", f"  GPUs = {run.flops:.4g} / ({below}) = {planned.gpus_exact:,.2f}"]
    return "\n".join(lines) + "\n"


def _rows(run: Run, currency: str | None) -> Iterator[tuple[str, Callable[[Plan], str]]]:
    unit = currency or "money"
    yield "MFU x goodput", lambda made: f"{made.mfu:.3g} x {made.goodput:.3g}"
    yield "GPUs", lambda made: f"{made.gpus:,}"
    yield f"in nodes of {run.gpus_per_node}", lambda made: f"{made.gpus_in_nodes:,}"
    yield f"with {run.spares_ratio:.0%} spares", lambda made: f"{made.gpus_with_spares:,}"
    yield "nodes", lambda made: f"{made.nodes_with_spares:,}"
    yield "GPU-hours of work", lambda made: f"{made.working_gpu_hours:,.0f}"
    yield "GPU-hours of capacity", lambda made: f"{made.capacity_gpu_hours:,.0f}"
    yield "energy, MWh", lambda made: _figure(made.energy_kwh, 1e3)
    yield f"own, {unit}", lambda made: _figure(made.own_cost, 1.0)
    yield "GPU-hours billed in the cloud", lambda made: _figure(made.cloud_gpu_hours, 1.0)
    yield f"cloud, {unit}", lambda made: _figure(made.cloud_cost, 1.0)


def _figure(value: float | None, unit: float) -> str:
    return UNKNOWN if value is None else f"{value / unit:,.0f}"
