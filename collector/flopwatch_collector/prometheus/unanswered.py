"""What Prometheus cannot say: the same answers as a collector's, with everything of it unknown, and the reasons."""

from flopwatch.query import LEDGER_CLASSES, ClassAmount, Ledger, MfuFigure, Tile, Verdict

UNAVAILABLE = ("steps", "mfu", "ledger", "money", "verdict", "alert_history")
"""Codes of ``Status.unavailable`` that hold for every site: none of it follows from samples of hardware."""
NO_TENSOR, NO_GPUS = "tensor_activity", "gpus"
"""Codes for what this site's exporters do not give."""
DAYS_NEEDED = 14
"""Valid days that a verdict needs."""
NOTHING = Tile(value=None, reference=None, spark=())


def no_ledger(start: float, end: float) -> Ledger:
    """A ledger of no capacity, so that nothing can be read from it."""
    empty = tuple(
        ClassAmount(name=name, gpu_milliseconds=0, money=None, buckets={}) for name in LEDGER_CLASSES
    )
    return Ledger(
        start_seconds=start,
        end_seconds=end,
        provisional_from_seconds=None,
        capacity_gpu_milliseconds=0,
        classes=empty,
        waste_gpu_milliseconds=0,
        waste_money=None,
        billable_ratio=None,
        billable_upper_ratio=None,
        allocated_ratio=None,
        unknown_ratio=None,
    )


def no_verdict(line_ratio: float) -> Verdict:
    """Not enough data for a verdict."""
    return Verdict(
        code="insufficient_data",
        line_ratio=line_ratio,
        line_source="default",
        mean_30d_ratio=None,
        valid_days=0,
        days_above=0,
        days_total=0,
        sustained=False,
        days_in_state=DAYS_NEEDED,
        cost_at_mean=None,
        cost_at_line=None,
    )


def no_mfu(gpus: int, gpu_model: str | None) -> MfuFigure:
    """No MFU: there are no steps."""
    return MfuFigure(
        value_ratio=None,
        palm_ratio=None,
        convention="causal",
        basis=None,
        reason="no_steps",
        flops_per_token=None,
        palm_flops_per_token=None,
        tokens_per_second=None,
        gpus=gpus,
        gpus_basis="observed",
        gpus_observed=gpus,
        gpu_model=gpu_model,
        peak_flops=None,
        peak_source=None,
        dtype=None,
        dtype_basis=None,
        shape_origin=None,
        steps=0,
        window_start_seconds=None,
        window_end_seconds=None,
    )
