"""What a reader must know beside the figures: what was not counted, what looks wrong, what is old or assumed."""

from collections.abc import Iterator
from datetime import date
from typing import Any, Literal

from flopwatch.answers.economy import PriceTag
from flopwatch.figure import FindingInfo
from flopwatch_collector.config_costs import BASES, CloudCosts, OwnCosts
from flopwatch_collector.economics.breakeven import list_price
from flopwatch_collector.economics.case import Case
from flopwatch_collector.economics.observed import PURCHASE_DAYS, Observed
from flopwatch_collector.economics.own import rent_per_gpu_hour

STALE_DAYS = 90
NOTED_BILL = 1.02
"""A ratio of billed to used hours that is worth setting."""
USUAL_FIXED = (0.8, 6.0)
"""Fixed cost of a GPU-hour outside of which an input is likely wrong; only of currencies of about a dollar."""
DOLLAR_LIKE = frozenset({"USD", "EUR", "GBP", "CHF", "CAD", "AUD", "SGD"})
_OPTIONAL = (
    "residual_ratio", "cost_of_capital", "colo_per_kw_month", "staff_fte", "maintenance_ratio", "electricity_per_kwh",
)  # fmt: skip
_CLOUD_UNITS = ("price_per_gpu_hour", "price_per_server_hour", "price_per_server_month")


def prices_of(case: Case, today: date) -> tuple[PriceTag, ...]:
    """The price that owning begins with, and the cloud's, each with its date and source."""
    tags = []
    for unit in BASES:
        value = getattr(case.own, unit)
        if value is not None:
            hourly = None if unit == "capex_per_gpu" else rent_per_gpu_hour(case.own)
            tags.append(_tag("own", unit, (value, hourly), case, today))
    if case.cloud is not None:
        unit = next(name for name in _CLOUD_UNITS if getattr(case.cloud, name) is not None)
        value = getattr(case.cloud, unit)
        tags.append(_tag("cloud", unit, (value, list_price(case.cloud)), case, today))
    return tuple(tags)


def _tag(
    side: Literal["own", "cloud"], unit: str, value: tuple[float, float | None], case: Case, today: date
) -> PriceTag:
    part: OwnCosts | CloudCosts = case.own if side == "own" or case.cloud is None else case.cloud
    age = None if part.price_date is None else (today - part.price_date).days
    return PriceTag(
        side=side,
        value=value[0],
        unit=unit,
        per_gpu_hour=value[1],
        currency=case.currency,
        date=None if part.price_date is None else part.price_date.isoformat(),
        source=part.price_source,
        term=part.price_term,
        tax_included=part.tax_included,
        age_days=age,
        stale=age is not None and age > STALE_DAYS,
    )


def notes_of(case: Case, seen: Observed, prices: tuple[PriceTag, ...]) -> tuple[FindingInfo, ...]:
    """All that applies, the weightiest first."""
    found = (
        *_of_history(seen), *_of_prices(prices), *_of_cost(case), *_of_efficiency(case), *_of_bill(case),
        *_of_line(case), *_of_resale(case),
    )  # fmt: skip
    return tuple(found)


def _note(code: str, text: str, **values: Any) -> FindingInfo:
    return FindingInfo(code=code, text=text, values=values)


def _of_history(seen: Observed) -> Iterator[FindingInfo]:
    if seen.enough_for_purchase is False:
        yield _note(
            "short_history",
            f"{seen.valid_days} valid days, state only: too short for a purchase, which takes {PURCHASE_DAYS}",
            valid_days=seen.valid_days,
            needed_days=PURCHASE_DAYS,
        )


