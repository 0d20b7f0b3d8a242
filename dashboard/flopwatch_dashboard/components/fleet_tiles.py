"""The five tiles of the Fleet page."""

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Fleet, Ledger, Severity
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts, phrases, tiles
from flopwatch_dashboard.components.tiles import TileText
from flopwatch_dashboard.view import View

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")


def tiles_of(fleet: Fleet, view: View) -> list[Component]:
    """Utilisation, MFU, waste in hours, waste in money, alerts."""
    return [
        _utilisation(fleet, view),
        _mfu(fleet, view),
        _waste(fleet, view),
        _money(fleet, view),
        alerts(fleet, view),
    ]


def _unit(value: float | None) -> str:
    return "" if value is None else "%"


def _percent_number(value: float | None) -> str:
    return wording.number(None if value is None else value * 100, 1)


def _utilisation(fleet: Fleet, view: View) -> Component:
    tile, line = fleet.utilisation, fleet.verdict.line_ratio
    text = TileText(
        title=view.t("tile.utilisation"),
        value=_percent_number(tile.value),
        unit=_unit(tile.value),
        hint=view.t("tile.utilisation_hint"),
        left=view.t("tile.mean", mean=wording.percent(fleet.verdict.mean_30d_ratio)),
        right=view.t("tile.line", line=phrases.breakeven_line(fleet.verdict, view)),
    )
    return tiles.tile(text, tiles.bullet(tile.value, line, 1.0, view), view, tile.spark)


def _mfu(fleet: Fleet, view: View) -> Component:
    tile = fleet.mfu
    convention = _conventions(fleet, view)
    coverage = wording.percent(fleet.mfu_coverage_ratio, 0)
    wanted = tile.reference
    hint = view.t("tile.mfu_hint", convention=convention, coverage=coverage)
    if fleet.mfu_by_money_ratio is not None:
        hint += f" · {view.t('tile.mfu_money', value=wording.percent(fleet.mfu_by_money_ratio))}"
    text = TileText(
        title=view.t("tile.mfu"),
        value=_percent_number(tile.value),
        unit=_unit(tile.value),
        hint=hint,
        left=view.t("tile.coverage", convention=convention, coverage=coverage),
        right=view.t("tile.no_target")
        if wanted is None
        else view.t("tile.target", target=wording.line_percent(wanted)),
        href=view.link("jobs"),
    )
    top = max(0.6, (tile.value or 0.0) * 1.1, (wanted or 0.0) * 1.1)
    return tiles.tile(text, tiles.bullet(tile.value, wanted, top, view), view, tile.spark)


def _conventions(fleet: Fleet, view: View) -> str:
    """The convention of the jobs shown; the product's default where none is."""
    measured = (job.mfu for job in fleet.top_jobs if job.mfu.measured_ratio is not None)
    names = {figure.convention for figure in measured} or {"causal"}
    return ", ".join(phrases.convention(name, view) for name in sorted(names))


def _waste(fleet: Fleet, view: View) -> Component:
    ledger = fleet.ledger_today
    text = TileText(
        title=view.t("tile.waste"),
        value=wording.number(fleet.waste.value),
        unit=view.t("unit.gpu_hours"),
        hint=view.t("tile.waste_hint"),
        left=waste_share(ledger, view),
        href=view.link("jobs"),
    )
    return tiles.tile(text, tiles.waste_bar(ledger, view), view, fleet.waste.spark)


def waste_share(ledger: Ledger, view: View) -> str:
    """What share of the capacity is waste; nothing where there is none."""
    capacity = ledger.capacity_gpu_milliseconds
    if not capacity:
        return ""
    share = wording.percent(ledger.waste_gpu_milliseconds / capacity, 0)
    return view.t("tile.waste_share", share=share, capacity=wording.hours(capacity))


def _money(fleet: Fleet, view: View) -> Component:
    status, tile = fleet.status, fleet.waste_money
    if status.price_per_gpu_hour is None:
        text = TileText(
            title=view.t("tile.money"),
            value=wording.UNKNOWN,
            hint=view.t("verdict.no_price"),
            left=view.t("tile.no_price"),
        )
        return tiles.tile(text, tiles.no_gauge(), view)
    example = view.t("verdict.example") if status.price_is_example else ""
    price = wording.money(status.price_per_gpu_hour, status.currency, 2)
    text = TileText(
        title=view.t("tile.money"),
        value=wording.money(tile.value, status.currency),
        hint=view.t("tile.money_hint", price=price, example=example),
        left=view.t("tile.per_day", amount=wording.money(fleet.waste_money_per_day, status.currency)),
        right=_change(tile.value, tile.reference, view),
        href=view.link("jobs"),
    )
    top = max(tile.value or 0.0, tile.reference or 0.0) * 1.7
    gauge = tiles.bullet(tile.value, tile.reference, top, view, low_is_good=True)
    return tiles.tile(text, gauge, view, tile.spark)


def _change(value: float | None, before: float | None, view: View) -> str:
    if value is None or not before:
        return ""
    return view.t("tile.against_yesterday", change=f"{(value / before - 1) * 100:+.0f}%")


def alerts(fleet: Fleet, view: View) -> Component:
    """How many alerts fire, by severity."""
    counts = fleet.alerts_by_severity
    badges = [parts.severity(level, view, counts.get(level, 0)) for level in SEVERITIES if counts.get(level)]
    text = TileText(
        title=view.t("tile.alerts"),
        value=str(sum(counts.values())),
        left=html.Span(badges, className="sevs") if badges else view.t("fleet.alerts_empty"),
        href=view.link("alerts"),
    )
    return tiles.tile(text, tiles.no_gauge(), view)
