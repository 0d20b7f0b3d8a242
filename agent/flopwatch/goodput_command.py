"""``flopwatch goodput job|fleet|model``: what interruptions cost, and what faster recovery would bring."""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from flopwatch.collector_client import Address, AskError, add_address, address_from, ask
from flopwatch.job_command import job_id
from flopwatch.recovery import LossTerms, loss_ratio, optimum_interval_seconds

DAY_SECONDS = 86_400.0
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_SECONDS}


def main(argv: list[str]) -> int:
    """Run the command; 0, 1 when the collector cannot be asked or refuses, 2 for wrong use."""
    options = _parser().parse_args(argv)
    if options.command == "model":
        document = model(terms_of(options))
    else:
        try:
            address = address_from(options.url, options.token_file, os.environ)
            document = measured(address, options) if options.command == "job" else together(address, options)
        except AskError as error:
            sys.stderr.write(f"flopwatch: {error}\n")
            return 1
    sys.stdout.write(json.dumps(document, indent=1) + "\n" if options.json else as_text(document))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch goodput", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    job = commands.add_parser("job", help="what a job's interruptions and checkpoints cost it")
    job.add_argument("job", metavar="JOB", help="the job's id, its id at the scheduler, or its name")
    fleet = commands.add_parser("fleet", help="the same of all runs together")
    fleet.add_argument("--cluster", help="only this cluster")
    for command in (job, fleet):
        _add_collector(command)
    calculated = commands.add_parser("model", help="the loss model with values of your own")
    add = calculated.add_argument
    failures = calculated.add_mutually_exclusive_group(required=True)
    failures.add_argument(
        "--mttf", type=_seconds, metavar="TIME", help="mean time to failure of the whole run"
    )
    failures.add_argument(
        "--failures-per-node-day",
        type=_positive,
        metavar="RATE",
        help="failures of one node in a day; with --nodes",
    )
    add("--nodes", type=_positive, default=1.0, metavar="N", help="nodes of the run (default: 1)")
    add("--detect", type=_seconds, default=0.0, metavar="TIME", help="time to notice a failure (default: 0)")
    add(
        "--restart",
        type=_seconds,
        required=True,
        metavar="TIME",
        help="from the end of a session to its next step",
    )
    add("--interval", type=_seconds, metavar="TIME", help="time between checkpoints (default: the best one)")
    add("--save", type=_seconds, required=True, metavar="TIME", help="what a checkpoint blocks the run for")
    for command in (job, fleet, calculated):
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_collector(parser: argparse.ArgumentParser) -> None:
    """The options of commands that ask a collector about a time."""
    add = parser.add_argument
    add("--last", type=_seconds, default=7 * DAY_SECONDS, metavar="TIME", help="default: 7d")
    add_address(parser)


def _seconds(text: str) -> float:
    """A time such as 90s, 30m, 7.9h or 7d; a bare number is seconds."""
    scale = UNITS.get(text[-1:].lower())
    try:
        value = float(text if scale is None else text[:-1]) * (scale or 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 1e12:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: a time such as 90s, 30m, 7.9h or 7d")
    return value


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: a number above 0")
    return value


def terms_of(options: argparse.Namespace) -> LossTerms:
    """The model's terms as the options give them."""
    mttf = options.mttf
    if mttf is None:
        mttf = DAY_SECONDS / (options.failures_per_node_day * options.nodes)
    best = optimum_interval_seconds(options.save, mttf)
    return LossTerms(
        mttf_seconds=max(mttf, 1e-3),
        detect_seconds=options.detect,
        restart_seconds=options.restart,
        interval_seconds=options.interval or max(best, 1e-3),
        save_seconds=options.save,
    )


def model(terms: LossTerms) -> dict[str, Any]:
    """What the loss model says of the terms, and of each change that would help."""
    lost = loss_ratio(terms)
    best = optimum_interval_seconds(terms.save_seconds, terms.mttf_seconds)
    changed = {
        "detect_halved": replace(terms, detect_seconds=terms.detect_seconds / 2.0),
        "restart_halved": replace(terms, restart_seconds=terms.restart_seconds / 2.0),
        "checkpoint_optimum": replace(terms, interval_seconds=best or terms.interval_seconds),
    }
    return {
        "mttf_seconds": terms.mttf_seconds,
        "detect_seconds": terms.detect_seconds,
        "restart_seconds": terms.restart_seconds,
        "interval_seconds": terms.interval_seconds,
        "save_seconds": terms.save_seconds,
        "lost_ratio": lost,
        "ettr_ratio": 1.0 - lost,
        "optimum_interval_seconds": best,
        "gains": [
            {"name": name, "ratio": max(0.0, lost - loss_ratio(each))} for name, each in changed.items()
        ],
    }


def measured(address: Address, options: argparse.Namespace) -> dict[str, Any]:
    """The goodput of a job as the collector measured it.

    Raises:
        AskError: the collector does not answer, knows no such job, or the job reported nothing of its run.
    """
    found = job_id(address, options.job)
    answer: Mapping[str, Any] = ask(
        address, "GET", f"/api/v1/query/jobs/{quote(found, safe='')}?seconds={options.last:.0f}"
    )
    goodput = answer.get("goodput")
    if goodput is None:
        raise AskError(f"job {found} reported nothing of its run in that time: its goodput is not known")
    return {"job_id": found, **goodput}


def together(address: Address, options: argparse.Namespace) -> dict[str, Any]:
    """The goodput of the largest runs together, with their share of all runs' time.

    Raises:
        AskError: the collector does not answer or refuses, or no run reported anything in that time.
    """
    asked = {"last": f"{max(1, round(options.last / 3600.0))}h"}
    if options.cluster is not None:
        asked["cluster"] = options.cluster
    answer = ask(address, "GET", f"/api/v1/goodput?{urlencode(asked)}")
    if answer["goodput"] is None:
        raise AskError("no run reported anything in that time: the fleet's goodput is not known")
    return {"coverage_ratio": answer["coverage_ratio"], **answer["goodput"]}


def as_text(document: Mapping[str, Any]) -> str:
    """The figures for people, one a line; unknown is a dash."""
    saves = document.get("checkpointing", document)
    outages = document.get("interruptions")
    lines = [
        *((("job", document["job_id"]),) if "job_id" in document else ()),
        *(
            (("share of all run time", _percent(document["coverage_ratio"])),)
            if "coverage_ratio" in document
            else ()
        ),
        ("ETTR", _percent(document["ettr_ratio"])),
        ("interruptions", None if outages is None else str(len(outages))),
        *((name, _time(document.get(f"{name}_seconds"))) for name in ("mtbf", "mttf", "mttr")),
        *(
            (f"time to {name}", _time(document.get(f"{name}_seconds")))
            for name in ("detect", "isolate", "resume")
        ),
        ("time to restart", _time(document.get("restart_seconds"))),
        ("checkpoint", _time(saves["save_seconds"])),
        ("checkpoint interval", _time(saves["interval_seconds"])),
        ("best interval", _time(saves["optimum_interval_seconds"])),
        ("lost by the model", _percent(document.get("lost_ratio", document.get("modelled_loss_ratio")))),
        *((f"gain: {gain['name']}", _percent(gain["ratio"])) for gain in document["gains"]),
    ]
    return "".join(f"{name:<24} {value or '-'}\n" for name, value in lines)


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.2%}"


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 60:.1f} min"
