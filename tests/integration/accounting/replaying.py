"""A replay in this process: batches in, its JSON answer out."""

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.integration.accounting.recorded import NodeTape, batches, loads, written

from flopwatch.wire import Batch
from flopwatch_collector import replay_command


def replay(folder: Path, made: Sequence[Batch], *options: str, **how: Any) -> dict[str, Any]:
    """The answer to recorded batches."""
    file = written(folder / "batches.jsonl", list(made), **how)
    return run(str(file), *options)


def run(*arguments: str) -> dict[str, Any]:
    """The answer of the command."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert replay_command.main([*arguments, "--json"]) == 0
    return loads(out.getvalue())


def buckets(folder: Path, tapes: Sequence[NodeTape], end: float, *options: str) -> dict[str, float]:
    """GPU-seconds by bucket of what nodes told up to a time; those without any are left out."""
    answer = replay(folder, [batch for tape in tapes for batch in batches(tape, end)], *options)
    return {name: amount for name, amount in answer["ledger"]["gpu_seconds"].items() if amount}
