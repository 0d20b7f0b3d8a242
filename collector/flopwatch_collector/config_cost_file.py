"""Reads ``[costs]`` and its tables: the site's, and those of groups of nodes."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from flopwatch.settings import SettingError, section
from flopwatch_collector.config_costs import (
    BASES,
    CloudCosts,
    CostGroup,
    CostSettings,
    DemandSettings,
    EfficiencySettings,
    OwnCosts,
    require_basis,
    require_currency,
)

T = TypeVar("T")


def read_costs(tables: Mapping[str, Any], environ: Mapping[str, str]) -> CostSettings:
    """``[costs]`` with its tables, from a loaded file and the environment.

    Raises:
        SettingError: an unknown setting, a wrong type, a value that is not allowed, or two that contradict.
    """
    costs = tables.get("costs", {})
    if not isinstance(costs, Mapping):
        raise SettingError("costs", costs, "a table")
    flat = {key: value for key, value in costs.items() if key not in _TABLES}
    made = section(CostSettings, "costs", {"costs": flat}, environ)
    nested: dict[str, Any] = {
        name: _nested(kind, name, costs, environ) for name, kind in _TABLES.items() if kind is not None
    }
    result = dataclasses.replace(made, **nested)
    if result.own is not None:
        require_basis(result.own, "costs.own")
    result = dataclasses.replace(result, group=_groups(costs.get("group", []), result))
    _require_one_price(costs, result)
    return result


def require_complete(costs: CostSettings) -> CostSettings:
    """The same costs.

    Raises:
        SettingError: they have no price to begin with, or are in several currencies.
    """
    if costs.own is not None:
        require_basis(costs.own, "costs.own")
    for group in costs.group:
        require_basis(group.own, f"costs.group.{group.name}")
    return costs


_TABLES: dict[str, Any] = {
    "own": OwnCosts, "cloud": CloudCosts, "efficiency": EfficiencySettings, "demand": DemandSettings, "group": None,
}  # fmt: skip
_OF_PRICE = (
    "gpus_per_server",
    "currency",
    "price_date",
    "price_source",
    "price_term",
    "tax_included",
    "resale_per_gpu",
)
_OF_ALL_GPUS = ("staff_fte", "staff_cost_per_fte", "migration_once")
"""Divided by the GPUs they are for: the site's by the site's, a group's own by the group's."""
_GROUP_OWN = tuple(field.name for field in dataclasses.fields(OwnCosts))


def _nested(kind: type[T], name: str, costs: Mapping[str, Any], environ: Mapping[str, str]) -> T | None:
    variables = tuple(f"FLOPWATCH_COSTS_{name}_{field.name}".upper() for field in dataclasses.fields(kind))  # type: ignore[arg-type]
    given = any(variable in environ or f"{variable}_FILE" in environ for variable in variables)
    if name not in costs and not given:
        return None
    full = f"costs.{name}"
    return section(kind, full, {full: costs.get(name, {})}, environ)


def _require_one_price(costs: Mapping[str, Any], made: CostSettings) -> None:
    """What follows from the costs must not be set beside them."""
    if made.own is not None and "price_per_gpu_hour" in costs:
        raise SettingError(
            "costs.price_per_gpu_hour", made.price_per_gpu_hour, "left out: it follows from [costs.own]"
        )
    if made.own is not None and made.cloud is not None and "breakeven_ratio" in costs:
        allowed = "left out: it follows from [costs.own] and [costs.cloud]"
        raise SettingError("costs.breakeven_ratio", made.breakeven_ratio, allowed)


def _groups(entries: object, costs: CostSettings) -> tuple[CostGroup, ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise SettingError("costs.group", entries, "an array of tables, [[costs.group]]")
    groups = tuple(_group(entry, costs) for entry in entries)
    names = [group.name for group in groups]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingError("costs.group.name", twice, "each group once")
    return groups


def _group(entry: Mapping[str, Any], costs: CostSettings) -> CostGroup:
    """A group; an owned one takes from ``[costs.own]`` what it leaves out, the others stand for themselves."""
    heads = {key: value for key, value in entry.items() if key in ("name", "kind", "nodes", "gpus")}
    head = section(CostGroup, "costs.group", {"costs.group": heads}, {})
    rest = {key: value for key, value in entry.items() if key not in ("name", "kind", "nodes")}
    own = {key: value for key, value in rest.items() if key not in ("cloud", "efficiency")}
    table = f"costs.group.{head.name}"
    if head.kind == "on_demand":
        own = _on_demand(own, table)
    elif head.kind == "owned" and costs.own is not None:
        own = _inherited(costs.own, own)
    try:
        made = section(OwnCosts, table, {table: own}, {})
        cloud = _merged(CloudCosts, costs.cloud, entry.get("cloud"), f"{table}.cloud")
        efficiency = _merged(
            EfficiencySettings, costs.efficiency, entry.get("efficiency"), f"{table}.efficiency"
        )
    except SettingError as error:
        name = re.sub(r"^costs\.(own|cloud|efficiency)\.", lambda found: _within(table, found[1]), error.name)
        raise SettingError(name, error.value, error.allowed) from error
    require_basis(made, table)
    require_currency(made, table, costs.currency)
    require_currency(cloud, f"{table}.cloud", costs.currency)
    return dataclasses.replace(head, own=made, cloud=cloud, efficiency=efficiency)


def _within(table: str, part: str) -> str:
    return f"{table}." if part == "own" else f"{table}.{part}."


def _on_demand(own: Mapping[str, Any], table: str) -> dict[str, Any]:
    """An on-demand group has one price, that of an hour it exists."""
    allowed = (
        "price_per_gpu_hour",
        "gpus",
        "currency",
        "price_date",
        "price_source",
        "price_term",
        "tax_included",
    )
    unknown = sorted(set(own) - set(allowed))
    if unknown:
        raise SettingError(f"{table}.{unknown[0]}", own[unknown[0]], "one of " + ", ".join(sorted(allowed)))
    if "price_per_gpu_hour" not in own:
        raise SettingError(
            f"{table}.price_per_gpu_hour", None, "the price of a GPU-hour of this on-demand group"
        )
    renamed = dict(own)
    renamed["fixed_per_gpu_hour"] = renamed.pop("price_per_gpu_hour")
    return renamed


def _inherited(base: OwnCosts, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the group says, else what ``[costs.own]`` says; a basis of its own takes the place of the other."""
    replaced = any(name in given for name in BASES)
    skipped = {*BASES, *_OF_PRICE} if replaced else set()
    if any(name in given for name in _OF_ALL_GPUS):
        skipped |= {"gpus", *_OF_ALL_GPUS}
    else:
        given = {name: value for name, value in given.items() if name != "gpus"}
    inherited = {
        name: value
        for name in _GROUP_OWN
        if name not in skipped and (value := getattr(base, name)) is not None
    }
    return {**inherited, **given}


def _merged(kind: type[T], base: T | None, given: object, table: str) -> T | None:
    """The group's table over the site's."""
    if given is None:
        return base
    if not isinstance(given, Mapping):
        raise SettingError(table, given, "a table")
    known = {} if base is None else dataclasses.asdict(base)  # type: ignore[call-overload]
    kept = {name: value for name, value in known.items() if value is not None}
    if any(name.startswith("price_per_") for name in given):
        kept = {
            name: value for name, value in kept.items() if not name.startswith(("price_", "gpus_per_server"))
        }
    return section(kind, table, {table: {**kept, **given}}, {})
