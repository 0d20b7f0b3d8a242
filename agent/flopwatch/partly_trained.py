"""FLOPs of a token of a run that trains part of its parameters (LoRA), known by their numbers alone.

A trained weight costs 6 FLOPs a token; a frozen one 4, because it has no gradient of its own.
"""

from flopwatch.documents import Documents
from flopwatch.flops import flops_per_token
from flopwatch.shape import ModelShape

MOST_OF_ALL = 0.99
"""Whoever trains more than this share trains the model: counts differ by what they take for a parameter."""


def is_part(parameters: int | None, trained: int | None) -> bool:
    """Whether the numbers say that only a part is trained."""
    return bool(parameters and trained) and (trained or 0) < MOST_OF_ALL * (parameters or 0)


def of_numbers(parameters: int, trained: int) -> float:
    """FLOPs of a token without a shape: 4 for each parameter, 2 more for each that is trained."""
    return 4.0 * parameters + 2.0 * trained


def of_shape(
    shape: ModelShape,
    length: int,
    convention: str,
    *,
    trained: int,
    documents: Documents | None = None,
) -> float:
    """FLOPs of a token of ``shape`` frozen, with adapters of ``trained`` parameters, whatever their rank.

    Adapters of rank 2 cost twice those of rank 1; without them it is the frozen model. A trained parameter costs 6.
    """
    whole, one, two = (
        float(flops_per_token(each, length, convention, documents=documents))
        for each in (shape, shape.with_lora(1), shape.with_lora(2))
    )
    return whole if one == two else 2.0 * one - two + 6.0 * trained
