"""``flopwatch job set|unset|show JOB``: what is known of a job and from where, and what you declare of it."""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

from flopwatch import model_names
from flopwatch.accelerator import DTYPES
from flopwatch.collector_client import Address, AskError, add_address, address_from, ask
from flopwatch.wire import JobKind

OPTIONS = {
    "model": "model", "name": "name", "kind": "kind", "target": "mfu_target_ratio", "parameters": "parameter_count",
    "gpus": "world_size", "global_batch": "global_batch_size", "seq_len": "sequence_length",
    "tokens_per_step": "tokens_per_step", "dtype": "dtype",
    "gpu_hours": "declared_gpu_hours", "tracker": "tracker_url",
}  # fmt: skip
"""Option, and the fact of the API that it sets."""
SHOWN_CHARACTERS = 60


class WrongUse(Exception):
    """An option cannot be used; the message has its name, its value and what is allowed."""


def main(argv: list[str]) -> int:
    """Run the command; 0, 1 when the collector cannot be asked or refuses, 2 for wrong use."""
    options = _parser().parse_args(argv)
    try:
        address = address_from(options.url, options.token_file, os.environ)
        document = _run(options, address)
    except WrongUse as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 2
    except AskError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 1
    sys.stdout.write(
        json.dumps(document, indent=1) + "\n" if options.json else as_text(document, time.time())
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch job", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    declare = commands.add_parser("set", help="declare facts: they beat what was found")
    unset = commands.add_parser("unset", help="forget declared facts: what was found counts again")
    show = commands.add_parser("show", help="every fact: whose word counts, and what each source says")
    for command in (declare, unset, show):
        command.add_argument("job", metavar="JOB", help="the job's id, its id at the scheduler, or its name")
        command.add_argument("--json", action="store_true", help="print JSON")
        add_address(command)
    unset.add_argument(
        "facts",
        nargs="+",
        metavar="FACT",
        type=lambda text: text.strip("-").replace("-", "_"),
        choices=tuple(OPTIONS),
        help=", ".join(OPTIONS),
    )
    _add_facts(declare.add_argument_group("facts").add_argument)
    return parser


def _add_facts(add: Any) -> None:
    names = ", ".join(model_names.DESCRIPTIONS)
    add("--model", metavar="NAME|FILE", help=f"a config.json, a shape as JSON, or one of {names}")
    add("--name", help="what people call the job")
    add("--kind", choices=get_args(JobKind), help="what kind of job it is: targets and alerts depend on it")
    add("--target", "--mfu-target", type=_ratio, metavar="RATIO", help="MFU target: 0.45 or 45%%")
    add("--parameters", type=_count, metavar="N", help="parameter count, used where no shape is known")
    add("--gpus", type=_count, metavar="N", help="GPUs of the whole run")
    add("--global-batch", type=_count, metavar="N", help="sequences of one optimizer step over all ranks")
    add("--seq-len", type=_count, metavar="N", help="tokens of one sequence")
    add("--tokens-per-step", type=_count, metavar="N", help="tokens of one optimizer step over all ranks")
    add("--gpu-hours", type=_count, metavar="N", help="GPU-hours that the job may take; more is told")
    add("--tracker", metavar="URL", help="the run on the trainer's own dashboard: its page links there")
    add("--dtype", help=f"number format of the matmuls: {', '.join(DTYPES)}")


def _ratio(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(
            f"{text!r}; allowed: above 0 and at most 1, or a percentage such as 45%"
        )
    return value


def _count(text: str) -> int:
    """A whole number of at least 1; 70B and 4M are understood."""
    scale = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}.get(text[-1:].upper(), 1)
    try:
        value = float(text if scale == 1 else text[:-1]) * scale
    except ValueError:
        value = 0.0
    if not 1.0 <= value < 1 << 50 or not value.is_integer():
        raise argparse.ArgumentTypeError(
            f"{text!r}; allowed: a whole number of at least 1, such as 4096 or 70B"
        )
    return int(value)


def _run(options: argparse.Namespace, address: Address) -> Mapping[str, Any]:
    """The job's facts after what was asked for."""
    body = declared(options) if options.command == "set" else {}
    path = f"/api/v1/jobs/{quote(job_id(address, options.job), safe='')}/facts"
    if options.command == "set":
        return dict(ask(address, "PUT", path, body))
    if options.command == "unset":
        for name in options.facts:
            document = ask(address, "DELETE", f"{path}/{OPTIONS[name]}")
        return dict(document)
    return dict(ask(address, "GET", path))


def declared(options: argparse.Namespace) -> dict[str, Any]:
    """The facts that the options give, named as in the API.

    Raises:
        WrongUse: there is none, or the model's file cannot be used.
    """
    given = {fact: value for name, fact in OPTIONS.items() if (value := getattr(options, name)) is not None}
    if not given:
        names = ", ".join("--" + name.replace("_", "-") for name in OPTIONS)
        raise WrongUse(f"nothing to set; allowed: one or more of {names}")
    if "model" in given:
        given["model"] = _model(given["model"])
    return given


def _model(text: str) -> str | dict[str, Any]:
    """A known name as it is, else the object in the file, or in ``config.json`` of the folder."""
    if text.strip().lower() in model_names.DESCRIPTIONS:
        return text
    path = Path(text) / "config.json" if Path(text).is_dir() else Path(text)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        known = ", ".join(model_names.DESCRIPTIONS)
        raise WrongUse(
            f"--model is {text!r} ({error.strerror}); allowed: a readable file, or one of {known}"
        ) from error
    except ValueError as error:
        raise WrongUse(f"--model is {text!r}; allowed: a JSON file ({error})") from error
    if not isinstance(document, dict):
        raise WrongUse(f"--model is {text!r}; allowed: a JSON file that holds an object")
    return document


def job_id(address: Address, asked: str) -> str:
    """The id of the job that is meant: its own, else the scheduler's id or the name of exactly one job.

    Raises:
        AskError: there is no such job, or there are several.
    """
    jobs = ask(address, "GET", "/api/v1/jobs?limit=10000")["jobs"]
    for key in ("job_id", "scheduler_job_id", "name"):
        fitting = [job["job_id"] for job in jobs if job[key] == asked]
        if len(fitting) == 1:
            return str(fitting[0])
        if fitting:
            raise AskError(
                f"{len(fitting)} jobs have the {key} {asked!r}: name one of {', '.join(fitting[:10])}"
            )
    raise AskError(f"there is no job {asked!r}; flopwatch knows {len(jobs)} jobs", 404)


def as_text(document: Mapping[str, Any], now: float) -> str:
    """The facts for people: a line each, and under it what other sources say."""
    lines = [f"job {document['job_id']}"]
    for entry in document["facts"]:
        entry_lines = [
            f"{_value(word['value'])}  ({word['source']}: {word['origin']})" for word in entry["found"]
        ]
        if entry["declared"] is not None:
            entry_lines.insert(0, _declared_line(entry["declared"], now))
        first = entry_lines[0] if entry_lines else "unknown"
        lines.append(f"  {entry['fact']:<18} {first}")
        lines += [f"  {'':<18} not used: {line}" for line in entry_lines[1:]]
    return "\n".join(lines) + "\n"


def _declared_line(declared: Mapping[str, Any], now: float) -> str:
    by = f" by {declared['declared_by']}" if declared["declared_by"] else ""
    minutes = max(0.0, now - declared["declared_seconds"]) / 60
    return f"{_value(declared['value'])}  ({declared['origin']}{by}, {minutes:.0f} min ago)"


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
