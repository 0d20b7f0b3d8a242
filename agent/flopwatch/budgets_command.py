"""``flopwatch budgets``: what was used of budgets and quotas, and where their periods will end at the present pace."""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from flopwatch.collector_client import AskError, add_address, address_from, ask

HEADS = ("budget", "of", "period", "limit", "used", "share", "a day", "forecast", "share", "state")


def main(argv: list[str]) -> int:
    """Run the command; 0, 1 when the collector cannot be asked or refuses, 2 for wrong use."""
    options = _parser().parse_args(argv)
    try:
        answer = ask(address_from(options.url, options.token_file, os.environ), "GET", "/api/v1/budgets")
    except AskError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 1
    sys.stdout.write(json.dumps(answer, indent=1) + "\n" if options.json else as_text(answer))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch budgets", description=__doc__)
    add = parser.add_argument
    add_address(parser)
    add("--json", action="store_true", help="print JSON, with jobs beyond their declared GPU-hours")
    return parser


def as_text(answer: Mapping[str, Any]) -> str:
    """A line a budget, then a line a job that used more than was declared for it; unknown is a dash."""
    budgets = answer["budgets"]
    if not budgets:
        text = "no budgets are set ([[budgets]] in the collector's settings)\n"
    else:
        text = _aligned([HEADS, *(_line(each, answer["status"]["currency"]) for each in budgets)])
    for job in answer["overruns"]:
        text += (
            f"job {job['name']} ({job['job_id']}): {job['used_gpu_hours']:,.1f} GPU-h of"
            f" {job['declared_gpu_hours']:,.1f} declared, {job['ratio']:.2f} times\n"
        )
    return text


def _line(budget: Mapping[str, Any], currency: str) -> tuple[str, ...]:
    unit = "GPU-h" if budget["unit"] == "gpu_hours" else currency
    reason = f" ({budget['reason']})" if budget["reason"] else ""
    return (
        budget["name"],
        f"{budget['scope']} {budget['who']}" if budget["who"] else budget["scope"],
        budget["period"],
        f"{budget['limit']:,.1f} {unit}",
        _number(budget["used"]),
        _percent(budget["used_ratio"]),
        _number(budget["pace_per_day"]),
        _number(budget["forecast"]),
        _percent(budget["forecast_ratio"]),
        f"{budget['state']}{reason}",
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _aligned(rows: list[tuple[str, ...]]) -> str:
    """Columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)
