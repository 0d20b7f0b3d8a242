"""From an SDK datagram to what travels: only known keys, only values of the right kind. Pure."""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from flopwatch.wire import JobKind, Phase, PhaseKind, RunFacts, SourceKind, StepBasis, StepRecord

CLAIMS = ("job", "job_id", "uid", "pid", "user")
"""What a message may say of its sender and the kernel knows better."""
RUN_TEXT = ("trainer", "dtype", "activation_recompute")
RUN_WHOLE = (
    "parameter_count", "world_size", "global_batch_size", "sequence_length", "tokens_per_step", "tensor_parallel",
    "pipeline_parallel", "context_parallel", "expert_parallel", "data_parallel", "micro_batches",
    "pipeline_chunks",
)  # fmt: skip
LOG_ID = re.compile(r"file:[0-9a-f]{24}")
MAX_TEXT = 128
MAX_WHOLE = 1 << 60


class MessageError(ValueError):
    """A datagram is not one of ours; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobWords:
    """What a run message declares for the job as a whole."""

    name: str | None = None
    mfu_target_ratio: float | None = None
    kind: JobKind | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SdkMessage:
    """One understood message: exactly one of the three is there."""

    step: StepRecord | None = None
    phase: Phase | None = None
    run: RunFacts | None = None
    words: JobWords | None = None
    claims: int = 0
    """Keys that claimed an identity and were ignored."""
    unsent_steps: int = 0


def understood(body: bytes, job: str, source_id: str) -> SdkMessage:
    """The message in a datagram, for a job that the kernel told.

    Raises:
        MessageError: it is not JSON, not one of ours, or a needed value is missing or wrong.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MessageError("not JSON") from error
    if not isinstance(message, dict):
        raise MessageError("not a JSON object")
    claims = sum(key in message for key in CLAIMS)
    readers = {"step": _step, "phase": _phase, "run": _run}
    log_id = text(message, "log_id")
    if is_of_a_log(message) and log_id is not None and LOG_ID.fullmatch(log_id):
        source_id = log_id
    event = message.get("event")
    if not isinstance(event, str) or event not in readers:
        raise MessageError(f"event is not one of {', '.join(readers)}")
    return dataclasses.replace(readers[event](message, job, source_id), claims=claims)


def _step(message: Mapping[str, Any], job: str, source_id: str) -> SdkMessage:
    step = whole(message, "step")
    end = real(message, "end_time_seconds")
    if step is None or end is None:
        raise MessageError("a step needs step and end_time_seconds")
    loss = message.get("loss")
    record = StepRecord(
        job=job,
        source=source_of(message),
        source_id=source_id,
        step=step,
        end_time_seconds=end,
        seconds=real(message, "seconds"),
        steps_covered=max(1, whole(message, "steps_covered") or 1),
        resolution_seconds=1e-6,
        rank=whole(message, "rank"),
        session=_session(message),
        tokens=whole(message, "tokens"),
        padded_tokens=whole(message, "padded_tokens"),
        sum_squared_document_tokens=real(message, "sum_squared_document_tokens"),
        loss=loss if loss in ("inf", "-inf", "nan") else real(message, "loss", signed=True),
        skipped_steps=whole(message, "skipped_steps") or 0,
        steady=message.get("steady") is not False,
        why_not_steady="declared by the script" if message.get("steady") is False else None,
        data_wait_seconds=real(message, "data_wait_seconds"),
    )
    if is_of_a_log(message):
        record = _as_logged(record, message)
    if record.seconds is None:
        record = dataclasses.replace(record, basis="none", resolution_seconds=None)
    return SdkMessage(step=record, unsent_steps=whole(message, "unsent_steps") or 0)


