"""NVIDIA accelerators before Turing that are still in use: dense peaks, exact names, sources."""

from flopwatch.accelerator import Accelerator
from flopwatch.peaks.sources import DGX_2, LINUX_VFIO, PASCAL

OLDEST: tuple[Accelerator, ...] = (
    Accelerator(
        name="P100 SXM2", vendor="NVIDIA", architecture="Pascal GP100",
        nvml_names=("Tesla P100-SXM2-16GB",),
        tflops={
            "fp64": 5.3, "fp32": 10.6, "fp16": 21.2,
        },
        peak_clock_hertz=1480e6,
        sources=(PASCAL,),
        notes=(
            "no tensor cores: fp16 is twice fp32, and a matmul with fp32 accumulation runs at the fp32 rate",
        ),
    ),
    Accelerator(
        name="P100 PCIe", vendor="NVIDIA", architecture="Pascal GP100",
        nvml_names=("Tesla P100-PCIE-16GB", "Tesla P100-PCIE-12GB"),
        tflops={
            "fp64": 4.7, "fp32": 9.3, "fp16": 18.7,
        },
        peak_clock_hertz=1300e6,
        sources=(PASCAL,),
        notes=(
            "the PCIe card boosts to 1300 MHz, the SXM2 module to 1480",
        ),
    ),
    Accelerator(
        name="V100 SXM3", vendor="NVIDIA", architecture="Volta",
        nvml_names=("Tesla V100-SXM3-32GB",),
        tflops={
            "fp16": 125,
        },
        sources=(LINUX_VFIO, DGX_2),
        unverified=("fp64", "fp32", "sm_count"),
        notes=(
            "the module of the DGX-2, 350 W: higher clocks than the SXM2's, the same stated peak",
            "no bf16 and no tf32 tensor path",
        ),
    ),
)  # fmt: skip
