# ruff: noqa: RUF001, E501 (typographic signs and whole sentences are what this table is for)
"""English texts of a team's ledger on the Fleet page."""

TEAM_TEXTS: dict[str, str] = {
    "team.verdict": "The verdict is the whole fleet's: owning is decided for a cluster, not for a team. Below is team {team}; {hours} GPU-h of the range that nobody held belong to no team.",
    "team.no_ledger": "There is no ledger of team {team} here: figures below are of the whole fleet, only jobs and alerts are the team's.",
    "team.daily": "Daily utilisation of what {team} held",
    "team.fall": "Where the GPU-hours of {team} went",
    "team.fall_sub": "{range} · hours · % of what the team held",
    "team.activity_sub": "of the whole fleet",
    "team.given": "Given to the team, {range}",
    "team.given_hint": "GPU-hours that the team's leases held in the range, as the report by team has them. Utilisation: (held − held empty − held idle − unknown) ÷ held.",
    "team.used": "{ratio} used",
    "team.mfu": "MFU of the team, {range}",
    "team.mfu_hint": "Kept FLOPs ÷ (leased seconds of the team's instrumented jobs × peak) over the range; hardware estimates are not in it.",
    "team.covers": "covers {coverage}",
    "team.waste": "Wasted, {range}",
    "team.waste_hint": "Allocated idle + stalled + in-job loss of the team's leases in the range.",
    "team.money": "Cost of waste, {range}",
    "team.money_hint": "Price of the wasted GPU-hours, and what all GPU-hours of the team's leases cost.",
    "team.billed": "of {amount} held",
    "team.credit": "platform {amount}",
}
