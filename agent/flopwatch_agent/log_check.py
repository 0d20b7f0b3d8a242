"""``flopwatch logs check FILE``: what the log reader makes of a file, row for row."""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flopwatch_agent.log_formats import configured_formats
from flopwatch_agent.trainers import derive
from flopwatch_agent.trainers.facts import Fact
from flopwatch_agent.trainers.reader import KINDS, LogReader
from flopwatch_agent.trainers.rows import Parsed, Row
from flopwatch_agent.trainers.userformat import UserFormat, user_format

SCHEMA = "trainer-log-expected/1"
CHUNK_BYTES = 1 << 20
SHOWN_ROWS = 20

_KIND_OF_SUFFIX = {".jsonl": "jsonl", ".csv": "csv", ".prom": "prometheus", ".metric": "metric-file"}
_RUN_NAMES = {
    "micro_batch_size": "micro_batch_size", "gradient_accumulation_steps": "gradient_accumulation_steps",
    "seq_length": "seq_length", "total_steps": "total_steps", "log_interval": "log_interval",
    "data_parallel": "data_parallel", "tensor_parallel": "tensor_parallel",
    "pipeline_parallel": "pipeline_parallel", "context_parallel": "context_parallel",
    "expert_parallel": "expert_parallel", "flops_per_token": "flops_per_token_printed",
    "peak_flops": "peak_flops_used_by_trainer", "device_name": "device_name",
}  # fmt: skip


def main(argv: list[str]) -> int:
    """Read a log and print its rows; 0 when a trainer was recognised, 1 when not, 2 for wrong use."""
    arguments = _parser().parse_args(argv)
    try:
        forms = _user_formats(arguments)
        parsed = read_file(arguments.file, kind=arguments.kind, forms=forms)
    except OSError as error:
        sys.stderr.write(f"flopwatch: {error.filename} cannot be read: {error.strerror}\n")
        return 2
    except ValueError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 2
    if arguments.json:
        document = as_document(parsed, arguments.file.name)
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(as_text(parsed, every_row=arguments.all) + "\n")
    return 0 if parsed.steps else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch logs", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="what the log reader makes of a file")
    check.add_argument("file", type=Path)
    check.add_argument("--json", action="store_true", help="all rows, sessions and findings as JSON")
    check.add_argument("--all", action="store_true", help=f"print every row, not only {SHOWN_ROWS}")
    check.add_argument(
        "--kind", choices=KINDS, default="auto", help="the file's format (default: by name and content)"
    )
    check.add_argument("--format", help="an in-house trainer's step line: expression with named groups")
    check.add_argument("--unit", action="append", default=[], metavar="GROUP=UNIT", help="unit of a group")
    check.add_argument(
        "--config", type=Path, help="settings file whose [[agent.log_format]] is used (default: the system's)"
    )
    return parser


def _user_formats(arguments: argparse.Namespace) -> tuple[UserFormat, ...]:
    """The format of the command line, else those of the settings file.

    Raises:
        ValueError: one of them cannot be used.
    """
    if arguments.format is None:
        return configured_formats(arguments.config, os.environ)
    units = {}
    for pair in arguments.unit:
        name, separator, unit = pair.partition("=")
        if not separator:
            raise ValueError(f"--unit is {pair!r}; allowed: GROUP=UNIT")
        units[name] = unit
    return (user_format(arguments.format, units),)


def read_file(path: Path, *, kind: str = "auto", forms: tuple[UserFormat, ...] = ()) -> Parsed:
    """Everything a file tells.

    Raises:
        OSError: it cannot be read.
    """
    chosen = _KIND_OF_SUFFIX.get(path.suffix, "auto") if kind == "auto" else kind
    reader = LogReader(kind=chosen, user_formats=forms)
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            reader.feed(data, None)
    reader.finish()
    return reader.everything()


def as_document(parsed: Parsed, file_name: str) -> dict[str, Any]:
    """The JSON of ``--json``: units and names as in ``docs/trainer_logs.md``."""
    run = run_document(parsed)
    return {
        "schema": SCHEMA,
        "file": file_name,
        "framework": parsed.family,
        "run": run,
        "sessions": [
            {
                "session": info.session,
                "resumed": info.resumed_from_step is not None,
                "resumed_from_step": info.resumed_from_step,
                "lost_steps": info.lost_steps,
            }
            for info in parsed.sessions
        ],
        "steps": [row_document(row) for row in parsed.steps],
        "rollouts": [dict(rollout) for rollout in parsed.rollouts],
        "phases": [
            {
                "kind": mark.kind,
                "session": mark.session,
                "after_step": mark.after_step,
                "seconds": mark.seconds,
            }
            for mark in parsed.phases
        ],
        "findings": [
            {"code": found.code, "text": found.text, "values": dict(found.values)}
            for found in parsed.findings
        ],
        "not_found": missing(run),
    }


