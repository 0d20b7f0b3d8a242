"""NVIDIA accelerators before Turing that are still in use: dense peaks, exact names, sources."""

from flopwatch.accelerator import Accelerator
from flopwatch.peaks.sources import DGX_2, LINUX_VFIO, PASCAL


def _p100(
    form: str, names: tuple[str, ...], peaks: tuple[float, float, float], megahertz: float
) -> Accelerator:
    """A P100 of a form; peaks in fp64, fp32 and fp16 at the boost clock."""
    return Accelerator(
        name=f"P100 {form}", vendor="NVIDIA", architecture="Pascal GP100", nvml_names=names,
        tflops=dict(zip(("fp64", "fp32", "fp16"), peaks, strict=True)),
        peak_clock_hertz=megahertz * 1e6, sources=(PASCAL,),
        notes=("no tensor cores: a matmul in fp16 with fp32 accumulation runs at the fp32 rate",),
    )  # fmt: skip


OLDEST: tuple[Accelerator, ...] = (
    _p100("SXM2", ("Tesla P100-SXM2-16GB",), (5.3, 10.6, 21.2), 1480),
    _p100("PCIe", ("Tesla P100-PCIE-16GB", "Tesla P100-PCIE-12GB"), (4.7, 9.3, 18.7), 1300),
    Accelerator(
        name="V100 SXM3", vendor="NVIDIA", architecture="Volta", nvml_names=("Tesla V100-SXM3-32GB",),
        tflops={"fp16": 125}, sources=(LINUX_VFIO, DGX_2), unverified=("fp64", "fp32", "sm_count"),
        notes=("the module of the DGX-2, 350 W; no bf16 and no tf32 tensor path",),
    ),
)  # fmt: skip
