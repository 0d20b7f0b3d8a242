"""MFU of published training runs, recounted by the default convention over the dense peak of their number format.

By (model class, product, number format); the sources row by row stand in ``docs/mfu.md``.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRange:
    """Lowest and highest MFU of that many published rows."""

    rows: int
    low: float
    high: float


PUBLISHED: dict[tuple[str, str, str], PublishedRange] = {
    ("dense_20b_to_100b", "A100 SXM 80GB", "bf16"): PublishedRange(rows=10, low=0.351, high=0.552),
    ("dense_20b_to_100b", "GB200", "fp4"): PublishedRange(rows=3, low=0.200, high=0.220),
    ("dense_20b_to_100b", "GB200", "fp8"): PublishedRange(rows=7, low=0.311, high=0.391),
    ("dense_20b_to_100b", "GB300", "fp4"): PublishedRange(rows=4, low=0.204, high=0.222),
    ("dense_20b_to_100b", "GB300", "fp8"): PublishedRange(rows=9, low=0.374, high=0.472),
    ("dense_20b_to_100b", "H100 SXM", "bf16"): PublishedRange(rows=27, low=0.343, high=0.560),
    ("dense_20b_to_100b", "H100 SXM", "fp8"): PublishedRange(rows=34, low=0.271, high=0.410),
    ("dense_3b_to_20b", "A100 SXM 80GB", "bf16"): PublishedRange(rows=26, low=0.297, high=0.617),
    ("dense_3b_to_20b", "B200 (HGX/DGX)", "fp8"): PublishedRange(rows=1, low=0.350, high=0.350),
    ("dense_3b_to_20b", "GB200", "fp8"): PublishedRange(rows=2, low=0.323, high=0.324),
    ("dense_3b_to_20b", "GB300", "fp8"): PublishedRange(rows=1, low=0.387, high=0.387),
    ("dense_3b_to_20b", "H100 SXM", "bf16"): PublishedRange(rows=42, low=0.181, high=0.605),
    ("dense_3b_to_20b", "H100 SXM", "fp8"): PublishedRange(rows=28, low=0.271, high=0.420),
    ("dense_above_100b", "A100 SXM 80GB", "bf16"): PublishedRange(rows=27, low=0.104, high=0.654),
    ("dense_above_100b", "B200 (HGX/DGX)", "fp8"): PublishedRange(rows=2, low=0.371, high=0.372),
    ("dense_above_100b", "GB200", "bf16"): PublishedRange(rows=8, low=0.379, high=0.442),
    ("dense_above_100b", "GB200", "fp4"): PublishedRange(rows=5, low=0.272, high=0.299),
    ("dense_above_100b", "GB200", "fp8"): PublishedRange(rows=13, low=0.273, high=0.436),
    ("dense_above_100b", "GB300", "fp4"): PublishedRange(rows=4, low=0.224, high=0.240),
    ("dense_above_100b", "GB300", "fp8"): PublishedRange(rows=11, low=0.470, high=0.529),
    ("dense_above_100b", "H100 SXM", "bf16"): PublishedRange(rows=22, low=0.278, high=0.532),
    ("dense_above_100b", "H100 SXM", "fp8"): PublishedRange(rows=28, low=0.226, high=0.424),
    ("dense_below_3b", "A100 SXM 80GB", "bf16"): PublishedRange(rows=74, low=0.265, high=0.627),
    ("dense_below_3b", "H100 SXM", "bf16"): PublishedRange(rows=26, low=0.151, high=0.456),
    ("dense_below_3b", "H100 SXM", "fp8"): PublishedRange(rows=5, low=0.095, high=0.285),
    ("mixture", "B200 (HGX/DGX)", "fp8"): PublishedRange(rows=13, low=0.050, high=0.192),
    ("mixture", "B300 (HGX/DGX)", "fp8"): PublishedRange(rows=9, low=0.087, high=0.208),
    ("mixture", "GB200", "bf16"): PublishedRange(rows=7, low=0.099, high=0.463),
    ("mixture", "GB200", "fp8"): PublishedRange(rows=25, low=0.105, high=0.327),
    ("mixture", "GB300", "bf16"): PublishedRange(rows=1, low=0.363, high=0.363),
    ("mixture", "GB300", "fp8"): PublishedRange(rows=27, low=0.132, high=0.330),
    ("mixture", "H100 SXM", "bf16"): PublishedRange(rows=16, low=0.165, high=0.454),
    ("mixture", "H100 SXM", "fp8"): PublishedRange(rows=24, low=0.059, high=0.291),
    ("mixture", "H800 SXM", "bf16"): PublishedRange(rows=3, low=0.389, high=0.389),
}
