"""``flopwatch compare``: a run on own GPUs and one of the same work elsewhere, by cost and speed."""

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flopwatch.collector_client import Address, AskError, address_from, ask
from flopwatch.job_command import job_id
from flopwatch.run_comparison import Side, document, side_of, unlike
from flopwatch_collector.breakeven_command import costs_of, utilisation
from flopwatch_collector.economics.breakeven import cloud_price
from flopwatch_collector.economics.case import cases_of
from flopwatch_collector.economics.comparison_text import render

RANGE_SECONDS = 90 * 86_400
POINTS = 2000


class WrongUse(ValueError):
    """An option cannot be used; the message has its name, its value and what is allowed."""


def main(argv: list[str]) -> int:
    """Run the command; 0, 1 when a collector cannot be asked or the runs are unlike, 2 for wrong use.

    Raises:
        SettingError: the cost file is wrong.
    """
    options = _parser().parse_args(argv)
    try:
        prices, currency = _prices(options)
        one, other = _sides(options, prices)
    except WrongUse as error:
        sys.stderr.write(f"flopwatch compare: {error}\n")
        return 2
    except AskError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 1
    reasons = unlike(one, other)
    if reasons:
        sys.stderr.write("flopwatch compare: these runs cannot be compared: " + "; ".join(reasons) + "\n")
        if any("not known" in reason for reason in reasons):
            sys.stderr.write("declare what is missing with: flopwatch job set JOB --help\n")
        return 1
    made = document(one, other, currency)
    sys.stdout.write(json.dumps(made, indent=1) + "\n" if options.json else render(made))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch compare", description=__doc__)
    add = parser.add_argument
    add(
        "own",
        metavar="OWN_JOB",
        help="the run on own GPUs: its id, its id at the scheduler, its name, or FILE[#RUN] of a recording",
    )
    add("other", metavar="OTHER_JOB", help="the run that it is set beside")
    add(
        "--collector",
        "--url",
        metavar="URL",
        help="the collector that knows them (default: as for flopwatch job)",
    )
    add(
        "--other-collector", metavar="URL", help="the collector that knows the other one, where it is another"
    )
    add("--token-file", type=Path, help="file with a token (default: FLOPWATCH_TOKEN[_FILE])")
    add("--own-price", type=_price, help="what a used GPU-hour of the first run costs")
    add("--other-price", type=_price, help="what one of the other costs")
    add("--costs", type=Path, help="a cost file, for the prices that are not given")
    add(
        "--utilisation",
        type=utilisation,
        help="how much of the own capacity is used, for the price of a used hour",
    )
    add("--json", action="store_true", help="print JSON")
    return parser


def _price(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: a number of 0 or more")
    return value


def _prices(options: argparse.Namespace) -> tuple[tuple[float | None, float | None], str | None]:
    """((own, other) price of a held GPU-hour, currency): as given, else by the cost file."""
    own, other = options.own_price, options.other_price
    if options.costs is None:
        return (own, other), None
    costs = costs_of(options.costs)
    cases = cases_of(costs)
    if len(cases) != 1:
        raise WrongUse("--costs has several groups; allowed: one, or --own-price and --other-price")
    if own is None:
        if not options.utilisation:
            raise WrongUse("--utilisation is needed with --costs: a used hour bears the idle ones as well")
        own = cases[0].cost().at(options.utilisation) / options.utilisation
    if other is None and cases[0].cloud is not None:
        other = cloud_price(cases[0].cloud).price
    return (own, other), costs.currency


def _sides(options: argparse.Namespace, prices: tuple[float | None, float | None]) -> tuple[Side, Side]:
    elsewhere = options.collector if options.other_collector is None else options.other_collector
    one = _side(options, options.collector, options.own, prices[0])
    other = _side(options, elsewhere, options.other, prices[1])
    same_source = _source(options.collector, options.own) == _source(elsewhere, options.other)
    if same_source and one.job_id == other.job_id:
        raise WrongUse(f"both runs are {one.job_id}; allowed: two different ones")
    return one, other


def _side(options: argparse.Namespace, url: str | None, asked: str, price: float | None) -> Side:
    """A run of a recording where one is named, else of a collector."""
    file, _, run = asked.partition("#")
    if Path(file).exists():
        return _recorded(Path(file), run or None, price)
    return _known(address_from(url, options.token_file, os.environ), asked, price)


def _source(url: str | None, asked: str) -> Path | str | None:
    """Where a run is looked up: the recording's path, else the collector's address."""
    file = Path(asked.partition("#")[0])
    return file.resolve() if file.exists() else url


def _recorded(file: Path, run: str | None, price: float | None) -> Side:
    # A node's install compares what collectors know, and has no store to replay into.
    from flopwatch_collector.recorded_run import NoSuchRun, recorded_run  # noqa: PLC0415

    try:
        job, facts = recorded_run(file, run)
    except NoSuchRun as error:
        raise WrongUse(str(error)) from error
    except OSError as error:
        raise WrongUse(f"{file} cannot be read: {error.strerror or error}") from error
    return side_of(job, facts, price)


def _known(address: Address, asked: str, price: float | None) -> Side:
    name = quote(job_id(address, asked), safe="")
    job = ask(address, "GET", f"/api/v1/query/jobs/{name}?seconds={RANGE_SECONDS}&points={POINTS}")
    facts = ask(address, "GET", f"/api/v1/jobs/{name}/facts")
    return side_of(job, used_facts(facts), price)


def used_facts(document: Mapping[str, Any]) -> dict[str, Any]:
    """Of every fact the value that counts; those that nobody knows are left out."""
    result = {}
    for entry in document["facts"]:
        if entry["used"] == "declared":
            result[entry["fact"]] = entry["declared"]["value"]
        elif entry["used"] is not None and entry["found"]:
            result[entry["fact"]] = entry["found"][0]["value"]
    return result