def _as_logged(record: StepRecord, message: Mapping[str, Any]) -> StepRecord:
    """The record with what a log reader knows of its time and the SDK does not need to say."""
    told = message.get("basis")
    basis: StepBasis = next((item for item in get_args(StepBasis) if item == told), "none")
    why = text(message, "why_not_steady")
    return dataclasses.replace(
        record,
        basis=basis,
        resolution_seconds=real(message, "resolution_seconds"),
        why_not_steady=None if record.steady else why or "as the log's reader says",
        reported_flops_per_gpu=real(message, "reported_flops_per_gpu"),
        reported_mfu_ratio=real(message, "reported_mfu_ratio"),
    )


def _phase(message: Mapping[str, Any], job: str, source_id: str) -> SdkMessage:
    kind = message.get("kind")
    begin = real(message, "begin_seconds")
    known: PhaseKind | None = next((item for item in get_args(PhaseKind) if item == kind), None)
    if known is None or begin is None:
        raise MessageError(f"a phase needs begin_seconds and a kind of {', '.join(get_args(PhaseKind))}")
    committed = message.get("committed")
    phase = Phase(
        job=job,
        kind=known,
        begin_seconds=begin,
        end_seconds=real(message, "end_seconds"),
        source=source_of(message),
        source_id=source_id,
        session=_session(message),
        step=whole(message, "step"),
        blocking=message.get("blocking") is not False,
        committed=committed if isinstance(committed, bool) else None,
    )
    return SdkMessage(phase=phase)


def _run(message: Mapping[str, Any], job: str, source_id: str) -> SdkMessage:  # noqa: ARG001 - one form for all three
    shape = message.get("shape")
    kind: JobKind | None = next((item for item in get_args(JobKind) if item == message.get("kind")), None)
    texts = {key: text(message, key) for key in RUN_TEXT}
    wholes = {key: whole(message, key) or None for key in RUN_WHOLE}
    logged = is_of_a_log(message)
    run = RunFacts(
        source=source_of(message),
        origin=text(message, "origin") or "log" if logged else "SDK",
        session=_session(message),
        shape=shape if isinstance(shape, dict) else None,
        parameter_count_includes_embeddings=message.get("parameter_count_includes_embeddings") is not False,
        flops_per_token=real(message, "flops_per_token"),
        trainer_peak_flops=real(message, "trainer_peak_flops"),
        dtype_basis=("log" if logged else "declared") if texts["dtype"] else None,
        kind=kind or "unknown",
        **texts,  # type: ignore[arg-type]  # text fields by name
        **wholes,  # type: ignore[arg-type]  # whole fields by name
    )
    target = real(message, "mfu_target_ratio")
    words = JobWords(
        name=text(message, "job_name"),
        mfu_target_ratio=target if target is not None and 0.0 < target <= 1.0 else None,
        kind=kind,
    )
    return SdkMessage(run=run, words=None if logged else words)


def source_of(message: Mapping[str, Any]) -> SourceKind:
    """The SDK, or the log that ``flopwatch tail`` reads: a message may say that it is less than the SDK's."""
    return "log" if is_of_a_log(message) else "sdk"


def is_of_a_log(message: Mapping[str, Any]) -> bool:
    """Whether ``flopwatch tail`` sent the message."""
    return message.get("source") == "log"


def _session(message: Mapping[str, Any]) -> int:
    """The launch within the log; a script is one launch."""
    return (whole(message, "session") or 0) if is_of_a_log(message) else 0


def whole(message: Mapping[str, Any], key: str) -> int | None:
    """A whole number of 0 or more; None when it is missing or something else."""
    value = message.get(key)
    return value if type(value) is int and 0 <= value <= MAX_WHOLE else None


def real(message: Mapping[str, Any], key: str, *, signed: bool = False) -> float | None:
    """A finite number, of 0 or more unless ``signed``; None when it is missing or something else."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return (
        float(value) if abs(value) < MAX_WHOLE and math.isfinite(value) and (signed or value >= 0) else None
    )


def text(message: Mapping[str, Any], key: str) -> str | None:
    """A short printable text; None when it is missing or something else."""
    value = message.get(key)
    return value if isinstance(value, str) and 0 < len(value) <= MAX_TEXT and value.isprintable() else None
