"""``flopwatch breakeven``: the utilisation from which owning pays, from a cost file, with its arithmetic."""

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from flopwatch import settings as settings_file
from flopwatch.collector_client import AskError, address_from, ask
from flopwatch.settings import SettingError
from flopwatch_collector.config_cost_file import read_costs
from flopwatch_collector.config_costs import CostSettings, require_own
from flopwatch_collector.economics.assessment import assess
from flopwatch_collector.economics.breakeven_text import render
from flopwatch_collector.economics.case import Case, cases_of, with_measured
from flopwatch_collector.economics.demand import duration_curve
from flopwatch_collector.economics.document import document
from flopwatch_collector.economics.fleet import fleet_figures
from flopwatch_collector.economics.observed import Observed
from flopwatch_collector.economics.variations import price_table
from flopwatch_collector.measured_answer import Known, known_from


def main(argv: list[str]) -> int:
    """Run the command; 0, 1 when the collector cannot be asked, 2 for wrong use.

    Raises:
        SettingError: an option or a setting is wrong.
    """
    options = _parser().parse_args(argv)
    costs = costs_of(options.costs)
    cases = cases_of(costs)
    if options.costs is None and costs.own is None and not costs.group:
        raise SettingError("--costs", None, "a file with your costs, [costs.own]; the settings file has none")
    if not costs.group:
        require_own(costs.own)
    for case in cases:
        if case.kind != "on_demand" and case.cloud is None:
            raise SettingError("costs.cloud", None, "a table with the price to compare with, [costs.cloud]")
    try:
        known = _known(options)
    except AskError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 1
    sys.stdout.write(_answer(options, costs, cases, known))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch breakeven", description=__doc__)
    add = parser.add_argument
    add("--costs", type=Path, help="file with [costs.own] and [costs.cloud] (default: the settings file)")
    add(
        "--utilisation",
        type=utilisation,
        metavar="RATIO",
        help="billable utilisation to judge: 0.7 or 70%%; without it the measured, sustained state counts",
    )
    add("--collector", "--url", metavar="URL", help="a collector, for what was measured of the fleet")
    add("--token-file", type=Path, help="file with a token (default: FLOPWATCH_TOKEN[_FILE])")
    add("--capex", type=_numbers, default=(), metavar="A,B,…", help="rows of the table of U*")
    add(
        "--prices", type=_numbers, default=(), metavar="A,B,…", help="its columns: cloud prices of a GPU-hour"
    )
    add("--json", action="store_true", help="print JSON")
    return parser


def utilisation(text: str) -> float:
    """A ratio from 0 to 1, or a percentage with its sign; 70 alone could be either, and is refused."""
    try:
        value = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(
            f"{text!r}; allowed: a ratio from 0 to 1, or a percentage such as 70%"
        )
    return value


def _numbers(text: str) -> tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(0.0 < value < float("inf") for value in values):
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: numbers above 0, such as 1.70,2.35")
    return values


def costs_of(path: Path | None) -> CostSettings:
    """The costs of a named file by itself, else of the settings file with what the environment overrides.

    Raises:
        SettingError: there is no such file, it is not TOML, or a setting is wrong.
    """
    if path is not None:
        tables = settings_file.load(path, "--costs")
        if "costs" not in tables:
            raise SettingError("--costs", str(path), "a file with a table [costs.own]")
        return read_costs(tables, {})
    found = settings_file.default_file(os.environ)
    return read_costs(settings_file.load(found), os.environ)


def _known(options: argparse.Namespace) -> Known:
    """What the collector that is named knows; nothing without one."""
    if options.collector is None:
        return Known()
    address = address_from(options.collector, options.token_file, os.environ)
    return known_from(ask(address, "GET", "/api/v1/query/economy"))


def today(now: float) -> date:
    """The date of a time, by UTC."""
    return datetime.fromtimestamp(now, tz=timezone.utc).date()


def _answer(options: argparse.Namespace, costs: CostSettings, cases: tuple[Case, ...], known: Known) -> str:
    measured = tuple(with_measured(case, known.measured(case.name), known.gpus(case.name)) for case in cases)
    groups = []
    for case in measured:
        seen = _observed(options.utilisation, costs, case, known)
        group = assess(case, seen, today(time.time()))
        if options.capex or options.prices:
            group = replace(group, table=price_table(case, options.capex, options.prices))
        groups.append(group)
    fleet = fleet_figures(measured, tuple(groups), options.utilisation)
    if not options.json:
        return render(measured, tuple(groups), fleet, costs.currency)
    made: dict[str, Any] = document(measured, tuple(groups), fleet, costs.currency)
    return json.dumps(made, indent=1) + "\n"


def _observed(asked: float | None, costs: CostSettings, case: Case, known: Known) -> Observed:
    """What is known of a group: of the file its demand, of the collector the rest."""
    seen = replace(known.observed(case.name), asked_ratio=asked)
    if costs.demand is None or not costs.demand.gpus or costs.group:
        return seen
    curve = duration_curve(zip(costs.demand.gpus, costs.demand.time_ratio, strict=True))
    return replace(seen, demand=curve, demand_basis="file")
