"""Values of GPUs as people read them."""

from flopwatch_dashboard import wording

RATIOS = ("kernel_active_ratio", "tensor_active_ratio", "sm_active_ratio", "memory_used_ratio", "mfu_ratio")


def value_words(metric: str, value: float | None) -> str:
    """A value as people read it."""
    if metric in RATIOS:
        return wording.percent(value, 1 if metric == "mfu_ratio" else 0)
    if metric == "temperature_celsius":
        return wording.UNKNOWN if value is None else f"{value:.0f} °C"
    units = {"power_watts": "W", "sm_clock_hertz": "Hz", "nic_bytes_per_second": "B/s"}
    whole = metric == "power_watts" or (metric == "sm_clock_hertz" and (value or 0.0) < 1e9)
    return wording.si(value, units[metric], 0 if whole else 2)
