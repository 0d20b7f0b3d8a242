"""NVIDIA accelerators from Hopper on: dense peaks, exact names, sources."""

from flopwatch.accelerator import Accelerator
from flopwatch.peaks.sources import (
    ADA,
    COMPOSER,
    DGXC,
    DRIVER,
    HGX,
    KLOCKWOOD,
    LIGHTNING,
    LLM_C,
    RTX_PRO,
    STAS,
    TORCHTITAN,
    VERL,
)

H100_80GB_MIG = {"1g.10gb": 16, "1g.20gb": 26, "2g.20gb": 32, "3g.40gb": 60, "4g.40gb": 64, "7g.80gb": 132}
"""SMs by profile, as ``nvidia-smi mig -lgip`` prints them on an H100 80GB."""

NEWER: tuple[Accelerator, ...] = (
    Accelerator(
        name="RTX PRO 6000 Blackwell Workstation", vendor="NVIDIA", architecture="Blackwell GB202",
        nvml_names=("NVIDIA RTX PRO 6000 Blackwell Workstation Edition",),
        tflops={
            "fp32": 126, "tf32": 251.9, "bf16": 503.8, "fp16": 503.8, "fp8": 1007.6, "fp4": 2015.2,
        },
        sm_count=188, peak_clock_hertz=2617e6,
        sources=(RTX_PRO,),
        notes=(
            "full rate with fp32 accumulation, unlike the RTX 5090 of the same chip",
            "4000 AI TOPS is sparse fp4; public tables that say 1000 for bf16 are sparse",
        ),
    ),
    Accelerator(
        name="RTX PRO 6000 Blackwell Max-Q and Server", vendor="NVIDIA", architecture="Blackwell GB202",
        nvml_names=(
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        ),
        sources=(RTX_PRO,),
        unverified=("all peaks",),
        notes=(
            "other clocks than the Workstation Edition's: public tables say 440 to 500 for bf16, 960 or 1021 sparse",
        ),
    ),
    Accelerator(
        name="RTX 5090", vendor="NVIDIA", architecture="Blackwell GB202",
        nvml_names=("NVIDIA GeForce RTX 5090",),
        tflops={
            "fp32": 104.8, "bf16": 209.5, "fp16": 209.5, "fp4": 1676,
        },
        sources=(DRIVER, ADA),
        unverified=("tf32", "fp8", "int8", "sm_count"),
        notes=(
            (
                "209.5 with fp32 accumulation, 419 with fp16 accumulation or with sparsity; the "
                "advertised 3352 AI TOPS is sparse fp4"
            ),
        ),
    ),
    Accelerator(
        name="H100 SXM", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H100 80GB HBM3",),
        tflops={
            "fp64": 34, "fp32": 67, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1979,
        },
        sm_count=132, mig_sm_counts=H100_80GB_MIG, peak_clock_hertz=1830e6,
        sources=(DRIVER, STAS, COMPOSER, LIGHTNING, LLM_C),
        notes=(
            (
                "132 SMs x 4096 FLOP/clk x 1830 MHz = 989.4; NVML max SM clock is higher (1980), so a "
                "boosted run can exceed the datasheet rate"
            ),
            (
                "1979 is sparse bf16 AND dense fp8: the most common 2x error (inductor device table lists"
                " 1979 for bf16)"
            ),
            "the preliminary whitepaper said 1000",
            "fp64 with tensor cores is 67",
        ),
    ),
    Accelerator(
        name="H100 SXM (other HBM)", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H100",),
        tflops={
            "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1979,
        },
        peak_clock_hertz=1830e6,
        sources=(DRIVER, TORCHTITAN),
        unverified=("assignment of the name to this part", "fp64", "fp32", "sm_count"),
        notes=(
            (
                'plain "NVIDIA H100" (device id 2339) is a 96 GB HBM2e SXM part (torchtitan docs: 2.4 '
                "TB/s, run at 500 W); composer returns 0 for it"
            ),
            "power limit changes what is reachable, not the peak",
        ),
    ),
    Accelerator(
        name="H100 PCIe", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H100 PCIe",),
        tflops={
            "fp64": 25.6, "fp32": 51.2, "tf32": 378, "bf16": 756.5, "fp16": 756.5, "fp8": 1513, "int8": 1513,
        },
        sources=(DRIVER, STAS, COMPOSER, LIGHTNING, LLM_C),
        unverified=("sm_count",),
        notes=(
            "using the SXM 989 here under-reports MFU by 24 %",
            "1513 is sparse bf16 and dense fp8",
            "preliminary whitepaper said 800",
            "350 W cap",
        ),
    ),
    Accelerator(
        name="H100 NVL", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H100 NVL",),
        tflops={
            "fp64": 30, "fp32": 60, "tf32": 417.5, "bf16": 835.5, "fp16": 835.5, "fp8": 1670.5, "int8": 1670.5,
        },
        sources=(DRIVER, LIGHTNING, TORCHTITAN),
        unverified=("sm_count",),
        notes=(
            "1671 and 3341 in listings are sparse",
            "some pages list the NVL as a pair of cards (doubled)",
            "stas00 says same FLOPS as H100: not so per board (835.5)",
            "torchtitan once divided SXM 405B runs by 835",
        ),
    ),
    Accelerator(
        name="H800 SXM", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H800",),
        tflops={
            "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1979,
        },
        peak_clock_hertz=1830e6,
        sources=(DRIVER, VERL),
        unverified=("fp32", "tf32", "sm_count"),
        notes=(
            "only NVLink (400 GB/s) and fp64 are cut; DeepSeek-V3 MFU reproduces with 989",
        ),
    ),
    Accelerator(
        name="H800 PCIe", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H800 PCIe",),
        sources=(DRIVER,),
        unverified=("all peaks", "mem_bandwidth_gb_s"),
        notes=(
            "756 only from third-party tables",
        ),
    ),
    Accelerator(
        name="H800 NVL", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H800 NVL",),
        sources=(DRIVER,),
        unverified=("all peaks",),
        notes=(
            (
                "one public table lists 989 for it, which is above the H100 NVL: not credible, report "
                "none"
            ),
        ),
    ),
    Accelerator(
        name="H20", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H20", "NVIDIA H20 NVL16", "NVIDIA H20-3e"),
        tflops={
            "fp64": 1, "fp32": 44, "tf32": 74, "bf16": 148, "fp16": 148, "fp8": 296, "int8": 296,
        },
        sources=(DRIVER, "public H20 specification tables and torchtitan comment (press report)", TORCHTITAN, VERL),
        unverified=("H20-3e peak and bandwidth", "sm_count"),
        notes=(
            (
                "148, one seventh of an H100, with a name that is a prefix of nothing but that h200 rules"
                " must not swallow: test H200 before H20 or match exactly"
            ),
            (
                "the PCI database names can contain GH100: torchtitan lspci rule turns it into an H100 "
                "(989)"
            ),
            "H20-3e (141 GB) is assumed to have the same compute",
        ),
    ),
    Accelerator(
        name="H200 SXM", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H200",),
        tflops={
            "fp64": 34, "fp32": 67, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1979,
        },
        peak_clock_hertz=1830e6,
        sources=(DRIVER, STAS, COMPOSER, LIGHTNING),
        unverified=("sm_count",),
        notes=(
            "same compute as H100 SXM",
            'Lightning needs "sxm1" in the name and returns nothing for "NVIDIA H200"',
            "several pages present 1979 as dense bf16",
        ),
    ),
    Accelerator(
        name="H200 NVL", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA H200 NVL",),
        tflops={
            "fp64": 30, "fp32": 60, "tf32": 417.5, "bf16": 835.5, "fp16": 835.5, "fp8": 1670.5, "int8": 1670.5,
        },
        sources=(DRIVER, LIGHTNING),
        unverified=("exact decimals", "sm_count"),
        notes=(
            "Lightning lists 840, nanochat 836; composer gives it 989",
        ),
    ),
    Accelerator(
        name="GH200 96GB", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA GH200 480GB", "NVIDIA GH200 120GB"),
        tflops={
            "fp64": 34, "fp32": 67, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1979,
        },
        peak_clock_hertz=1830e6,
        sources=(DRIVER, STAS),
        unverified=("sm_count",),
        notes=(
            "the number in the name is the CPU memory (480 or 120 GB LPDDR), not HBM",
            "contains the substring H200 (composer gets the right peak by luck)",
            "superchip power is shared with the CPU",
        ),
    ),
    Accelerator(
        name="GH200 144GB", vendor="NVIDIA", architecture="Hopper GH100",
        nvml_names=("NVIDIA GH200 144G HBM3e",),
        tflops={
            "fp64": 34, "fp32": 67, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1979,
        },
        peak_clock_hertz=1830e6,
        sources=(DRIVER, STAS),
        unverified=("mem_bandwidth_gb_s", "sm_count"),
    ),
    Accelerator(
        name="B100", vendor="NVIDIA", architecture="Blackwell GB100",
        nvml_names=("NVIDIA B100",),
        unverified=("all peaks", "nvml_names", "memory", "mem_bandwidth_gb_s"),
        notes=(
            (
                "no primary source read. Third-party tables disagree (1750 and 1800 for bf16). Not in the"
                " driver name list: treat as unknown"
            ),
        ),
    ),
    Accelerator(
        name="B200 (HGX/DGX)", vendor="NVIDIA", architecture="Blackwell GB100",
        nvml_names=("NVIDIA B200",),
        tflops={
            "fp64": 40, "fp32": 80, "tf32": 1125, "bf16": 2250, "fp16": 2250, "fp8": 4500, "fp4": 9000, "int8": 4500,
        },
        sources=(DRIVER, STAS, KLOCKWOOD, HGX, TORCHTITAN, VERL),
        unverified=("sm_count",),
        notes=(
            "4500 is sparse bf16 and dense fp8; 9000 sparse fp8 and dense fp4",
            "memory 180 usable of 192; bandwidth 7.7 in newer tables",
            '"GB200" contains "B200": test GB200 first',
        ),
    ),
    Accelerator(
        name="GB200", vendor="NVIDIA", architecture="Blackwell GB100",
        nvml_names=("NVIDIA GB200",),
        tflops={
            "fp64": 40, "fp32": 80, "tf32": 1250, "bf16": 2500, "fp16": 2500, "fp8": 5000, "fp4": 10000, "int8": 5000,
        },
        sources=(DRIVER, STAS, KLOCKWOOD, HGX, TORCHTITAN, VERL),
        notes=(
            "NVIDIA own recipes divide by 2450/4900/9800: 2 % difference",
            "per GPU, not per superchip (two GPUs)",
            "NVML name does not tell NVL72 from NVL4 or the 1000-1200 W configurable cap",
        ),
    ),
    Accelerator(
        name="B300 (HGX/DGX)", vendor="NVIDIA", architecture="Blackwell Ultra",
        nvml_names=("NVIDIA B300 SXM6 AC",),
        tflops={
            "fp32": 80, "tf32": 1125, "bf16": 2250, "fp16": 2250, "fp8": 4500,
        },
        sources=(DRIVER, STAS, DGXC),
        unverified=("fp4", "fp64"),
        notes=(
            "fp4 appears as 12600, 13125, 13500, 15000 in different tables",
            "int8 is crippled on Blackwell Ultra in some NVIDIA tables and 4500 in others: left empty",
            'the NVML string has a suffix: "B300 SXM6 AC"',
        ),
    ),
    Accelerator(
        name="GB300", vendor="NVIDIA", architecture="Blackwell Ultra",
        nvml_names=("NVIDIA GB300",),
        tflops={
            "fp32": 80, "tf32": 1250, "bf16": 2500, "fp16": 2500, "fp8": 5000, "fp4": 15000,
        },
        sources=(DRIVER, STAS, TORCHTITAN, DGXC),
        unverified=("fp64",),
        notes=(
            "dgxc recipes use 2450/4900/14700",
        ),
    ),
)  # fmt: skip
