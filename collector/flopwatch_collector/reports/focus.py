"""A period as FOCUS cost and usage, so that finance tools take it. Pure.

FinOps Open Cost and Usage Specification 1.2 and 1.3: all mandatory columns of both (those of 1.2 that 1.3 deprecates
too), and the conditional ones that apply to an own cluster. A row is a job and a calendar day: what its leases
cost (``Usage``), and what the platform lost of them (``Credit``, negative). Capacity that nobody held is a row
a cluster and day, so that the rows add up to what the whole fleet cost.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal

from flopwatch_collector.reports.tables import Row, csv_text, utc

HOUR_MILLISECONDS = 3_600_000.0
UNIT = "GPU-Hours"
PROVIDER = "Internal GPU platform"
SERVICE = "GPU training cluster"
Kind = Literal["string", "decimal", "datetime", "json"]


class NoPrice(ValueError):
    """FOCUS knows no unknown cost, and the period has GPU time without a price."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """What the specification asks of a column."""

    kind: Kind = "string"
    nullable: bool = True
    allowed: tuple[str, ...] = ()


_TEXT, _COST = Column(nullable=False), Column(kind="decimal", nullable=False)
_TIME, _NUMBER = Column(kind="datetime", nullable=False), Column(kind="decimal")
COLUMNS: Mapping[str, Column] = {
    "BilledCost": _COST, "BillingAccountId": _TEXT, "BillingAccountName": Column(), "BillingAccountType": Column(),
    "BillingCurrency": _TEXT, "BillingPeriodEnd": _TIME, "BillingPeriodStart": _TIME,
    "ChargeCategory": Column(nullable=False, allowed=("Usage", "Purchase", "Tax", "Credit", "Adjustment")),
    "ChargeClass": Column(allowed=("Correction",)), "ChargeDescription": Column(),
    "ChargeFrequency": Column(nullable=False, allowed=("One-Time", "Recurring", "Usage-Based")),
    "ChargePeriodEnd": _TIME, "ChargePeriodStart": _TIME, "ConsumedQuantity": _NUMBER, "ConsumedUnit": Column(),
    "ContractedCost": _COST, "ContractedUnitPrice": _NUMBER, "EffectiveCost": _COST, "HostProviderName": _TEXT,
    "InvoiceId": Column(), "InvoiceIssuerName": _TEXT, "ListCost": _COST, "ListUnitPrice": _NUMBER,
    "PricingCategory": Column(allowed=("Standard", "Dynamic", "Committed", "Other")), "PricingQuantity": _NUMBER,
    "PricingUnit": Column(), "ProviderName": _TEXT, "PublisherName": _TEXT, "RegionId": Column(),
    "RegionName": Column(), "ResourceId": Column(), "ResourceName": Column(), "ResourceType": Column(),
    "ServiceCategory": _TEXT, "ServiceName": _TEXT, "ServiceProviderName": _TEXT,
    "ServiceSubcategory": _TEXT, "SubAccountId": Column(), "SubAccountName": Column(), "SubAccountType": Column(),
    "Tags": Column(kind="json"),
}  # fmt: skip
"""Names, kinds and nullability as specified. Quantities and unit prices are null only where the charge is a credit."""
QUANTITIES = (
    "PricingQuantity",
    "PricingUnit",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ListUnitPrice",
    "ContractedUnitPrice",
)
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """What one job, or capacity that nobody held (``job_id`` None), came to in a stretch of one day."""

    start_seconds: float
    end_seconds: float
    cluster: str
    job_id: str | None
    job_name: str | None = None
    user: str | None = None
    account: str | None = None
    kind: str | None = None
    leased: bool = True
    gpu_milliseconds: int
    cost: float | None
    credit_gpu_milliseconds: int = 0
    credit: float | None = 0.0
    """0 or less."""


def rows_of(charges: Iterable[Charge], currency: str, zone: tzinfo, *, simulated: bool) -> list[Row]:
    """FOCUS rows.

    Raises:
        NoPrice: a charge has no known cost.
    """
    result: list[Row] = []
    for charge in charges:
        if charge.cost is None or charge.credit is None:
            raise NoPrice(
                "FOCUS needs the cost of every GPU-hour: set costs.price_per_gpu_hour, [costs.own] or prices of all "
                "[[costs.group]]"
            )
        if charge.gpu_milliseconds:
            result.append(_usage(charge, currency, zone, simulated=simulated))
        if charge.credit_gpu_milliseconds:
            result.append(_credit(charge, currency, zone, simulated=simulated))
    return result


def _usage(charge: Charge, currency: str, zone: tzinfo, *, simulated: bool) -> Row:
    hours, cost = charge.gpu_milliseconds / HOUR_MILLISECONDS, charge.cost or 0.0
    what = (
        f"GPU time leased by {charge.job_name or charge.job_id}"
        if charge.leased
        else "GPU capacity nobody held"
    )
    return {
        **_shared(charge, currency, zone, simulated=simulated),
        **_costs(cost),
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ChargeDescription": ("SIMULATED: " if simulated else "") + what,
        "PricingCategory": "Standard",
        "PricingQuantity": hours,
        "PricingUnit": UNIT,
        "ConsumedQuantity": hours,
        "ConsumedUnit": UNIT,
        "ListUnitPrice": cost / hours,
        "ContractedUnitPrice": cost / hours,
    }


def _credit(charge: Charge, currency: str, zone: tzinfo, *, simulated: bool) -> Row:
    hours = charge.credit_gpu_milliseconds / HOUR_MILLISECONDS
    return {
        **_shared(charge, currency, zone, simulated=simulated),
        **_costs(charge.credit or 0.0),
        "ChargeCategory": "Credit",
        "ChargeFrequency": "One-Time",
        "ChargeDescription": ("SIMULATED: " if simulated else "")
        + f"Platform losses of {charge.job_name or charge.job_id}: {hours:.3f} GPU-hours",
    }


def _costs(amount: float) -> Row:
    return dict.fromkeys(("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"), amount)


def _shared(charge: Charge, currency: str, zone: tzinfo, *, simulated: bool) -> Row:
    begin, end = billing_period(charge.start_seconds, zone)
    tags = {"user": charge.user, "team": charge.account, "job_kind": charge.kind}
    known = {name: value for name, value in tags.items() if value is not None}
    return {
        "BillingAccountId": charge.cluster,
        "BillingAccountName": charge.cluster,
        "BillingAccountType": "Cluster",
        "BillingCurrency": currency,
        "BillingPeriodStart": utc(begin),
        "BillingPeriodEnd": utc(end),
        "ChargePeriodStart": utc(charge.start_seconds),
        "ChargePeriodEnd": utc(charge.end_seconds),
        "InvoiceIssuerName": PROVIDER,
        "ProviderName": PROVIDER,
        "PublisherName": PROVIDER,
        "ServiceProviderName": PROVIDER,
        "HostProviderName": PROVIDER,
        "ServiceName": SERVICE,
        "ServiceCategory": "Compute",
        "ServiceSubcategory": "Other (Compute)",
        "RegionId": charge.cluster,
        "RegionName": charge.cluster,
        "ResourceId": charge.job_id,
        "ResourceName": charge.job_name,
        "ResourceType": "Training job" if charge.job_id is not None else "GPU capacity",
        "SubAccountId": charge.account,
        "SubAccountName": charge.account,
        "SubAccountType": "Team" if charge.account is not None else None,
        "Tags": json.dumps(
            {**known, **({"simulated": "SIMULATED"} if simulated else {})}, ensure_ascii=False
        ),
    }


def billing_period(seconds: float, zone: tzinfo) -> tuple[float, float]:
    """(start, end) of the calendar month a time lies in."""
    day = datetime.fromtimestamp(seconds, tz=zone).date().replace(day=1)
    following = (day + timedelta(days=32)).replace(day=1)
    return _midnight(day, zone), _midnight(following, zone)


def _midnight(day: date, zone: tzinfo) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()


def problems(rows: Sequence[Row]) -> Iterator[str]:
    """Where rows break the specification: columns, kinds, null values, allowed values, costs without a quantity."""
    for number, row in enumerate(rows):
        unknown = [name for name in row if name not in COLUMNS and not name.startswith("x_")]
        yield from (f"row {number}: {name} is no FOCUS column" for name in unknown)
        for name, column in COLUMNS.items():
            problem = _problem(row.get(name), column)
            if problem:
                yield f"row {number}: {name} {problem}"
        if row.get("ChargeCategory") == "Usage":
            yield from (
                f"row {number}: {name} is null for usage" for name in QUANTITIES if row.get(name) is None
            )
        if not _CURRENCY.fullmatch(str(row.get("BillingCurrency"))):
            yield f"row {number}: BillingCurrency is no ISO 4217 code"


def _problem(value: object, column: Column) -> str | None:
    if value is None:
        return None if column.nullable else "is null"
    if column.kind == "decimal":
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        return None if is_number else "is no number"
    if not isinstance(value, str) or not value:
        return "is no text"
    if column.kind == "datetime":
        return None if _UTC.fullmatch(value) else "is no UTC time"
    if column.kind == "json":
        return None if isinstance(json.loads(value), dict) else "is no object"
    return None if not column.allowed or value in column.allowed else f"is {value!r}"


def csv_bytes(rows: Sequence[Row]) -> bytes:
    """FOCUS rows as CSV in UTF-8."""
    return csv_text(list(COLUMNS), rows).encode()
