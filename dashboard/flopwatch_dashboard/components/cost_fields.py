# ruff: noqa: E501 (a table)
"""The inputs of the cost model as a form has them: order, unit, and what is usual, with where that is known from."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One input."""

    table: str
    """``own``, ``cloud`` or ``efficiency``."""
    name: str
    unit: str
    """A text ``unit.<unit>``."""
    usual: tuple[str, str] | None = None
    """The published range, in the unit; None where none is known."""
    known_from: str = ""
    """A text ``range_source.<known_from>``."""
    basis: bool = False
    """One of several ways to give a price: shown only where it is the one that is given."""

    @property
    def setting(self) -> str:
        """Its name in the settings: ``own.capex_per_gpu``."""
        return f"{self.table}.{self.name}"


FIRST = (
    Field(table="cloud", name="price_per_gpu_hour", unit="per_gpu_hour", usual=("1.70", "5.00"), known_from="market", basis=True),
    Field(table="cloud", name="price_per_server_hour", unit="per_server_hour", usual=("16", "40"), known_from="market", basis=True),
    Field(table="cloud", name="price_per_server_month", unit="per_server_month", basis=True),
    Field(table="own", name="capex_per_gpu", unit="per_gpu", usual=("40,000", "65,000"), known_from="quotation", basis=True),
    Field(table="own", name="fixed_per_gpu_hour", unit="per_gpu_hour", usual=("0.80", "6.00"), known_from="model", basis=True),
    Field(table="own", name="rent_per_gpu_month", unit="per_gpu_month", basis=True),
    Field(table="own", name="rent_per_server_month", unit="per_server_month", basis=True),
    Field(table="own", name="gpus_per_server", unit="gpus", basis=True),
    Field(table="efficiency", name="own_mfu", unit="ratio", usual=("0.30", "0.50"), known_from="experience"),
    Field(table="efficiency", name="cloud_mfu", unit="ratio", usual=("0.30", "0.50"), known_from="experience"),
    Field(table="own", name="cost_of_capital", unit="ratio_year", usual=("0.08", "0.13"), known_from="provider"),
    Field(table="own", name="life_years", unit="years", usual=("3", "6"), known_from="provider"),
    Field(table="own", name="staff_fte", unit="fte", usual=("2", "4"), known_from="experience"),
)  # fmt: skip
SECTIONS: Mapping[str, tuple[Field, ...]] = {
    "capital": (
        Field(table="own", name="residual_ratio", unit="ratio", usual=("0", "0.35"), known_from="experience"),
        Field(table="own", name="resale_per_gpu", unit="per_gpu"),
        Field(table="own", name="remaining_years", unit="years"),
        Field(table="own", name="migration_once", unit="money"),
        Field(table="own", name="gpus", unit="gpus"),
    ),
    "site": (
        Field(table="own", name="staff_cost_per_fte", unit="per_year", usual=("150,000", "250,000"), known_from="experience"),
        Field(table="own", name="colo_kw_per_gpu", unit="kw", usual=("1.28", "1.79"), known_from="datasheet"),
        Field(table="own", name="colo_per_kw_month", unit="per_kw_month", usual=("110", "300"), known_from="colocation"),
        Field(table="own", name="maintenance_ratio", unit="ratio_year", usual=("0.02", "0.08"), known_from="model"),
        Field(table="own", name="other_per_gpu_year", unit="per_gpu_year"),
    ),
    "power": (
        Field(table="own", name="electricity_per_kwh", unit="per_kwh", usual=("0.06", "0.15"), known_from="colocation"),
        Field(table="own", name="pue", unit="factor", usual=("1.1", "1.6"), known_from="model"),
        Field(table="own", name="idle_kw_per_gpu", unit="kw", usual=("0.25", "0.35"), known_from="datasheet"),
        Field(table="own", name="busy_kw_per_gpu", unit="kw", usual=("0.95", "1.35"), known_from="datasheet"),
    ),
    "cloud": (
        Field(table="cloud", name="uplift_ratio", unit="ratio", usual=("0.05", "0.50"), known_from="market"),
        Field(table="cloud", name="billed_per_used", unit="factor", usual=("1.00", "1.15"), known_from="model"),
        Field(table="cloud", name="commitment_ratio", unit="ratio", usual=("0", "1"), known_from="definition"),
        Field(table="cloud", name="commitment_price_per_gpu_hour", unit="per_gpu_hour"),
    ),
    "efficiency": (
        Field(table="efficiency", name="own_goodput", unit="ratio", usual=("0.85", "0.97"), known_from="experience"),
        Field(table="efficiency", name="own_peak_tflops", unit="tflops"),
        Field(table="efficiency", name="cloud_goodput", unit="ratio", usual=("0.90", "0.98"), known_from="experience"),
        Field(table="efficiency", name="cloud_peak_tflops", unit="tflops"),
    ),
}  # fmt: skip
"""All but the first, by section."""
TABLES = ("own", "cloud", "efficiency")
FIELDS: Mapping[str, Field] = {
    field.setting: field for field in (*FIRST, *(field for fields in SECTIONS.values() for field in fields))
}
