"""How far each input moves the line: the tornado, the table by capex and price, and the size of the fleet."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from flopwatch.answers.economy import PriceTable, Sensitivity, SizeRow, Variation
from flopwatch_collector.economics.breakeven import list_price
from flopwatch_collector.economics.case import Case
from flopwatch_collector.economics.own import HOURS_PER_YEAR

SIZES = (16, 32, 64, 100, 128, 256, 1024)
CAPEX_FACTORS = (0.75, 1.0, 1.25)
PRICE_FACTORS = (0.6, 0.8, 1.0, 1.25, 1.5, 2.0)
Changes = tuple[tuple[str, Callable[[float], float]], ...]


def _times(factor: float) -> Callable[[float], float]:
    return lambda base: base * factor


def _plus(years: float) -> Callable[[float], float]:
    return lambda base: base + years


def _is(value: float) -> Callable[[float], float]:
    return lambda _: value


_FIFTH: Changes = (("-20%", _times(0.8)), ("+20%", _times(1.2)))
_DOUBLE: Changes = (("x0.5", _times(0.5)), ("x2", _times(2.0)))
_OWN: tuple[tuple[str, Changes], ...] = (
    ("cost_of_capital", (("=8%", _is(0.08)), ("=13%", _is(0.13)))),
    ("life_years", (("-1", _plus(-1.0)), ("+1", _plus(1.0)), ("+2", _plus(2.0)))),
    ("staff_fte", _DOUBLE),
    ("capex_per_gpu", _FIFTH),
    ("fixed_per_gpu_hour", _FIFTH),
    ("rent_per_gpu_month", _FIFTH),
    ("rent_per_server_month", _FIFTH),
    ("residual_ratio", (("=0%", _is(0.0)), ("=30%", _is(0.30)))),
    ("maintenance_ratio", _DOUBLE),
    ("other_per_gpu_year", _DOUBLE),
    ("electricity_per_kwh", _DOUBLE),
    ("colo_per_kw_month", (("-20%", _times(0.8)), ("+33%", _times(4.0 / 3.0)))),
    ("pue", (("=1.1", _is(1.1)), ("=1.6", _is(1.6)))),
)
"""What is changed and how; the ranges are those that such inputs have in practice."""
_OF_CAPITAL = frozenset({"cost_of_capital", "life_years", "residual_ratio"})


def sensitivity(case: Case) -> tuple[Sensitivity, ...]:
    """Every input's effect on U*, the strongest first: by the largest change of the line, also beyond 1."""
    rows = [row for row in _rows(case) if row.variations]
    return tuple(sorted(rows, key=lambda row: -(math.inf if row.swing is None else row.swing)))


def _rows(case: Case) -> Iterator[Sensitivity]:
    price = list_price(case.cloud) if case.cloud is not None else 0.0
    yield _row("cloud_price_per_gpu_hour", price, _FIFTH, case, _priced(case, price))
    ratio = case.ratio().ratio
    yield _row(
        "efficiency_ratio", ratio, _FIFTH, case, lambda x: case.breakeven(efficiency_ratio=x).threshold
    )
    billed = case.cloud.billed_per_used if case.cloud is not None else 1.0
    yield _row("billed_per_used", billed, (("+15%", _times(1.15)),), case, _billed(case))
    for name, changes in _OWN:
        base = getattr(case.own, name)
        if name in _OF_CAPITAL and case.own.capex_per_gpu is not None:
            base = base or 0.0
        if base is not None:
            yield _row(name, base, changes, case, _owned(case, name))


def _row(
    name: str, base: float, changes: Changes, case: Case, threshold: Callable[[float], float | None]
) -> Sensitivity:
    usual = case.breakeven().threshold
    variations, swings = [], []
    for word, change in changes:
        value = change(base)
        line = threshold(value) if not math.isclose(value, base, rel_tol=1e-12) else None
        if line is None:
            continue
        star = line if line <= 1.0 else None
        delta = line - usual if line <= 1.0 and usual <= 1.0 else None
        variations.append(Variation(change=word, value=value, u_star=star, delta=delta))
        swings.append(0.0 if line == usual else abs(line - usual))
    largest = max(swings, default=0.0)
    return Sensitivity(
        parameter=name,
        base=base,
        variations=tuple(variations),
        swing=largest if math.isfinite(largest) else None,
    )


def _priced(case: Case, base: float) -> Callable[[float], float | None]:
    """The line at another price of pay per use; a commitment keeps its own."""

    def threshold(price: float) -> float | None:
        line = case.breakeven()
        factor = price / base if base else 1.0
        return replace(line, cloud=replace(line.cloud, price=line.cloud.price * factor)).threshold

    return threshold


def _billed(case: Case) -> Callable[[float], float | None]:
    def threshold(value: float) -> float | None:
        line = case.breakeven()
        return replace(line, cloud=replace(line.cloud, billed_per_used=value)).threshold

    return threshold


def _owned(case: Case, name: str) -> Callable[[float], float | None]:
    """The line with one own cost changed; None where the value cannot be."""

    def threshold(value: float) -> float | None:
        if name == "life_years" and value <= 0.0:
            return None
        changed: dict[str, Any] = {name: value}
        return replace(case, own=replace(case.own, **changed)).breakeven().threshold

    return threshold


def price_table(case: Case, rows: Sequence[float] = (), prices: Sequence[float] = ()) -> PriceTable | None:
    """U* by capex and list price; around the case's own where none are given. None where nothing was bought."""
    base, cloud = case.own.capex_per_gpu, case.cloud
    if base is None or cloud is None:
        return None
    usual = list_price(cloud)
    used_rows = tuple(rows) or tuple(base * factor for factor in CAPEX_FACTORS)
    used_prices = tuple(prices) or tuple(usual * factor for factor in PRICE_FACTORS)
    lines = []
    for capex in used_rows:
        changed = replace(case, own=replace(case.own, capex_per_gpu=capex))
        at = _priced(changed, usual)
        found = [at(price) for price in used_prices]
        lines.append(tuple(line if line is not None and line <= 1.0 else None for line in found))
    return PriceTable(rows=used_rows, prices=used_prices, u_star=tuple(lines))


def sizes(case: Case, counts: Sequence[int] = SIZES) -> tuple[SizeRow, ...]:
    """The same team over fleets of other sizes; nothing without staff."""
    if case.own.staff_fte is None or not case.own.staff_fte:
        return ()
    result = []
    for gpus in counts:
        changed = replace(case, own=replace(case.own, gpus=float(gpus)))
        cost, line = changed.cost(), changed.breakeven()
        result.append(
            SizeRow(
                gpus=gpus,
                staff_per_gpu_hour=cost.staff / HOURS_PER_YEAR,
                fixed_per_gpu_hour=cost.fixed_per_gpu_hour,
                u_star=line.u_star,
                threshold=line.threshold if math.isfinite(line.threshold) else None,
            )
        )
    return tuple(result)


def least_gpus(case: Case, utilisation: float) -> int | None:
    """From which size on the same team pays at a utilisation; None where no size does, or nothing depends on it."""
    own = case.own
    shared = (own.staff_fte or 0.0) * (own.staff_cost_per_fte or 0.0)
    shared += (own.migration_once or 0.0) / (own.life_years or 1.0)
    if not shared:
        return None
    rest = replace(case, own=replace(own, staff_fte=None, staff_cost_per_fte=None, migration_once=None))
    line = rest.breakeven()
    left = line.cloud_at(utilisation) - line.own_at(utilisation)
    return math.ceil(shared / HOURS_PER_YEAR / left - 1e-9) if left > 0.0 else None
