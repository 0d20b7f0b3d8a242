"""A replay in this process: batches in, its JSON answer out."""

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.integration.accounting.recorded import NodeTape, batches, lease, loads, sighting, written

from flopwatch.wire import Batch
from flopwatch_collector import replay_command

HOT = {"kernel_active_ratio": 0.9, "process_count": 1, "power_watts": 600.0}
EMPTY = {"kernel_active_ratio": 0.0, "process_count": 0, "power_watts": 70.0}
HELD = {**HOT, "kernel_active_ratio": 0.0}
OK = {"exit_reason": "completed"}


def leased(gpus: int = 1, end: float = 3600.0, *, world: bool = True, interval: float = 60.0) -> NodeTape:
    """A node all of whose GPUs are one job's."""
    tape = NodeTape("a", gpus=gpus, interval=interval)
    sighting(tape, "J", (0, end), world_size=gpus if world else None, user="ada")
    lease(tape, "J", tape.uuids(), (0, end))
    return tape


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
