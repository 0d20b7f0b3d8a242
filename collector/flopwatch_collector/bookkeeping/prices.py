"""What money and the line are made from."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """The price of a GPU-hour of capacity, and the utilisation it is held against."""

    price_per_gpu_hour: float | None = None
    line_ratio: float = 0.70
    line_source: Literal["default", "costs"] = "default"
