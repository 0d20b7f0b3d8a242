"""The five tiles of the Fleet page when a team is chosen: of the range, and of what the team's leases held."""

from dash.development.base_component import Component

from flopwatch.query import Fleet, TeamLedger
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import fleet_tiles, tiles
from flopwatch_dashboard.components.tiles import TileText
from flopwatch_dashboard.view import View

HOUR_MILLISECONDS = 3_600_000.0


def tiles_of(fleet: Fleet, view: View) -> list[Component]:
    """Given GPU-hours with their utilisation, MFU, waste in hours, waste in money, alerts; none without a team."""
    team = fleet.team
    if team is None:
        return []
    return [
        _given(team, view),
        _mfu(team, view),
        _waste(team, view),
        _money(fleet, team, view),
        fleet_tiles.alerts(fleet, view),
    ]


def _given(team: TeamLedger, view: View) -> Component:
    ledger = team.ledger
    text = TileText(
        title=view.t("team.given", range=view.range_label),
        value=wording.hours(ledger.capacity_gpu_milliseconds),
        unit=view.t("unit.gpu_hours"),
        hint=view.t("team.given_hint"),
        left=view.t("team.used", ratio=wording.percent(ledger.billable_ratio)),
        right=view.t("tile.mean", mean=wording.percent(team.mean_30d_ratio)),
    )
    return tiles.tile(text, tiles.bullet(ledger.billable_ratio, None, 1.0, view), view, _course(team))


def _course(team: TeamLedger) -> tuple[float | None, ...]:
    return tuple(day.billable_ratio for day in team.days[-14:])


def _mfu(team: TeamLedger, view: View) -> Component:
    value = team.mfu_ratio
    text = TileText(
        title=view.t("team.mfu", range=view.range_label),
        value=wording.number(None if value is None else value * 100, 1),
        unit="" if value is None else "%",
        hint=view.t("team.mfu_hint"),
        left=view.t("team.covers", coverage=wording.percent(team.mfu_coverage_ratio, 0)),
        href=view.link("jobs"),
    )
    return tiles.tile(text, tiles.bullet(value, None, max(0.6, (value or 0.0) * 1.1), view), view)


def _waste(team: TeamLedger, view: View) -> Component:
    ledger = team.ledger
    text = TileText(
        title=view.t("team.waste", range=view.range_label),
        value=wording.number(ledger.waste_gpu_milliseconds / HOUR_MILLISECONDS),
        unit=view.t("unit.gpu_hours"),
        hint=view.t("team.waste_hint"),
        left=fleet_tiles.waste_share(ledger, view),
        href=view.link("jobs"),
    )
    return tiles.tile(text, tiles.waste_bar(ledger, view), view)


def _money(fleet: Fleet, team: TeamLedger, view: View) -> Component:
    currency = fleet.status.currency
    priced = fleet.status.price_per_gpu_hour is not None
    text = TileText(
        title=view.t("team.money", range=view.range_label),
        value=wording.money(team.ledger.waste_money, currency),
        hint=view.t("team.money_hint"),
        left=view.t("team.billed", amount=wording.money(team.billed, currency))
        if priced
        else view.t("tile.no_price"),
        right=view.t("team.credit", amount=wording.money(team.credit, currency)) if team.credit else "",
        href=view.link("jobs"),
    )
    return tiles.tile(text, tiles.no_gauge(), view)
