"""The worked examples: a fleet without time value, and one with interest and an efficiency gap."""

from typing import Any

from flopwatch_collector.config_costs import CloudCosts, EfficiencySettings, OwnCosts
from flopwatch_collector.economics.case import Case

ONE: dict[str, Any] = {
    "gpus": 128.0, "capex_per_gpu": 40_000.0, "life_years": 4.0, "residual_ratio": 0.10, "cost_of_capital": 0.0,
    "colo_kw_per_gpu": 1.3, "colo_per_kw_month": 150.0, "staff_fte": 2.0, "staff_cost_per_fte": 200_000.0,
    "maintenance_ratio": 0.04, "electricity_per_kwh": 0.10, "pue": 1.3, "idle_kw_per_gpu": 0.30,
    "busy_kw_per_gpu": 1.10,
}  # fmt: skip
TWO: dict[str, Any] = {
    "gpus": 256.0, "capex_per_gpu": 45_000.0, "life_years": 5.0, "residual_ratio": 0.15, "cost_of_capital": 0.10,
    "colo_kw_per_gpu": 1.3, "colo_per_kw_month": 180.0, "staff_fte": 4.0, "staff_cost_per_fte": 180_000.0,
    "maintenance_ratio": 0.05, "other_per_gpu_year": 600.0, "electricity_per_kwh": 0.12, "pue": 1.35,
    "idle_kw_per_gpu": 0.35, "busy_kw_per_gpu": 1.15,
}  # fmt: skip
GAP: dict[str, Any] = {
    "own_mfu": 0.32, "own_goodput": 0.90, "own_peak_tflops": 989.4, "cloud_mfu": 0.40, "cloud_goodput": 0.95,
    "cloud_peak_tflops": 989.4,
}  # fmt: skip


def first(price: float = 3.0, **changes: Any) -> Case:
    """Example 1 at a cloud price, with other own costs where given."""
    own = OwnCosts(**{**ONE, **changes})
    return Case(gpus=own.gpus, own=own, cloud=CloudCosts(price_per_gpu_hour=price))


def second(**efficiency: Any) -> Case:
    """Example 2, with other efficiencies where given."""
    cloud = CloudCosts(price_per_gpu_hour=2.80, uplift_ratio=0.15, billed_per_used=1.10)
    return Case(
        gpus=256.0, own=OwnCosts(**TWO), cloud=cloud, efficiency=EfficiencySettings(**{**GAP, **efficiency})
    )
