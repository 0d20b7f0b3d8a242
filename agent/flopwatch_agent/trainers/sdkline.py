"""The line that ``StepReporter`` prints to standard error where there is no socket: ``flopwatch: {json}``."""

import json
from collections.abc import Mapping
from typing import Any

from flopwatch_agent.trainers.clocks import Stamp
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.grammar import Grammar, anchor
from flopwatch_agent.trainers.marks import Mark
from flopwatch_agent.trainers.reading import Origin

SDK_LINE = Grammar(
    family="flopwatch SDK", anchor=anchor(r"(?!)"), order=("printed",), pauses_outside=True, reported=True
)

_PREFIX = "flopwatch: "
_RUN_KEYS = {
    "world_size": "world_size", "global_batch_size": "global_batch_size", "sequence_length": "seq_length",
    "tokens_per_step": "tokens_per_step", "parameter_count": "num_params", "flops_per_token": "flops_per_token",
    "dtype": "dtype", "tensor_parallel": "tensor_parallel", "pipeline_parallel": "pipeline_parallel",
    "context_parallel": "context_parallel", "expert_parallel": "expert_parallel",
    "data_parallel": "data_parallel", "activation_recompute": "recompute_granularity",
    "micro_batches": "pipeline_microbatches", "pipeline_chunks": "pipeline_chunks",
}  # fmt: skip
_STEP_NUMBERS = (("step", "step"), ("skipped_steps", "skipped"))
_STEP_SUMS = (("seconds", "seconds"), ("tokens", "tokens"), ("data_wait_seconds", "data_seconds"))


def take_sdk_line(engine: Engine, text: str, origin: Origin) -> bool:
    """Whether the text is such a line; what it says goes to the engine."""
    document = _document(text)
    if document is None:
        return False
    event = document.get("event", "step" if "step" in document else "run")
    if event == "run":
        _take_run(engine, document)
    elif event == "phase":
        _take_phase(engine, document, origin)
    elif event == "step":
        _take_step(engine, document, origin)
    return True


def _document(text: str) -> dict[str, Any] | None:
    begin = text.find(_PREFIX + "{")
    try:
        document, _ = json.JSONDecoder().raw_decode(text, begin + len(_PREFIX))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _take_run(engine: Engine, document: Mapping[str, Any]) -> None:
    for key, name in _RUN_KEYS.items():
        value = document.get(key)
        if isinstance(value, int | float | str):
            engine.book.set(name, value, "SDK line")
    shape = document.get("shape")
    if isinstance(shape, dict):
        engine.book.shape = shape
    resumed = _number(document, "resumed_from_step")
    if resumed is not None:
        engine.mark(Mark(kind="resume", step=int(resumed)))


def _take_phase(engine: Engine, document: Mapping[str, Any], origin: Origin) -> None:
    kind = document.get("kind")
    if kind not in ("eval", "checkpoint"):
        return
    begin, end = _number(document, "begin_seconds"), _number(document, "end_seconds")
    seconds = end - begin if begin is not None and end is not None else None
    mark = Mark(
        kind="eval" if kind == "eval" else "checkpoint",
        seconds=seconds,
        done=bool(document.get("committed", end is not None)),
    )
    engine.mark(mark, _at(origin, end))


def _take_step(engine: Engine, document: Mapping[str, Any], origin: Origin) -> None:
    step = document.get("step")
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        return
    count = max(int(_number(document, "steps_covered") or 1), 1)
    values = {"covered": float(count)}
    for key, quantity in _STEP_NUMBERS:
        value = _number(document, key)
        if value is not None:
            values[quantity] = value
    for key, quantity in _STEP_SUMS:
        value = _number(document, key)
        if value is not None:
            values[quantity] = value / count
    loss = document.get("loss")
    if isinstance(loss, int | float) or loss in ("nan", "inf", "-inf"):
        values["loss"] = float(loss)
    rank = _number(document, "rank")
    origin = _at(origin, _number(document, "end_time_seconds"))
    if rank is not None:
        origin = Origin(stamp=origin.stamp, arrived_at_seconds=origin.arrived_at_seconds, rank=int(rank))
    engine.offer(SDK_LINE, values, family=SDK_LINE.family, origin=origin)


def _number(document: Mapping[str, Any], key: str) -> float | None:
    value = document.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _at(origin: Origin, seconds: float | None) -> Origin:
    if seconds is None:
        return origin
    stamp = Stamp(seconds=seconds, dated=True, zoned=True)
    return Origin(stamp=stamp, arrived_at_seconds=origin.arrived_at_seconds, rank=origin.rank)