def row_document(row: Row) -> dict[str, Any]:
    """One row of the JSON."""
    document: dict[str, Any] = {
        "step": row.step,
        "step_time_s": row.step_seconds,
        "tokens": row.tokens,
        "tflops_per_gpu": row.tflops_per_gpu,
        "loss": row.loss,
        "steps_covered": row.steps_covered,
        "basis": row.basis,
        "session": row.session,
        "superseded": row.superseded,
        "steady": row.steady,
        "why_not_steady": row.why_not_steady,
        "mfu": row.mfu,
        "tokens_per_s_per_gpu": row.tokens_per_second_per_gpu,
        "skipped_iterations": row.skipped_steps,
    }
    optional = {
        "hfu": row.hfu,
        "printed_step_time_s": row.printed_step_seconds,
        "samples": row.samples,
        "end_time_s": row.end_time_seconds,
        "data_wait_s": row.data_wait_seconds,
        **row.extras,
    }
    return document | {name: value for name, value in optional.items() if value is not None}


def run_document(parsed: Parsed) -> dict[str, Any]:
    """What the file says of the run; the shape also where an argument block, a configuration or the SDK told it."""
    facts = parsed.facts[0] if parsed.facts else {}
    plain: dict[str, Fact] = {
        name: value for name, value in facts.items() if isinstance(value, int | float | str)
    }
    document: dict[str, Any] = {
        "world_size": derive.world_size(plain),
        "global_batch_size": derive.global_batch_size(plain),
        "tokens_per_step": derive.tokens_per_step(plain),
        "num_params_printed": derive.parameter_count(plain),
        "precision": derive.precision(plain),
        "model": derive.shape(plain) or next((run.shape for run in parsed.runs if run.shape), None),
    }
    document.update({key: plain[name] for name, key in _RUN_NAMES.items() if name in plain})
    return document


def missing(run: Mapping[str, Any]) -> list[str]:
    """What an MFU needs and the file does not tell."""
    wanted = {
        "model shape": run["model"], "parameter count": run["num_params_printed"], "world size": run["world_size"],
        "tokens per step": run["tokens_per_step"], "number format": run["precision"],
    }  # fmt: skip
    return [name for name, value in wanted.items() if value is None]


def as_text(parsed: Parsed, *, every_row: bool) -> str:
    """The report for people."""
    run = run_document(parsed)
    rows = parsed.steps if every_row else parsed.steps[:SHOWN_ROWS]
    lines = [f"trainer: {parsed.family or 'none recognised'}; {len(parsed.steps)} rows"]
    lines += [f"  {name}: {value}" for name, value in run.items() if value is not None]
    lines += [
        f"session {info.session}: resumed from step {info.resumed_from_step}" for info in parsed.sessions
    ]
    lines.append(f"{'step':>9} {'seconds':>12} {'covers':>6} {'tokens':>12} {'loss':>10}  basis")
    lines += [_row_line(row) for row in rows]
    if len(rows) < len(parsed.steps):
        lines.append(f"  ... {len(parsed.steps) - len(rows)} more (--all)")
    lines += [f"finding {found.code}: {found.text}" for found in parsed.findings]
    absent = missing(run)
    if absent:
        lines.append("not found: " + ", ".join(absent))
    return "\n".join(lines)


def _row_line(row: Row) -> str:
    seconds = "unknown" if row.step_seconds is None else f"{row.step_seconds:.6g}"
    tokens = "unknown" if row.tokens is None else f"{row.tokens:.0f}"
    notes: list[str] = [row.basis]
    if row.superseded:
        notes.append("superseded")
    if row.why_not_steady:
        notes.append(f"not steady: {row.why_not_steady}")
    covered = "?" if row.steps_covered is None else row.steps_covered
    return f"{row.step:>9} {seconds:>12} {covered:>6} {tokens:>12} {row.loss!s:>10}  {'; '.join(notes)}"
