"""Known ways in which other tools count a run differently: for each, the factor on this run's figure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from flopwatch.accelerator import Accelerator
from flopwatch.accelerators import ACCELERATORS
from flopwatch.blocks import Attention, Block, DenseMlp, LatentAttention, Mask, MoeMlp
from flopwatch.conventions import CONVENTIONS, DEFAULT_CONVENTION
from flopwatch.exact import Counting, Run, count
from flopwatch.mfu_findings import Hypothesis
from flopwatch.shape import ModelShape

A100_FALLBACK_FLOPS = 312e12
CONVENTION_TEXTS = {
    "full": "causal attention counted in full",
    "mcore_causal_nomtp": "the multi-token-prediction block is not counted",
    "matmul_only": "attention is not counted",
    "palm": "6N with embeddings and full attention (PaLM)",
    "titan": "6N without the embedding and full attention (torchtitan)",
    "foundry": "6N with embeddings and full attention on the hidden width (llm-foundry)",
    "six_n": "6N, attention not counted",
    "hf_trainer": "all experts counted, attention not (Hugging Face Trainer)",
    "llm_c": "6N with embeddings (llm.c)",
    "verl": "the embedding counted as a matmul (veRL)",
    "llama_factory": "one dense MLP instead of the experts (LLaMA-Factory)",
    "eq3": "recompute counted as work (Megatron-LM 2021)",
    "torch_flash": "what a flash kernel's backward runs, counted by torch",
}


RECOMPUTE = Hypothesis(code="recompute", factor=4 / 3, text="activation recompute counted as work (4/3)")
UNDECLARED_LORA = (
    Hypothesis(code="lora", factor=1.5, text="a LoRA run counted as full training (1.5), or the reverse"),
    Hypothesis(code="lora", factor=2 / 3, text="only forward and input gradients counted, as for LoRA (2/3)"),
)
FACTOR_TWO = (
    Hypothesis(
        code="factor_two",
        factor=2.0,
        text="tokens or batch counted twice, or a factor 2 of the formula",
        kind="tokens",
    ),
    Hypothesis(
        code="factor_two", factor=0.5, text="tokens or batch halved, or a factor 2 missing", kind="tokens"
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """How this run was counted."""

    shape: ModelShape
    run: Run
    convention: str = DEFAULT_CONVENTION


def hypotheses(
    counted: Counted | None,
    *,
    accelerator: Accelerator | None = None,
    dtype: str = "bf16",
    tokens: float | None = None,
    padded_tokens: float | None = None,
) -> tuple[Hypothesis, ...]:
    """Every known way to differ that fits this run, the commonest first.

    Args:
        counted: shape and lengths; without them only factors that need no shape.
        accelerator: of the run; gives the wrong peaks people divide by.
        dtype: number format of the peak that was used.
        tokens: trained tokens, padding left out.
        padded_tokens: tokens with padding, as many tools count.
    """
    result = list(_of_peak(accelerator, dtype)) if accelerator is not None else []
    if counted is not None:
        result += _of_count(counted)
    result.append(RECOMPUTE)
    if counted is None or counted.shape.finetuning is None:
        result += UNDECLARED_LORA
    if tokens and padded_tokens and padded_tokens > tokens:
        factor = padded_tokens / tokens
        padding = f"padding counted as work ({factor:.3f})"
        result.append(Hypothesis(code="padded_tokens", factor=factor, text=padding, kind="tokens"))
    return (*result, *FACTOR_TWO)


def _of_count(counted: Counted) -> Iterator[Hypothesis]:
    """Other conventions and known bugs, as factors on this count."""
    ours = CONVENTIONS[counted.convention].count(counted.shape, counted.run)
    for name, text in CONVENTION_TEXTS.items():
        factor = CONVENTIONS[name].count(counted.shape, counted.run) / ours
        yield Hypothesis(code=name, factor=factor, text=text)
    if counted.shape.finetuning is not None:
        whole = replace(counted.shape, finetuning=None)
        factor = CONVENTIONS[counted.convention].count(whole, counted.run) / ours
        yield Hypothesis(
            code="lora", factor=factor, text=f"a LoRA run counted as full training ({factor:.2f})"
        )
    for code, text, change in BUGS:
        blocks = tuple(change(block) for block in counted.shape.blocks)
        if blocks != counted.shape.blocks:
            changed = replace(counted.shape, blocks=blocks)
            for full in (False, True):
                factor = count(changed, counted.run, Counting(full_attention=full)).total / ours
                words = text + (", attention in full" if full else "")
                yield Hypothesis(code=code, factor=factor, text=words, subject="full" if full else "")


def _ungated(block: Block) -> Block:
    """The block as a formula with two MLP matrices sees it, causal everywhere."""
    block = _unwindowed(block)
    if isinstance(block.mlp, DenseMlp | MoeMlp):
        return replace(block, mlp=replace(block.mlp, gated=False))
    return block


def _unwindowed(block: Block) -> Block:
    """The block without its window."""
    mixer = block.mixer
    if isinstance(mixer, Attention | LatentAttention) and mixer.mask.causal:
        return replace(block, mixer=replace(mixer, mask=Mask()))
    return block


def _ungrouped(block: Block) -> Block:
    """The block with keys and values as wide as the queries."""
    if isinstance(block.mixer, Attention):
        return replace(block, mixer=replace(block.mixer, kv_heads=block.mixer.heads))
    return block


BUGS: tuple[tuple[str, str, Callable[[Block], Block]], ...] = (
    ("window_ignored", "sliding windows counted as causal attention", _unwindowed),
    ("gate_ignored", "the MLP counted with two matrices instead of three, windows ignored", _ungated),
    ("grouped_queries_ignored", "keys and values counted as wide as the queries", _ungrouped),
)


def _of_peak(accelerator: Accelerator, dtype: str) -> Iterator[Hypothesis]:
    """Wrong peaks: sparse, another format's, the A100 fallback, a sibling with a similar name."""
    right = accelerator.peak_flops(dtype)
    if right is None:
        return
    yield _peak("sparse_peak", right, 2 * right, "the sparse peak taken as dense (2x)")
    seen = {right}
    for other in ("bf16", "fp16", "tf32", "fp8", "fp4"):
        peak = accelerator.peak_flops(other)
        if peak is not None and peak not in seen:
            seen.add(peak)
            yield _peak(
                f"{other}_peak", right, peak, f"divided by the {other} peak ({peak / 1e12:.0f} TFLOP/s)"
            )
    if right != A100_FALLBACK_FLOPS:
        fallback = "wrong device: the A100's 312 TFLOP/s, which tools fall back to"
        yield _peak("a100_fallback", right, A100_FALLBACK_FLOPS, fallback)
    for other_device in ACCELERATORS:
        peak = other_device.peak_flops(dtype)
        if peak is None or peak in (right, A100_FALLBACK_FLOPS) or not _alike(accelerator, other_device):
            continue
        text = f"wrong device: the peak of {other_device.name} ({peak / 1e12:.1f} TFLOP/s)"
        yield _peak("wrong_device", right, peak, text, other_device.name)


def _peak(code: str, right: float, wrong: float, text: str, subject: str = "") -> Hypothesis:
    return Hypothesis(code=code, factor=right / wrong, text=text, kind="peak", subject=subject)


def _alike(one: Accelerator, other: Accelerator) -> bool:
    """Whether a substring rule may confuse the two: one product's first word is part of the other's."""
    first, second = (item.name.split()[0].upper() for item in (one, other))
    return first in second or second in first or first[:-1] == second[:-1]
