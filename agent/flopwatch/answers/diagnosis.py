"""Why a run is slow: causes with the figures that speak for and against each, and what to do next."""

from dataclasses import dataclass
from typing import Literal

Confidence = Literal["high", "medium", "low", "info"]
"""``info``: normal or worth knowing, no fault."""
DiagnosisCode = Literal[
    "insufficient_data", "hang", "checkpoint_stall", "data_stall", "throttled", "power_capped", "straggler_gpu",
    "straggler_node", "straggler_link", "one_of_the_nodes", "imbalance", "host_pauses", "communication_bandwidth",
    "communication_waiting", "pipeline_bubble", "launch_bound", "memory_bandwidth", "under_filled", "uneven_gpus",
    "recompute", "wrong_peak", "step_time_rose", "step_time_drifts", "slower_layout", "slower_nodes", "healthy",
    "unexplained", "periodic_pauses",
]  # fmt: skip
Unit = Literal["ratio", "seconds", "hertz", "watts", "bytes_per_second", "count", "text"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """One piece of evidence: what was seen, and what it is held against."""

    code: str
    """A code of the interface's text table, ``sign.<code>``."""
    value: float | str | None = None
    unit: Unit = "ratio"
    reference: float | None = None
    """The level or the peers' usual that it is held against."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """One likely cause."""

    code: DiagnosisCode
    confidence: Confidence
    evidence: tuple[Sign, ...] = ()
    against: tuple[Sign, ...] = ()
    """What speaks against it."""
    missing: tuple[str, ...] = ()
    """Signals that would decide and are not there: ``signal.<name>`` in the text table."""
    subject: str | None = None
    """The node, GPU or rank concerned; ``None`` where nobody is named."""
    lost_ratio: float | None = None
    """Share of the run's GPU time that it explains; x 3,600 is seconds of each GPU-hour. ``None``: not known."""
