"""What is known of a run, joined from all nodes and sources by trust."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar

from flopwatch import flops, partly_trained
from flopwatch.blocks import ShapeError
from flopwatch.documents import Documents
from flopwatch.query import Basis
from flopwatch.wire import RunFacts

T = TypeVar("T")
TRUST = {"declared": -1, "sdk": 0, "log": 1, "file": 2}
"""What was declared beats what the script told, that what the trainer printed, that what a config file says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run's facts; None is not known by any source."""

    trainer: str | None = None
    shape: dict[str, Any] | None = None
    shape_origin: str | None = None
    parameter_count: int | None = None
    trained_parameters: int | None = None
    """Where fewer than all are trained."""
    reported_flops_per_token: float | None = None
    world_size: int | None = None
    global_batch_size: int | None = None
    sequence_length: int | None = None
    tokens_per_step: int | None = None
    dtype: str | None = None
    dtype_basis: str | None = None
    kind: str = "unknown"
    trainer_peak_flops: float | None = None
    """What the trainer says it divides by, FLOP/s of one GPU."""
    worlds: Mapping[int, int] = field(default_factory=dict)
    """World size by the launch that told it, counted from 0; empty where one was declared for all."""
    declares_step_tokens: bool = False
    """Whether batch, sequence length or tokens of a step were declared: then no step's own count is taken."""

    @property
    def step_tokens(self) -> float | None:
        """Tokens of one step over all ranks: as told, else global batch x sequence length."""
        if self.tokens_per_step is not None:
            return float(self.tokens_per_step)
        if self.global_batch_size is None or self.sequence_length is None:
            return None
        return float(self.global_batch_size * self.sequence_length)


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """FLOPs of one trained token, and what they were made from; no basis has a ``reason``."""

    causal: float | None = None
    palm: float | None = None
    basis: Basis | None = None
    convention: str = "causal"
    reason: str | None = None
    left_out: tuple[str, ...] = ()
    """Second stacks of the shape that are not counted because their tokens are not known."""


def join(facts: Sequence[RunFacts]) -> Run:
    """Each fact from its most trusted source; among equals the newest session's, then the first told."""
    ordered = sorted(facts, key=lambda one: (TRUST[one.source], -one.session))
    shaped = next((one for one in ordered if one.shape), None)
    typed = next((one for one in ordered if one.dtype), None)
    declared = [one for one in ordered if one.source == "declared"]
    worlds = {one.session: one.world_size for one in reversed(ordered) if one.world_size is not None}
    tokens, is_declared = _step_tokens(ordered, declared)
    return Run(
        trainer=_first(ordered, lambda one: one.trainer),
        shape=shaped.shape if shaped else None,
        shape_origin=shaped.origin if shaped else None,
        parameter_count=_first(ordered, lambda one: one.parameter_count),
        trained_parameters=_first(ordered, _trained_part),
        reported_flops_per_token=_first(ordered, lambda one: one.flops_per_token),
        world_size=_first(ordered, lambda one: one.world_size),
        global_batch_size=_first(ordered, lambda one: one.global_batch_size),
        sequence_length=_first(ordered, lambda one: one.sequence_length),
        tokens_per_step=tokens,
        dtype=typed.dtype if typed else None,
        dtype_basis=(typed.dtype_basis or "log") if typed else None,
        kind=next((one.kind for one in ordered if one.kind != "unknown"), "unknown"),
        trainer_peak_flops=_first(ordered, lambda one: one.trainer_peak_flops),
        worlds={} if any(one.world_size for one in declared) else worlds,
        declares_step_tokens=is_declared,
    )


def _step_tokens(ordered: Sequence[RunFacts], declared: Sequence[RunFacts]) -> tuple[int | None, bool]:
    """(tokens of a step, whether declared); a declared batch or sequence length replaces what was told of tokens."""
    told = _first(declared, lambda one: one.tokens_per_step)
    if told is not None:
        return told, True
    batch = _first(ordered, lambda one: one.global_batch_size)
    length = _first(ordered, lambda one: one.sequence_length)
    if batch and length and any(one.global_batch_size or one.sequence_length for one in declared):
        return batch * length, True
    return _first(ordered, lambda one: one.tokens_per_step), False


def _trained_part(facts: RunFacts) -> int | None:
    """Trained parameters by who told that others are not."""
    trained = facts.trained_parameter_count
    return trained if partly_trained.is_part(facts.parameter_count, trained) else None


def _first(facts: Sequence[RunFacts], value: Callable[[RunFacts], T | None]) -> T | None:
    return next((known for one in facts if (known := value(one)) is not None), None)


def work_of(run: Run, document_length: float | None = None) -> Work:
    """FLOPs per token of a run, causal and PaLM, from the best basis there is.

    ``document_length`` is of packed data: the sum of squared document lengths over their tokens. Attention stays
    inside a document, so the exact count is that of this length; PaLM's takes whole sequences.
    """
    work = Work(reason="no_shape")
    if run.shape is not None:
        work = _from_shape(
            json.dumps(run.shape, sort_keys=True),
            run.sequence_length,
            document_length,
            run.trained_parameters,
        )
        if work.reason is None:
            return work
    if run.parameter_count and run.trained_parameters:
        causal = partly_trained.of_numbers(run.parameter_count, run.trained_parameters)
        return Work(causal=causal, basis="steps+params", convention="4N+2T")
    if run.parameter_count:
        return Work(causal=6.0 * run.parameter_count, basis="steps+params", convention="6N")
    if run.reported_flops_per_token:
        return Work(causal=run.reported_flops_per_token, basis="steps+reported", convention="reported")
    return work


@lru_cache(maxsize=4096)
def shape_of(text: str) -> flops.ModelShape:
    """The shape that a run told, as JSON.

    Raises:
        ShapeError: it is not understood.
    """
    return flops.ModelShape.from_dict(json.loads(text))


@lru_cache(maxsize=4096)
def _from_shape(
    text: str, sequence_length: int | None, document_length: float | None, trained: int | None
) -> Work:
    """By value, because a shape costs more to count than to look up."""
    try:
        shape = shape_of(text)
        if any(stack.name == "encoder" for stack in shape.stacks):
            return Work(reason="no_encoder_tokens")
        left_out = tuple(stack.name for stack in shape.stacks)
        shape = replace(shape, stacks=())
        length = sequence_length or shape.seq_len or (round(document_length) if document_length else None)
        if not length:
            return Work(reason="no_sequence_length")
        documents = None if document_length is None else packed(document_length)
        if trained is not None and shape.finetuning is None:
            causal = partly_trained.of_shape(shape, length, "causal", trained=trained, documents=documents)
            palm = partly_trained.of_shape(shape, length, "palm", trained=trained)
        else:
            causal = flops.flops_per_token(shape, length, "causal", documents=documents)
            palm = flops.flops_per_token(shape, length, "palm")
    except ShapeError:
        return Work(reason="no_shape")
    return Work(causal=float(causal), palm=float(palm), basis="steps+shape", left_out=left_out)


def packed(document_length: float) -> Documents:
    """Packed documents whose tokens are, on average, in one of that length."""
    return Documents(tokens=1.0, squared_tokens=max(1.0, document_length))
