"""Model FLOPs per trained token, by convention; hardware FLOPs (with recompute) apart from them.

shape = ModelShape.from_hf_config(config)
flops_per_token(shape, 8192)            # the default: causal
flops_per_token(shape, 8192, "palm")
"""

from collections.abc import Mapping
from typing import Literal

from flopwatch.conventions import CONVENTIONS, DEFAULT_CONVENTION, Convention, korthikanti_hardware
from flopwatch.documents import Documents, StackTokens
from flopwatch.exact import Counting, Run, count
from flopwatch.shape import ModelShape

__all__ = [
    "Documents",
    "ModelShape",
    "StackTokens",
    "convention",
    "flops_per_token",
    "hardware_flops_per_token",
]

Recompute = Literal["none", "selective", "full"]
FULL_RECOMPUTE = 4 / 3


def convention(name: str) -> Convention:
    """The convention of that name.

    Raises:
        ValueError: there is none.
    """
    found = CONVENTIONS.get(name)
    if found is None:
        raise ValueError(f"convention is {name!r}; allowed: {', '.join(CONVENTIONS)}")
    return found


def flops_per_token(
    shape: ModelShape,
    seq_len: float,
    convention: str = DEFAULT_CONVENTION,
    *,
    documents: Documents | None = None,
    stacks: Mapping[str, StackTokens] | None = None,
) -> float:
    """FLOPs per trained token, forward and backward, recompute left out (``eq3`` and ``torch_flash`` hold it).

    ``causal``: 6 * (weights of every matmul a token passes, logits once, embedding look-up not, only the
    routed and shared experts) + 6*L*H*d*s for causal attention (half of the square; windows exact) + scans;
    what Megatron-LM since 2025-03, NeMo and MaxText count. ``palm``: 6*N + 12*L*H*d*s. All names, formulas
    and sources: ``flopwatch.conventions.CONVENTIONS``.

    Args:
        shape: the model.
        seq_len: tokens of a sequence; fixes s in every formula.
        convention: one of ``CONVENTIONS``.
        documents: documents packed into the sequences; the exact conventions attend inside each only.
        stacks: tokens of the shape's second stacks (``encoder``, ``vision``), by name.

    Raises:
        ValueError: an unknown convention, a length below 1, or (``TokensUnknown``) a stack without token count.
    """
    return _convention(convention).count(shape, _run(seq_len, documents, stacks))


_convention = convention


def _run(seq_len: float, documents: Documents | None, stacks: Mapping[str, StackTokens] | None) -> Run:
    if not seq_len >= 1:
        raise ValueError(f"seq_len is {seq_len!r}; allowed: 1 or more")
    return Run(seq_len=seq_len, documents=documents or Documents.unpacked(seq_len), stacks=stacks or {})


def hardware_flops_per_token(
    shape: ModelShape,
    seq_len: float,
    recompute: Recompute,
    convention: str = DEFAULT_CONVENTION,
    *,
    documents: Documents | None = None,
) -> float:
    """FLOPs per trained token with the recompute that is really run: for HFU, never for MFU.

    ``full``: one more forward, 4/3 of the model FLOPs. ``selective``: the attention core once more, 4/3 of
    its term; under ``k22`` the paper's own s/3h term. A convention that already holds recompute is unchanged.

    Raises:
        ValueError: an unknown convention or recompute, or selective recompute under a convention whose
            attention term cannot be told apart.
    """
    run = _run(seq_len, documents, None)
    chosen = _convention(convention)
    model = chosen.count(shape, run)
    if recompute == "none" or chosen.counts_recompute:
        return model
    if recompute == "full":
        return model * FULL_RECOMPUTE
    if recompute != "selective":
        raise ValueError(f"recompute is {recompute!r}; allowed: none, selective, full")
    if convention == "k22":
        return korthikanti_hardware(shape, run)
    full = chosen.attention == "full"
    core = count(shape, run, Counting(full_attention=full)).core if chosen.attention != "none" else 0.0
    return model + core / 3
