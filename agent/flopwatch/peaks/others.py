"""Accelerators of other vendors: capacity and steps only, no hardware signals."""

from collections.abc import Mapping

from flopwatch.accelerator import Accelerator, Dtype
from flopwatch.peaks.sources import AMD, INTEL, NEURON, STAS, TORCHTITAN, VERL


def _chip(
    product: tuple[str, str, str], tflops: Mapping[Dtype, float], source: str, note: str, unverified: str = ""
) -> Accelerator:
    """A product (name, vendor, architecture) that NVML does not know."""
    name, vendor, architecture = product
    return Accelerator(
        name=name, vendor=vendor, architecture=architecture, nvml_names=(), tflops=tflops, sources=(source,),
        notes=(f"not an NVML device; {note}",), unverified=(unverified,) if unverified else (),
    )  # fmt: skip


def _neuron(*values: float) -> Mapping[Dtype, float]:
    """The peaks of a Trainium chip: fp32, then tf32, bf16 and fp16 alike, fp8, and fp4 where it has one."""
    fp32, half, fp8, *fp4 = values
    peaks: dict[Dtype, float] = {"fp32": fp32, "tf32": half, "bf16": half, "fp16": half, "fp8": fp8}
    return {**peaks, "fp4": fp4[0]} if fp4 else peaks


OTHERS: tuple[Accelerator, ...] = (
    _chip(("Gaudi 2", "Intel", "Gaudi"), {"bf16": 432}, INTEL, "fp8 is 835 or 865 by source", "fp8"),
    _chip(("Gaudi 3", "Intel", "Gaudi"), {}, INTEL, "bf16 and fp8 are both 1678, 1835 or 1856 by source", "all peaks"),
    _chip(("Trainium", "AWS", "NeuronCore-v2"), _neuron(47.5, 190, 190), NEURON, "per chip of two cores", "int8"),
    _chip(("Trainium2", "AWS", "NeuronCore-v3"), _neuron(181, 667, 1299), NEURON, "per chip; 2563 is sparse"),
    _chip(("Trainium3", "AWS", "NeuronCore-v4"), _neuron(183, 671, 2517, 2517), NEURON, "per chip; MX formats"),
    Accelerator(
        name="MI250 (per card)", vendor="AMD", architecture="CDNA2",
        nvml_names=("AMD Instinct MI250",),
        tflops={
            "fp64": 45.3, "fp32": 45.3, "bf16": 362.1, "fp16": 362.1, "int8": 362.1,
        },
        sources=(STAS, AMD),
        notes=(
            "each card is two devices (GCDs) to software: 181.05 per visible device",
        ),
    ),
    Accelerator(
        name="MI350X", vendor="AMD", architecture="CDNA4",
        nvml_names=("AMD Instinct MI350X",),
        tflops={
            "bf16": 2309.6, "fp16": 2309.6,
        },
        sources=(STAS, AMD),
        unverified=("fp32", "fp8", "fp4", "int8"),
        notes=(
            "2.2 GHz where the MI355X has 2.4",
        ),
    ),
    Accelerator(
        name="MI250X (per card)", vendor="AMD", architecture="CDNA2",
        nvml_names=("AMD Instinct MI250X",),
        tflops={
            "fp64": 47.9, "fp32": 47.9, "bf16": 383, "fp16": 383, "int8": 383,
        },
        sources=(STAS, AMD, TORCHTITAN),
        notes=(
            (
                "each card is two devices (GCDs) to software: 191.5 per visible device, 64 GB each. "
                "Dividing per-GCD throughput by 383 halves MFU; the Frontier paper and torchtitan use "
                "191.5"
            ),
            "not an NVML device; name from ROCm tools",
        ),
    ),
    Accelerator(
        name="MI300X", vendor="AMD", architecture="CDNA3",
        nvml_names=("AMD Instinct MI300X",),
        tflops={
            "fp32": 163.4, "tf32": 653.7, "bf16": 1307.4, "fp16": 1307.4, "fp8": 2614.9, "int8": 2614.9,
        },
        sources=(STAS, AMD, TORCHTITAN),
        unverified=("fp64",),
        notes=(
            "veRL lists 1336, torchtitan 1300",
            "2614.9 is sparse bf16 and dense fp8",
            'older ROCm reports "AMD Radeon Graphics" for the name',
            "CPX/DPX partitioning shows 8 devices per card",
        ),
    ),
    Accelerator(
        name="MI325X", vendor="AMD", architecture="CDNA3",
        nvml_names=("AMD Instinct MI325X",),
        tflops={
            "fp32": 163.4, "tf32": 653.7, "bf16": 1307.4, "fp16": 1307.4, "fp8": 2614.9, "int8": 2614.9,
        },
        sources=(STAS, AMD),
        unverified=("fp64",),
        notes=(
            "same compute as the MI300X",
        ),
    ),
    Accelerator(
        name="MI355X", vendor="AMD", architecture="CDNA4",
        nvml_names=("AMD Instinct MI355X",),
        tflops={
            "fp32": 157.3, "bf16": 2516.6, "fp16": 2516.6, "fp8": 5033, "fp4": 10066, "int8": 5033,
        },
        sources=(STAS, AMD, TORCHTITAN),
        unverified=("decimals",),
        notes=(
            "rounded to 2500/5000/10100 in most tables",
            "5 PFLOPS fp16 and 10.1 PFLOPS fp8 on the AMD page are the sparse ones",
            "MI350X is 2309.6",
        ),
    ),
    Accelerator(
        name="Ascend 910B", vendor="Huawei", architecture="Da Vinci",
        nvml_names=("Ascend 910B", "910B1", "910B2", "910B3", "910B4"),
        sources=(VERL,),
        unverified=("everything",),
        notes=(
            (
                'as published only: veRL uses 354 for every 910B and "Ascend910"; other public tables '
                "give 256, 313, 320, 376 by variant. No vendor page read: report the number the operator "
                "configures"
            ),
        ),
    ),
    Accelerator(
        name="TPU v4", vendor="Google", architecture="TPU",
        nvml_names=(),
        tflops={
            "bf16": 275,
        },
        sources=(STAS, TORCHTITAN),
        notes=(
            "not an NVML device; per chip",
        ),
    ),
    Accelerator(
        name="TPU v5e", vendor="Google", architecture="TPU",
        nvml_names=(),
        tflops={
            "bf16": 197,
        },
        sources=(STAS, TORCHTITAN),
        notes=(
            "not an NVML device; per chip",
        ),
    ),
    Accelerator(
        name="TPU v5p", vendor="Google", architecture="TPU",
        nvml_names=(),
        tflops={
            "bf16": 459,
        },
        sources=(STAS, TORCHTITAN),
        notes=(
            "not an NVML device; per chip",
        ),
    ),
    Accelerator(
        name="TPU v6e", vendor="Google", architecture="TPU",
        nvml_names=(),
        tflops={
            "bf16": 918,
        },
        sources=(STAS, TORCHTITAN),
        notes=(
            "not an NVML device; per chip",
        ),
    ),
    Accelerator(
        name="TPU v7x", vendor="Google", architecture="TPU",
        nvml_names=(),
        tflops={
            "bf16": 2307, "fp8": 4614,
        },
        sources=(STAS, TORCHTITAN),
        notes=(
            "per chip; software sees two devices per chip, torchtitan halves",
        ),
    ),
)  # fmt: skip