def _of_prices(prices: tuple[PriceTag, ...]) -> Iterator[FindingInfo]:
    for tag in prices:
        if tag.date is None and tag.side == "cloud":
            yield _note("price_undated", "the cloud's price has no date: set price_date", side=tag.side)
        if tag.age_days is not None and tag.age_days < 0:
            text = f"the {tag.side} price is dated {tag.date}, which is to come"
            yield _note("price_in_future", text, side=tag.side, date=tag.date)
        if tag.stale:
            text = f"the {tag.side} price is stale: of {tag.date}, {tag.age_days} days old"
            yield _note("price_stale", text, side=tag.side, date=tag.date, age_days=tag.age_days)
    taxes = {tag.tax_included for tag in prices} - {None}
    if len(taxes) > 1:
        yield _note("tax_mixed", "tax is in one of the prices and not in the other")


def _of_cost(case: Case) -> Iterator[FindingInfo]:
    own, fixed = case.own, case.cost().fixed_per_gpu_hour
    if case.kind == "owned":
        missing = tuple(name for name in _OPTIONAL if getattr(own, name) is None)
        if missing:
            yield _note("not_counted", f"not given and not counted: {', '.join(missing)}", settings=missing)
    if own.electricity_per_kwh and own.pue is None and not own.colo_includes_power:
        yield _note("pue_unknown", "pue is not given: counted as 1, no overhead of cooling")
    if own.colo_includes_power and own.electricity_per_kwh:
        text = "colocation includes the power: electricity_per_kwh is not counted on top"
        yield _note("power_twice", text, electricity_per_kwh=own.electricity_per_kwh)
    low, high = USUAL_FIXED
    if case.currency in DOLLAR_LIKE and case.kind != "on_demand" and not low <= fixed <= high:
        text = f"a fixed cost of {fixed:.2f} per GPU-hour is unusual (usual: {low:g} to {high:g}): check the inputs"
        yield _note("fixed_unusual", text, fixed_per_gpu_hour=fixed, low=low, high=high)


def _of_efficiency(case: Case) -> Iterator[FindingInfo]:
    sides = case.ratio()
    if not case.has_line:
        return
    if sides.basis == "none":
        yield _note(
            "efficiency_unknown", "the cloud's MFU and goodput are not given: equal ones are taken (rho = 1)"
        )
    if sides.basis == "assumed":
        text = "the cloud's efficiency is assumed, not measured; the line at equal efficiency is beside it"
        yield _note("efficiency_assumed", text)
    told = [
        name for name in sides.one_sided if sides.cloud[name] is not None or sides.own_sources[name] == "file"
    ]
    for name in told:
        yield _note("one_sided", f"{name} is known on one side only and left out of rho", factor=name)


def _of_bill(case: Case) -> Iterator[FindingInfo]:
    """Whether the cloud's bill would have held more than what was used."""
    measured = case.measured.billed_per_used
    if measured is None or case.cloud is None or case.cloud.billed_per_used != 1.0:
        return
    if measured >= NOTED_BILL:
        text = f"leased over billable time was {measured:.3f}: a cloud bills it too (billed_per_used)"
        yield _note("billed_measured", text, billed_per_used=measured)


def _of_line(case: Case) -> Iterator[FindingInfo]:
    if case.kind == "on_demand":
        yield _note("on_demand", "on-demand capacity has no line: it is not paid for when it is let go")
        return
    if case.cloud is None:
        yield _note("no_cloud_price", "there is no cloud price to compare with: set [costs.cloud]")
        return
    below = case.breakeven().cheaper_below
    if below is not None:
        text = (
            f"up to a utilisation of {below:.1%} owning is cheaper as well: the commitment is paid for unused"
        )
        yield _note("cheaper_below", text, utilisation_ratio=below)


def _of_resale(case: Case) -> Iterator[FindingInfo]:
    own = case.own
    if case.kind != "owned" or not case.has_line:
        return
    if own.resale_per_gpu is None:
        text = "what a sale would bring is not given: keep or retire is without it (resale_per_gpu)"
        yield _note("resale_unknown", text)
        return
    left = (own.capex_per_gpu or 0.0) * (own.residual_ratio or 0.0)
    if own.resale_per_gpu < left:
        text = "a sale today would bring less than the residual at the end of life: check residual_ratio"
        yield _note("resale_below_residual", text, resale_per_gpu=own.resale_per_gpu, residual=left)
