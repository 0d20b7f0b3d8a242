"""What the NVLinks of a GPU carry at most, both directions together.

Sources: NVIDIA's data sheets of V100, A100, H100, H200, B200 and the A800, H800 and H20 as sold in China.
"""

from typing import Final

BYTES_PER_SECOND: Final[tuple[tuple[str, float], ...]] = (
    ("GB300", 1.8e12), ("GB200", 1.8e12), ("B300", 1.8e12), ("B200", 1.8e12), ("GH200", 900e9), ("H200", 900e9),
    ("H800", 400e9), ("H20", 900e9), ("H100", 900e9), ("A800", 400e9), ("A100-SXM", 600e9), ("A100-PG5", 600e9),
    ("V100-SXM", 300e9),
)  # fmt: skip
WITHOUT: Final = ("PCIe", "NVL")
"""Boards of the same chips with bridges or no links, of which the rate is another."""


def line_rate(gpu_model: str) -> float | None:
    """Bytes a second of all links of a GPU by its NVML name; None where it is not known."""
    if any(mark in gpu_model for mark in WITHOUT):
        return None
    return next((rate for mark, rate in BYTES_PER_SECOND if mark in gpu_model), None)
