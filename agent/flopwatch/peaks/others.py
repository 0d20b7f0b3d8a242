"""Accelerators of other vendors: capacity and steps only, no hardware signals."""

from flopwatch.accelerator import Accelerator
from flopwatch.peaks.sources import AMD, INTEL, NEURON, STAS, TORCHTITAN, VERL

OTHERS: tuple[Accelerator, ...] = (
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
        name="Gaudi 2", vendor="Intel", architecture="Gaudi",
        nvml_names=(),
        tflops={
            "bf16": 432,
        },
        sources=(INTEL,),
        unverified=("fp8",),
        notes=(
            "not an NVML device; fp8 is 835 or 865 by source",
        ),
    ),
    Accelerator(
        name="Gaudi 3", vendor="Intel", architecture="Gaudi",
        nvml_names=(),
        sources=(INTEL,),
        unverified=("all peaks",),
        notes=(
            "not an NVML device; bf16 and fp8 are both 1678, 1835 or 1856 by source and form",
        ),
    ),
    Accelerator(
        name="Trainium", vendor="AWS", architecture="NeuronCore-v2",
        nvml_names=(),
        tflops={
            "fp32": 47.5, "tf32": 190, "bf16": 190, "fp16": 190, "fp8": 190,
        },
        sources=(NEURON,),
        unverified=("int8",),
        notes=(
            "not an NVML device; per chip of two NeuronCores",
        ),
    ),
    Accelerator(
        name="Trainium2", vendor="AWS", architecture="NeuronCore-v3",
        nvml_names=(),
        tflops={
            "fp32": 181, "tf32": 667, "bf16": 667, "fp16": 667, "fp8": 1299,
        },
        sources=(NEURON,),
        notes=(
            "not an NVML device; per chip of eight NeuronCores; 2563 is sparse",
        ),
    ),
    Accelerator(
        name="Trainium3", vendor="AWS", architecture="NeuronCore-v4",
        nvml_names=(),
        tflops={
            "fp32": 183, "tf32": 671, "bf16": 671, "fp16": 671, "fp8": 2517, "fp4": 2517,
        },
        sources=(NEURON,),
        notes=(
            "not an NVML device; per chip of eight NeuronCores; fp8 and fp4 in the MX formats; 2517 in bf16 is sparse",
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
