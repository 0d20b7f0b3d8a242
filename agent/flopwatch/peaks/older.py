"""NVIDIA accelerators up to Ada: dense peaks, exact names, sources."""

from flopwatch.accelerator import Accelerator
from flopwatch.peaks.sources import ADA, COMPOSER, DRIVER, LIGHTNING, LLM_C, STAS, TORCHTITAN, VERL

GA100_MIG = {"1g": 14, "2g": 28, "3g": 42, "4g": 56, "7g": 98}
"""SMs by compute slices: 14 a slice, 98 of 108 usable (NVIDIA MIG guide)."""

OLDER: tuple[Accelerator, ...] = (
    Accelerator(
        name="V100 SXM2", vendor="NVIDIA", architecture="Volta",
        nvml_names=("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"),
        tflops={
            "fp64": 7.8, "fp32": 15.7, "fp16": 125,
        },
        peak_clock_hertz=1530e6,
        sources=(COMPOSER, LIGHTNING, LLM_C),
        unverified=("sm_count",),
        notes=(
            "no bf16 and no tf32 tensor path: bf16 work has no tensor-core peak, report none",
            "not in the open kernel driver list (pre-Turing)",
        ),
    ),
    Accelerator(
        name="V100 PCIe", vendor="NVIDIA", architecture="Volta",
        nvml_names=("Tesla V100-PCIE-16GB", "Tesla V100-PCIE-32GB"),
        tflops={
            "fp64": 7.0, "fp32": 14, "fp16": 112,
        },
        sources=(COMPOSER, LIGHTNING),
        unverified=("sm_count",),
        notes=(
            "112 not 125: llm.c uses 125 at 1530 MHz for the PCIe card too",
        ),
    ),
    Accelerator(
        name="V100S PCIe", vendor="NVIDIA", architecture="Volta",
        nvml_names=("Tesla V100S-PCIE-32GB",),
        tflops={
            "fp64": 8.2, "fp32": 16.4, "fp16": 130,
        },
        sources=(COMPOSER, LIGHTNING),
        unverified=("mem_bandwidth_gb_s", "nvml_names", "sm_count"),
    ),
    Accelerator(
        name="T4", vendor="NVIDIA", architecture="Turing",
        nvml_names=("Tesla T4",),
        tflops={
            "fp32": 8.1, "fp16": 65, "int8": 130,
        },
        sources=(DRIVER, COMPOSER, LIGHTNING),
        unverified=("sm_count",),
        notes=(
            "no bf16, no tf32",
            "70 W cap: sustained is far below 65",
            "RTX names such as T400 or T4G contain t4: match exactly",
        ),
    ),
    Accelerator(
        name="A10", vendor="NVIDIA", architecture="Ampere GA102",
        nvml_names=("NVIDIA A10",),
        tflops={
            "fp32": 31.2, "tf32": 62.5, "bf16": 125, "fp16": 125, "int8": 250,
        },
        sources=(DRIVER, COMPOSER),
        unverified=("sm_count",),
        notes=(
            "125 belongs to the A10; the AWS A10G is 70",
            "150 W cap",
        ),
    ),
    Accelerator(
        name="A10G", vendor="NVIDIA", architecture="Ampere GA102",
        nvml_names=("NVIDIA A10G",),
        tflops={
            "bf16": 70, "fp16": 70,
        },
        sources=(DRIVER,),
        unverified=("tf32", "int8", "fp32", "sm_count"),
        notes=(
            (
                "composer (substring a10) and Lightning give it 125, 1.79x too high, so MFU reads 1.79x "
                "too low"
            ),
            (
                "the AWS datasheet as cited by two public repositories: 70 dense, 140 with sparsity; a "
                "measured matmul of 66.6 confirms it"
            ),
        ),
    ),
    Accelerator(
        name="A30", vendor="NVIDIA", architecture="Ampere GA100",
        nvml_names=("NVIDIA A30",),
        tflops={
            "fp32": 10.3, "bf16": 165, "fp16": 165,
        },
        sm_count=56, peak_clock_hertz=1440e6,
        sources=(DRIVER, "nvbench output published in a public repository: A30 has 56 SMs, 1440 MHz, 933 GB/s"),
        unverified=("fp64", "tf32", "int8"),
        notes=(
            (
                "56 SMs x 1440 MHz x 2048 FLOP per clock = 165.2 (derived from the reported device "
                "properties)"
            ),
            "165 W cap",
        ),
    ),
    Accelerator(
        name="A40", vendor="NVIDIA", architecture="Ampere GA102",
        nvml_names=("NVIDIA A40",),
        tflops={
            "fp32": 37.4, "tf32": 74.8, "bf16": 149.7, "fp16": 149.7, "int8": 299.3,
        },
        sources=(DRIVER, "NVIDIA A40 datasheet values quoted on a reseller page", LIGHTNING),
        unverified=("sm_count",),
        notes=(
            "the substring a40 also matches RTX A4000 (Lightning, veRL)",
        ),
    ),
    Accelerator(
        name="RTX A6000", vendor="NVIDIA", architecture="Ampere GA102",
        nvml_names=("NVIDIA RTX A6000",),
        aliases=("RTX A6000",),
        tflops={
            "fp32": 38.7, "tf32": 77.4, "bf16": 154.8, "fp16": 154.8, "int8": 309.7,
        },
        sources=(TORCHTITAN, LIGHTNING),
        unverified=("mem_bandwidth_gb_s", "sm_count"),
        notes=(
            (
                "309.7 is the sparse bf16 number; Lightning lists 38.7 for bf16 (the non-tensor rate): 4x"
                " too low"
            ),
        ),
    ),
    Accelerator(
        name="A100 SXM 40GB", vendor="NVIDIA", architecture="Ampere GA100",
        nvml_names=("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PG509-200"),
        aliases=("A100-SXM4-40GB",),
        tflops={
            "fp64": 9.7, "fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312, "int8": 624,
        },
        sm_count=108, mig_sm_counts=GA100_MIG, peak_clock_hertz=1410e6,
        sources=(DRIVER, COMPOSER, STAS, LIGHTNING),
        notes=(
            (
                "SXM and PCIe have the same datasheet peak although the PCIe card is power-capped to "
                "250-300 W"
            ),
            "624 is the sparse bf16 number and the dense int8 one",
            (
                '"NVIDIA A100-PCIE-80GB" in llm.c is not a driver name: the real string is "NVIDIA A100 '
                '80GB PCIe"'
            ),
            "fp64 with tensor cores is 19.5",
        ),
    ),
    Accelerator(
        name="A100 SXM 80GB", vendor="NVIDIA", architecture="Ampere GA100",
        nvml_names=("NVIDIA A100-SXM4-80GB",),
        aliases=("A100-SXM4-80GB",),
        tflops={
            "fp64": 9.7, "fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312, "int8": 624,
        },
        sm_count=108, mig_sm_counts=GA100_MIG, peak_clock_hertz=1410e6,
        sources=(DRIVER, COMPOSER, STAS, LIGHTNING),
        notes=(
            (
                "SXM and PCIe have the same datasheet peak although the PCIe card is power-capped to "
                "250-300 W"
            ),
            "624 is the sparse bf16 number and the dense int8 one",
            (
                '"NVIDIA A100-PCIE-80GB" in llm.c is not a driver name: the real string is "NVIDIA A100 '
                '80GB PCIe"'
            ),
            "fp64 with tensor cores is 19.5",
        ),
    ),
    Accelerator(
        name="A100 PCIe 40GB", vendor="NVIDIA", architecture="Ampere GA100",
        nvml_names=("NVIDIA A100-PCIE-40GB",),
        aliases=("A100-PCIE-40GB",),
        tflops={
            "fp64": 9.7, "fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312, "int8": 624,
        },
        sm_count=108, mig_sm_counts=GA100_MIG, peak_clock_hertz=1410e6,
        sources=(DRIVER, COMPOSER, STAS, LIGHTNING),
        notes=(
            (
                "SXM and PCIe have the same datasheet peak although the PCIe card is power-capped to "
                "250-300 W"
            ),
            "624 is the sparse bf16 number and the dense int8 one",
            (
                '"NVIDIA A100-PCIE-80GB" in llm.c is not a driver name: the real string is "NVIDIA A100 '
                '80GB PCIe"'
            ),
            "fp64 with tensor cores is 19.5",
        ),
    ),
    Accelerator(
        name="A100 PCIe 80GB", vendor="NVIDIA", architecture="Ampere GA100",
        nvml_names=("NVIDIA A100 80GB PCIe",),
        aliases=("A100 80GB PCIe",),
        tflops={
            "fp64": 9.7, "fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312, "int8": 624,
        },
        sm_count=108, mig_sm_counts=GA100_MIG, peak_clock_hertz=1410e6,
        sources=(DRIVER, COMPOSER, STAS, LIGHTNING),
        notes=(
            (
                "SXM and PCIe have the same datasheet peak although the PCIe card is power-capped to "
                "250-300 W"
            ),
            "624 is the sparse bf16 number and the dense int8 one",
            (
                '"NVIDIA A100-PCIE-80GB" in llm.c is not a driver name: the real string is "NVIDIA A100 '
                '80GB PCIe"'
            ),
            "fp64 with tensor cores is 19.5",
        ),
    ),
    Accelerator(
        name="A100 SXM 64GB (custom)", vendor="NVIDIA", architecture="Ampere GA100",
        nvml_names=("NVIDIA A100-SXM-64GB",),
        sources=(DRIVER,),
        unverified=("all peaks",),
        notes=(
            (
                "a custom part with its own SM count and clocks; no peak read, report none until "
                "configured"
            ),
        ),
    ),
    Accelerator(
        name="A800 SXM", vendor="NVIDIA", architecture="Ampere GA100",
        nvml_names=("NVIDIA A800-SXM4-40GB", "NVIDIA A800-SXM4-80GB"),
        tflops={
            "fp64": 9.7, "fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312, "int8": 624,
        },
        sm_count=108, mig_sm_counts=GA100_MIG, peak_clock_hertz=1410e6,
        sources=(DRIVER, VERL),
        notes=(
            (
                "A100 compute, only NVLink is cut; torchtitan has no A800 branch and reaches 312 by its "
                "silent fallback"
            ),
        ),
    ),
    Accelerator(
        name="A800 PCIe", vendor="NVIDIA", architecture="Ampere GA100",
        nvml_names=("NVIDIA A800 80GB PCIe", "NVIDIA A800 80GB PCIe LC", "NVIDIA A800 40GB Active"),
        tflops={
            "fp64": 9.7, "fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312, "int8": 624,
        },
        sm_count=108, peak_clock_hertz=1410e6,
        sources=(DRIVER, VERL),
        unverified=("bandwidth of the 40GB Active",),
        notes=(
            "the 40GB Active is a workstation card; its peak was not verified separately",
        ),
    ),
    Accelerator(
        name="RTX 3090", vendor="NVIDIA", architecture="Ampere GA102",
        nvml_names=("NVIDIA GeForce RTX 3090",),
        aliases=("GeForce RTX 3090",),
        tflops={
            "fp32": 35.6, "tf32": 35.6, "bf16": 71, "fp16": 71, "int8": 284,
        },
        sources=(DRIVER, LLM_C, LIGHTNING),
        unverified=("sm_count",),
        notes=(
            (
                "GeForce halves tensor throughput with fp32 accumulation: 71 (what training uses); 142 is"
                " fp16 accumulation, 284 the sparse one"
            ),
            "Lightning lists 35.6 for bf16 (2x too low)",
            "public tables also list 142",
        ),
    ),
    Accelerator(
        name="RTX 4090", vendor="NVIDIA", architecture="Ada AD102",
        nvml_names=("NVIDIA GeForce RTX 4090",),
        tflops={
            "fp32": 82.6, "tf32": 82.6, "bf16": 165.2, "fp16": 165.2, "fp8": 330.3, "int8": 660.6,
        },
        sources=(DRIVER, LLM_C, ADA, LIGHTNING),
        unverified=("sm_count",),
        notes=(
            "165.2 with fp32 accumulation; 330.3 is fp16 accumulation or sparse fp32-accumulate",
            (
                "fp8 with fp32 accumulation is 330.3 (660.6 is fp16 accumulation); early whitepaper "
                "editions printed 660.6"
            ),
            "Lightning lists 82.6 for bf16 (2x too low), LLaMA-Factory 98",
            '"RTX 4090 D" and "RTX 4090 Laptop GPU" are other parts: exact match',
        ),
    ),
    Accelerator(
        name="RTX 4090 D", vendor="NVIDIA", architecture="Ada AD102",
        nvml_names=("NVIDIA GeForce RTX 4090 D",),
        sources=(DRIVER,),
        unverified=("all peaks", "mem_bandwidth_gb_s"),
        notes=(
            "export part with fewer SMs: no verified peak, report none",
        ),
    ),
    Accelerator(
        name="RTX 6000 Ada", vendor="NVIDIA", architecture="Ada AD102",
        nvml_names=("NVIDIA RTX 6000 Ada Generation",),
        tflops={
            "fp32": 91.1, "bf16": 364.25, "fp16": 364.25, "fp8": 728.5,
        },
        sources=(DRIVER,),
        unverified=("tf32", "mem_bandwidth_gb_s", "sm_count"),
        notes=(
            "the advertised 1457 TFLOPS is sparse fp8: dense fp8 728.5, dense bf16 364.25",
            (
                '"RTX 6000" alone is the Turing Quadro, "RTX A6000" the Ampere card, "RTX PRO 6000 '
                'Blackwell" a fourth part'
            ),
        ),
    ),
    Accelerator(
        name="L4", vendor="NVIDIA", architecture="Ada AD104",
        nvml_names=("NVIDIA L4",),
        tflops={
            "fp32": 30.3, "tf32": 60, "bf16": 121, "fp16": 121, "fp8": 242, "int8": 242,
        },
        sources=(DRIVER, LIGHTNING),
        unverified=("sm_count",),
        notes=(
            (
                "242 is the sparse bf16 number; the PyTorch inductor device table holds 242 and 485 as if"
                " dense"
            ),
            "any rule on the substring l4 also matches L40 and L40S (Lightning): 121 instead of 362",
            "72 W cap: sustained is far lower",
        ),
    ),
    Accelerator(
        name="L40", vendor="NVIDIA", architecture="Ada AD102",
        nvml_names=("NVIDIA L40",),
        tflops={
            "fp32": 90.5, "tf32": 90.5, "bf16": 181.05, "fp16": 181.05, "fp8": 362, "int8": 362,
        },
        sources=(DRIVER, VERL, LIGHTNING),
        unverified=("sm_count",),
        notes=(
            "half of the L40S although the chip is the same; some pages list 362",
        ),
    ),
    Accelerator(
        name="L40S", vendor="NVIDIA", architecture="Ada AD102",
        nvml_names=("NVIDIA L40S",),
        tflops={
            "fp32": 91.6, "tf32": 183, "bf16": 362.05, "fp16": 362.05, "fp8": 733, "int8": 733,
        },
        sources=(DRIVER, STAS, VERL),
        unverified=("sm_count",),
        notes=(
            "733 is the sparse bf16 number and the dense fp8 one; 1466 is sparse fp8",
            (
                'torchtitan tests "l40s" in lower case against "NVIDIA L40S", never matches and falls '
                "back to 312"
            ),
        ),
    ),
    Accelerator(
        name="L20", vendor="NVIDIA", architecture="Ada AD102",
        nvml_names=("NVIDIA L20",),
        tflops={
            "bf16": 119.5, "fp16": 119.5, "fp8": 239, "int8": 239,
        },
        sources=(DRIVER, "github volcengine/verl utils/flops_counter.py and public comparison tables"),
        unverified=("mem_bandwidth_gb_s", "memory"),
        notes=(
            "export part",
        ),
    ),
)  # fmt: skip
