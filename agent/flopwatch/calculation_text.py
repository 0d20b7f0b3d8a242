"""A calculation as text for a terminal."""

from flopwatch.calculation import Calculation, Count
from flopwatch.mfu_standing import NVIDIA_SMI


def render(result: Calculation) -> str:
    """The figure with its basis, its arithmetic, doubts, standing, and the run in every other convention."""
    lines = [*_figure(result), "", *_arithmetic(result), ""]
    lines += [f"Finding: {finding.text}" for finding in result.findings]
    inputs = result.inputs
    lines.append(result.standing.sentence(result.chosen.ratio, inputs.accelerator.name, inputs.dtype))
    lines += [
        f"{NVIDIA_SMI}.",
        "",
        "The same run as other tools count it; the formula says what makes it differ:",
        *_table(result),
    ]
    return "\n".join(lines) + "\n"


def _figure(result: Calculation) -> list[str]:
    """The figures, each with its convention and peak."""
    inputs, chosen = result.inputs, result.chosen
    kind = "HFU-like" if chosen.convention.counts_recompute else "MFU"
    peak = f"dense {inputs.dtype} peak {result.peak_flops / 1e12:.1f} TFLOP/s"
    lines = [
        f"{inputs.shape.name or 'model'} on {inputs.gpus} x {inputs.gpu_name} ({inputs.accelerator.name})",
        f"{kind} {chosen.ratio:.1%}   [{chosen.convention.tag}; {peak}]",
    ]
    if chosen is not result.palm:
        lines.append(f"MFU {result.palm.ratio:.1%}   [{result.palm.convention.tag}; same peak]")
    if result.bf16_ratio is not None:
        lines.append(f"MFU {result.bf16_ratio:.1%}   [{chosen.convention.tag}; dense bf16 peak instead]")
    if result.hfu_ratio is not None:
        lines.append(
            f"HFU {result.hfu_ratio:.1%}   [{inputs.recompute} recompute counted as work; never an MFU]"
        )
    return lines


def _arithmetic(result: Calculation) -> list[str]:
    """The arithmetic with its numbers."""
    inputs, chosen = result.inputs, result.chosen
    return [
        f"  {chosen.flops_per_token / 1e9:.3f} GFLOP a trained token ({chosen.convention.formula})",
        f"  x {inputs.tokens_per_second:,.0f} tokens/s",
        f"  / ({inputs.gpus} GPUs x {result.peak_flops / 1e12:.1f} TFLOP/s)   = {chosen.ratio:.4f}",
        f"  {chosen.ratio * result.peak_flops / 1e12:.1f} TFLOP/s of each GPU",
        f"  peak from: {inputs.accelerator.source}",
    ]


def _table(result: Calculation) -> list[str]:
    """Every convention with its count, its figure, and what makes it differ."""
    return [_row(count) for count in result.counts]


def _row(count: Count) -> str:
    name, difference = count.convention.name, count.against_chosen - 1
    note = " (HFU-like)" if count.convention.counts_recompute else ""
    gflop = f"{count.flops_per_token / 1e9:>12.2f} GFLOP/token"
    row = f"  {name:<20}{gflop}  {count.ratio:>7.1%}  {difference:>+8.1%}  {count.convention.formula}{note}"
    return f"{row} [{count.convention.source}]"
