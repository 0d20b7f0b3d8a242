"""What a log reader found, as datagrams for the agent's SDK socket: the form of ``StepReporter``, marked as a log's.

Pure. ``sdk_messages`` reads them.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from flopwatch.wire import Phase, RunFacts, StepRecord
from flopwatch_agent.trainers import to_wire
from flopwatch_agent.trainers.rows import Output

STEP_KEYS = (
    "step", "end_time_seconds", "seconds", "steps_covered", "basis", "resolution_seconds", "rank", "session", "tokens",
    "padded_tokens", "loss", "skipped_steps", "steady", "why_not_steady", "reported_flops_per_gpu",
    "reported_mfu_ratio", "data_wait_seconds",
)  # fmt: skip
PHASE_KEYS = ("kind", "begin_seconds", "end_seconds", "session", "step", "blocking", "committed")
RUN_KEYS = tuple(
    field.name for field in dataclasses.fields(RunFacts) if field.name not in ("source", "dtype_basis")
)


def messages(output: Output, source_id: str) -> Iterator[dict[str, Any]]:
    """One message a fact, step and phase, the facts first."""
    for facts in output.runs:
        yield _message("run", facts, RUN_KEYS, source_id)
    for record in to_wire.steps(output, job="", source_id=source_id):
        yield _message("step", record, STEP_KEYS, source_id)
    for phase in to_wire.phases(output, job="", source_id=source_id):
        yield _message("phase", phase, PHASE_KEYS, source_id)


def _message(
    event: str, value: RunFacts | StepRecord | Phase, keys: tuple[str, ...], source_id: str
) -> dict[str, Any]:
    known = {key: item for key in keys if (item := getattr(value, key)) is not None}
    return {"event": event, "source": "log", "log_id": source_id, **known}
