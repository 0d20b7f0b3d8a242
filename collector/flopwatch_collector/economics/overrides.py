"""What if: the cost settings with some inputs changed, and what the inputs are."""

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from flopwatch.answers.economy import CostInput, InputSource
from flopwatch.settings import SettingError
from flopwatch_collector.config_costs import CloudCosts, CostSettings, EfficiencySettings, OwnCosts
from flopwatch_collector.economics.efficiency import FACTORS, Measured

TABLES: dict[str, type[OwnCosts | CloudCosts | EfficiencySettings]] = {
    "own": OwnCosts, "cloud": CloudCosts, "efficiency": EfficiencySettings,
}  # fmt: skip


def adjustable(table: str) -> tuple[str, ...]:
    """The numbers of a table, which an override may change."""
    fields = dataclasses.fields(TABLES[table])
    return tuple(field.name for field in fields if field.type in (float, float | None))


def overridden(costs: CostSettings, overrides: Mapping[str, float]) -> CostSettings:
    """The settings with inputs changed: ``own.capex_per_gpu``, of one group ``NAME.own.capex_per_gpu``.

    Without a group's name an input is changed in every group.

    Raises:
        SettingError: an input is not known, or its value is not allowed.
    """
    tables: dict[tuple[str, str], dict[str, float]] = {}
    for name, value in overrides.items():
        group, table, field = _known(costs, name, value)
        tables.setdefault((group, table), {})[field] = value
    # A table at a time: some inputs are allowed only together with others.
    for (group, table), changes in sorted(tables.items()):
        costs = _changed(costs, group, table, changes)
    return costs


def _known(costs: CostSettings, name: str, value: float) -> tuple[str, str, str]:
    """(group, table, field) of an input; the group is empty where it is meant for all."""
    head, _, field = name.rpartition(".")
    group, _, table = head.rpartition(".")
    if table not in TABLES or field not in adjustable(table):
        known = ", ".join(f"{each}.{first}" for each in TABLES for first in adjustable(each))
        raise SettingError(name, value, f"one of {known}")
    if group and group not in [each.name for each in costs.group]:
        names = ", ".join(each.name for each in costs.group) or "none"
        raise SettingError(name, value, f"a group of the settings ({names})")
    return group, table, field


def _changed(costs: CostSettings, group: str, table: str, changes: Mapping[str, float]) -> CostSettings:
    groups = tuple(
        _replaced(each, table, changes) if group in ("", each.name) else each for each in costs.group
    )
    costs = dataclasses.replace(costs, group=groups)
    return costs if group else _replaced(costs, table, changes)


def _replaced(holder: Any, table: str, changes: Mapping[str, float]) -> Any:
    """The holder with numbers of a table changed; an efficiency may begin with them, costs may not."""
    part = getattr(holder, table)
    if part is None and table == "efficiency":
        part = EfficiencySettings()
    if part is None:
        return holder
    for field, value in changes.items():
        if table == "own" and getattr(part, field) is None and field.startswith(("capex", "fixed", "rent")):
            raise SettingError(f"{table}.{field}", value, "an input that the cost file gives")
    return dataclasses.replace(holder, **{table: dataclasses.replace(part, **changes)})


def inputs_of(
    costs: CostSettings, overrides: Mapping[str, float], measured: Measured
) -> tuple[CostInput, ...]:
    """Every input by its name, with where its value is from."""
    return tuple(_inputs(costs, overrides, measured))


def _inputs(costs: CostSettings, overrides: Mapping[str, float], measured: Measured) -> Iterator[CostInput]:
    seen = {f"own_{name}": getattr(measured, name) for name in FACTORS}
    prefixes: list[tuple[str, Any]] = [(f"{group.name}.", group) for group in costs.group] or [("", costs)]
    for prefix, holder in prefixes:
        for table, kind in TABLES.items():
            part = getattr(holder, table)
            if part is None and table != "efficiency":
                continue
            numbers = adjustable(table)
            for field in dataclasses.fields(kind):
                value = field.default if part is None else getattr(part, field.name)
                source: InputSource = "default" if value == field.default else "file"
                if value is None and seen.get(field.name) is not None:
                    value, source = seen[field.name], "measured"
                if {f"{prefix}{table}.{field.name}", f"{table}.{field.name}"} & set(overrides):
                    source = "override"
                yield CostInput(
                    name=f"{prefix}{table}.{field.name}",
                    value=value.isoformat() if isinstance(value, date) else value,
                    source=source,
                    adjustable=field.name in numbers,
                )
