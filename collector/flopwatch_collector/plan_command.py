"""``flopwatch plan``: GPUs, hours, energy and money that a training run takes."""

import argparse
import dataclasses
import json
import math
import os
import sys
from pathlib import Path

from flopwatch import accelerators, model_names
from flopwatch.accelerator import DTYPES, dtype_of
from flopwatch.collector_client import AskError, address_from, ask
from flopwatch.flops import flops_per_token
from flopwatch.run_sizing import Run
from flopwatch_collector.breakeven_command import costs_of
from flopwatch_collector.config_costs import CostSettings
from flopwatch_collector.economics.case import WHOLE_SITE, Case, cases_of
from flopwatch_collector.economics.efficiency import Measured
from flopwatch_collector.economics.plan_text import render
from flopwatch_collector.economics.planner import Plan, plan
from flopwatch_collector.measured_answer import known_from

SCALES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


class WrongUse(ValueError):
    """An option cannot be used; the message has its name, its value and what is allowed."""


def main(argv: list[str]) -> int:
    """Run the command; 0, 1 when the collector cannot be asked, 2 for wrong use.

    Raises:
        SettingError: the cost file is wrong.
    """
    options = _parser().parse_args(argv)
    try:
        sys.stdout.write(_answer(options))
    except WrongUse as error:
        sys.stderr.write(f"flopwatch plan: {error}\n")
        return 2
    except AskError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch plan", description=__doc__)
    _add_run(parser)
    _add_fleet(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    """What is trained, on what, how well."""
    add = parser.add_argument
    work = parser.add_mutually_exclusive_group(required=True)
    work.add_argument("--flops", type=_amount, metavar="N", help="model FLOPs of the whole run: 8.4e23")
    work.add_argument(
        "--params", type=_amount, metavar="N", help="parameters trained, 6 FLOPs a token each: 70B"
    )
    names = ", ".join(model_names.DESCRIPTIONS)
    work.add_argument("--model", metavar="NAME", help=f"a well-known shape, attention counted: {names}")
    add("--tokens", type=_amount, metavar="N", help="tokens of the run: 2T; needed with --params and --model")
    add("--seq-len", type=_amount, metavar="N", help="tokens of a sequence; needed with --model")
    add("--gpu", metavar="NAME", help='as NVML names it, or a product: "H100 SXM"')
    add("--dtype", default="bf16", help=f"number format of the matmuls: {', '.join(DTYPES)} (default: bf16)")
    add("--peak-tflops", type=_amount, help="dense peak of one GPU, instead of the table's")
    add("--days", type=_amount, required=True, help="days that the run may take")
    add("--mfu", type=_share, required=True, help="step MFU expected: 0.40 or 40%%")
    add("--goodput", type=_share, required=True, help="kept step time over all time: 0.90 or 90%%")
    add("--spares", type=_spares, default=0.0, help="spare nodes, as a share: 0.05 or 5%% (default: 0)")
    add("--gpus-per-node", type=_whole, default=8, help="GPUs of a node (default: 8)")


def _add_fleet(parser: argparse.ArgumentParser) -> None:
    """What it costs, and what the fleet measured."""
    add = parser.add_argument
    add("--costs", type=Path, help="file with [costs.own] and [costs.cloud], for money and energy")
    add("--group", metavar="NAME", help="the group of the cost file that is planned for")
    add(
        "--collector",
        "--url",
        metavar="URL",
        help="a collector: the same with its fleet's measured efficiency",
    )
    add("--token-file", type=Path, help="file with a token (default: FLOPWATCH_TOKEN[_FILE])")
    add("--measured-mfu", type=_share, help="the fleet's measured step MFU, without a collector")
    add("--measured-goodput", type=_share, help="its measured goodput")


def _answer(options: argparse.Namespace) -> str:
    costs = None if options.costs is None else costs_of(options.costs)
    case = None if costs is None else _case(costs, options.group)
    run = Run(
        flops=_flops(options),
        peak_flops=_peak(options),
        days=options.days,
        mfu=options.mfu,
        goodput=options.goodput,
        spares_ratio=options.spares,
        gpus_per_node=options.gpus_per_node,
    )
    plans = {"planned": plan(run, case)}
    measured = _measured(options)
    if measured is not None:
        plans["measured"] = plan(dataclasses.replace(run, mfu=measured[0], goodput=measured[1]), case)
    currency = None if costs is None else costs.currency
    return render(run, plans, currency) if not options.json else _document(run, plans, currency)


def _document(run: Run, plans: dict[str, Plan], currency: str | None) -> str:
    """The plan's figures at the top, the measured ones beside them."""
    measured = plans.get("measured")
    made = {
        "flops": run.flops,
        "peak_flops": run.peak_flops,
        "days": run.days,
        "spares_ratio": run.spares_ratio,
        "gpus_per_node": run.gpus_per_node,
        "currency": currency,
        **dataclasses.asdict(plans["planned"]),
        "measured": None if measured is None else dataclasses.asdict(measured),
    }
    return json.dumps(made, indent=1) + "\n"


def _case(costs: CostSettings, group: str | None) -> Case:
    cases = cases_of(costs)
    named = [case for case in cases if group is None or case.name == group]
    if len(named) == 1:
        return named[0]
    names = ", ".join(case.name for case in cases)
    if not cases:
        raise WrongUse("--costs has no [costs.own]; allowed: a file with own costs")
    raise WrongUse(f"--group is {group!r}; allowed: one of {names}")


def _measured(options: argparse.Namespace) -> tuple[float, float] | None:
    """(MFU, goodput) that the fleet measured, from the options or the collector; None when neither is asked."""
    mfu, goodput = options.measured_mfu, options.measured_goodput
    if options.collector is not None and (mfu is None or goodput is None):
        address = address_from(options.collector, options.token_file, os.environ)
        found: Measured = known_from(ask(address, "GET", "/api/v1/query/economy")).measured(WHOLE_SITE)
        mfu, goodput = mfu or found.mfu, goodput or found.goodput
        if mfu is None or goodput is None:
            what = "MFU" if mfu is None else "goodput"
            raise AskError(f"the collector at {address.url} has measured no {what} of its fleet yet")
    if (mfu is None) != (goodput is None):
        raise WrongUse("--measured-mfu and --measured-goodput are needed together")
    return None if mfu is None or goodput is None else (mfu, goodput)


def _flops(options: argparse.Namespace) -> float:
    if options.flops is not None:
        if options.tokens is not None:
            raise WrongUse("--tokens is for --params and --model; --flops are of the whole run")
        return float(options.flops)
    if options.tokens is None:
        raise WrongUse("--tokens is needed with --params and --model: the tokens of the run, such as 2T")
    if options.params is not None:
        return 6.0 * float(options.params) * float(options.tokens)
    shape = model_names.by_name(options.model)
    if shape is None:
        raise WrongUse(f"--model is {options.model!r}; allowed: {', '.join(model_names.DESCRIPTIONS)}")
    if options.seq_len is None:
        raise WrongUse("--seq-len is needed with --model: attention depends on it")
    return flops_per_token(shape, int(options.seq_len)) * float(options.tokens)


def _peak(options: argparse.Namespace) -> float:
    dtype = dtype_of(options.dtype)
    if dtype is None:
        raise WrongUse(f"--dtype is {options.dtype!r}; allowed: {', '.join(DTYPES)}")
    if options.peak_tflops is not None:
        return float(options.peak_tflops) * 1e12
    if options.gpu is None:
        raise WrongUse("--gpu or --peak-tflops is needed")
    found = accelerators.by_name(options.gpu) or accelerators.by_product(options.gpu)
    if found is None:
        products = ", ".join(accelerators.products_like(options.gpu))
        near = f" (there are {products})" if products else ""
        raise WrongUse(
            f"--gpu is {options.gpu!r}, which no table has{near}; allowed: the exact name that nvidia-smi -L prints, "
            "a product such as 'H100 SXM', or --peak-tflops with the dense peak"
        )
    peak = found.peak_flops(dtype)
    if peak is None:
        formats = ", ".join(found.tflops) or "none"
        raise WrongUse(
            f"--dtype is {dtype!r}, for which {found.name} has no verified dense peak; allowed: {formats}"
        )
    return peak


def _amount(text: str) -> float:
    """A number above 0; 70B and 2T are understood."""
    scale = SCALES.get(text[-1:].upper(), 1.0)
    value = _number(text[:-1] if scale != 1.0 else text) * scale
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: a number above 0, such as 8.4e23 or 70B")
    return value


def _share(text: str) -> float:
    value = _ratio(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(
            f"{text!r}; allowed: above 0 and at most 1, or a percentage such as 40%"
        )
    return value


def _spares(text: str) -> float:
    value = _ratio(text)
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: from 0 to 1, or a percentage such as 5%")
    return value


def _whole(text: str) -> int:
    value = _number(text)
    if not (value >= 1.0 and value.is_integer()):
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: a whole number of at least 1")
    return int(value)


def _ratio(text: str) -> float:
    return _number(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)


def _number(text: str) -> float:
    """The number, or NaN, which fits no range."""
    try:
        return float(text)
    except ValueError:
        return math.nan
