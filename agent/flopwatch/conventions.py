"""How training FLOPs are counted: the product's convention, PaLM's, and those of the tools that people compare with.

Notation: L layers, h hidden, H query heads, d head width, s sequence, V vocabulary, N parameters, W weights of
every matmul that a token passes. Per trained token, forward and backward, one multiply-add is two FLOPs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from flopwatch import parameters
from flopwatch.blocks import DenseMlp
from flopwatch.exact import Counting, Run, count
from flopwatch.shape import ModelShape

CountFlops = Callable[[ModelShape, Run], float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Convention:
    """One way to count, with what a reader must know to compare two figures."""

    name: str
    formula: str
    attention: Literal["causal", "full", "none"]
    embeddings: Literal["excluded", "included", "untied only"]
    source: str
    count: CountFlops
    counts_recompute: bool = False
    """The figure holds a second forward pass: it is HFU-like and never an MFU."""

    @property
    def tag(self) -> str:
        """What stands beside every figure of this convention."""
        return f"{self.name}: {self.attention} attention, embeddings {self.embeddings}"


def exact(counting: Counting) -> CountFlops:
    """A convention that sums the matmuls of the architecture."""
    return lambda shape, run: count(shape, run, counting).total


def core_width(shape: ModelShape) -> float:
    """Sum over the attention layers of H*(d_qk + d_v), the multiply-adds per query-key pair."""
    return sum(block.count * block.mixer.core_width for block in shape.blocks if block.mixer is not None)


def square(shape: ModelShape, run: Run) -> float:
    """12*L*H*d*s: full attention on every attention layer, whatever its mask."""
    return 6 * core_width(shape) * run.seq_len


def of_stacks(shape: ModelShape, run: Run) -> float:
    """6N + full attention of encoders and vision towers, per trained token."""
    total = 0.0
    for stack in shape.stacks:
        tokens = run.stack_tokens(stack)
        weights = stack.stored_weights + sum(b.count * b.passed_weights(stack.hidden) for b in stack.blocks)
        width = sum(b.count * b.mixer.core_width for b in stack.blocks if b.mixer is not None)
        total += tokens.per_token * (6 * weights + 6 * width * tokens.length)
    return total


def palm(shape: ModelShape, run: Run) -> float:
    """6N + 12*L*H*d*s with N all parameters (of a mixture: the active ones), embeddings included, no causal halving.

    Source: PaLM, arXiv 2204.02311, appendix B.
    """
    return 6 * parameters.count(shape).active + square(shape, run) + of_stacks(shape, run)


def titan(shape: ModelShape, run: Run) -> float:
    """6(N - embedding) + 6*L*H*(d_qk + d_v)*s; a tied embedding stays in, it is the logits matmul.

    Source: torchtitan since 2024-05; the vision tower is left out.
    """
    numbers = parameters.count(shape)
    embedding = 0 if shape.tied_embeddings else numbers.input_embedding
    return 6 * (numbers.active - embedding) + square(shape, run)


def foundry(shape: ModelShape, run: Run) -> float:
    """3*(2*N*s + 4*L*h*s^2) per sequence of s: 6N + 12*L*h*s with N active, embeddings and positions included.

    Source: llm-foundry and composer's SpeedMonitor.
    """
    width = shape.attention_layers * shape.hidden
    return 6 * parameters.count(shape).active + 12 * width * run.seq_len


def llm_c(shape: ModelShape, run: Run) -> float:
    """6N + 6*L*h*s. Source: llm.c."""
    width = shape.attention_layers * shape.hidden
    return 6 * parameters.count(shape).active + 6 * width * run.seq_len


def six_n(shape: ModelShape, run: Run) -> float:  # noqa: ARG001 - the signature of all conventions
    """6N, no attention term. Source: Kaplan et al., arXiv 2001.08361."""
    return 6.0 * parameters.count(shape).active


def hf_trainer(shape: ModelShape, run: Run) -> float:  # noqa: ARG001 - the signature of all conventions
    """6(N - embedding) with all experts counted and no attention term.

    Source: Hugging Face Trainer, ``floating_point_ops``.
    """
    numbers = parameters.count(shape)
    return 6.0 * (numbers.total - numbers.input_embedding - numbers.positions)


def korthikanti(shape: ModelShape, run: Run) -> float:
    """72*L*h^2*(1 + s/6h + V/12hL): full attention, no recompute, MHA and an MLP of 4h assumed.

    Source: Korthikanti et al. 2022, arXiv 2205.05198.
    """
    layers, hidden = shape.layers, shape.hidden
    inner = 1 + run.seq_len / (6 * hidden) + shape.logits_rows / (12 * hidden * layers)
    return 72 * layers * hidden**2 * inner


def korthikanti_hardware(shape: ModelShape, run: Run) -> float:
    """72*L*h^2*(1 + s/3h + V/12hL): the same with the attention core recomputed, as the paper counts it.

    The paper's s/3h adds 12*s*h a layer and token, where one more forward of the core is 4*s*h.
    """
    layers, hidden = shape.layers, shape.hidden
    inner = 1 + run.seq_len / (3 * hidden) + shape.logits_rows / (12 * hidden * layers)
    return 72 * layers * hidden**2 * inner


def megatron_2021(shape: ModelShape, run: Run) -> float:
    """96*L*h^2*(1 + s/6h + V/16Lh): full attention, with one more forward for recompute; HFU-like, 4/3 of MFU.

    Source: Megatron-LM 2021, arXiv 2104.04473, equation 3.
    """
    layers, hidden = shape.layers, shape.hidden
    inner = 1 + run.seq_len / (6 * hidden) + shape.logits_rows / (16 * layers * hidden)
    return 96 * layers * hidden**2 * inner


def verl(shape: ModelShape, run: Run) -> float:
    """6*(W + router + V*h) + 6*L*H*d*sum(l^2)/sum(l): the embedding counts as one more matmul.

    Source: veRL ``flops_counter``.
    """
    embedding = 6.0 * shape.vocab * shape.hidden
    return count(shape, run, Counting(padded_vocab=False, router=True, mtp_layer=False)).total + embedding


def llama_factory(shape: ModelShape, run: Run) -> float:
    """Three dense MLP matrices, q and o as h^2, full attention on h; experts ignored, a tied head halved.

    Source: LLaMA-Factory ``cal_mfu``.
    """
    hidden, layers = shape.hidden, shape.layers
    head = shape.vocab * hidden / (2 if shape.tied_embeddings else 1)
    weights = layers * (2 * hidden**2 + 2 * hidden * _kv_width(shape) + 3 * hidden * _dense_ffn(shape)) + head
    return 6 * weights + 12 * layers * hidden * run.seq_len


def _kv_width(shape: ModelShape) -> float:
    """Width of keys as a tool that knows only hidden/heads sees it."""
    attention = shape.first_attention
    if attention is not None:
        return attention.kv_heads * attention.head_dim
    return shape.hidden


def _dense_ffn(shape: ModelShape) -> int:
    """The dense width that a config states: of the dense layers, else of one expert."""
    mlps = [block.mlp for block in shape.blocks if block.mlp is not None]
    dense = next((mlp.ffn for mlp in mlps if isinstance(mlp, DenseMlp)), None)
    if dense is not None:
        return dense
    return next((mlp.expert_ffn for mlp in mlps if not isinstance(mlp, DenseMlp)), 0)


MEGATRON = "Megatron-LM num_floating_point_operations"
_ALL = (
    Convention(
        name="causal",
        formula="6*W + 6*L*H*d*s: every matmul a token passes, logits once, windows exact, MTP when trained",
        attention="causal", embeddings="excluded", source="Megatron-LM since 2025-03, Megatron-Bridge, NeMo, MaxText",
        count=exact(Counting()),
    ),
    Convention(
        name="full", formula="6*W + 12*L*H*d*s: as causal, with the full square on every attention layer",
        attention="full", embeddings="excluded", source="Megatron-LM before 2025-03, nanotron, DeepSpeed",
        count=exact(Counting(full_attention=True)),
    ),
    Convention(
        name="palm", formula="6*N + 12*L*H*d*s, N all (active) parameters",
        attention="full", embeddings="included", source="PaLM, arXiv 2204.02311, appendix B", count=palm,
    ),
    Convention(
        name="mcore_causal", formula="6*W + 6*L*H*d*s, padded vocabulary, router not counted, MTP when present",
        attention="causal", embeddings="excluded", source=f"{MEGATRON} since 2025-03; Megatron-Bridge",
        count=exact(Counting()),
    ),
    Convention(
        name="mcore_causal_nomtp", formula="6*W + 6*L*H*d*s, MTP not counted",
        attention="causal", embeddings="excluded", source="DeepSeek-V3, arXiv 2412.19437",
        count=exact(Counting(mtp_layer=False)),
    ),
    Convention(
        name="mcore_full", formula="6*W + 12*L*H*d*s, padded vocabulary, MTP not counted",
        attention="full", embeddings="excluded", source=f"{MEGATRON} from 2023-11 to 2025-03",
        count=exact(Counting(full_attention=True, mtp_layer=False)),
    ),
    Convention(
        name="maxtext_full", formula="6*(W + router) + 12*L*H*d*s, true vocabulary, MTP layer without its logits",
        attention="full", embeddings="excluded", source="MaxText before its pull request 1988",
        count=exact(Counting(full_attention=True, padded_vocab=False, router=True, mtp_head=False)),
    ),
    Convention(
        name="maxtext", formula="6*(W + router) + 6*L*H*d*s, true vocabulary, MTP layer without its logits",
        attention="causal", embeddings="excluded", source="MaxText since its pull request 1988",
        count=exact(Counting(router=True, padded_vocab=False, mtp_head=False)),
    ),
    Convention(
        name="matmul_only", formula="6*W, no attention term (short packed samples)",
        attention="none", embeddings="excluded", source="NVIDIA fine-tuning recipes",
        count=exact(Counting(core_passes=0.0, mtp_layer=False)),
    ),
    Convention(
        name="foundry", formula="6*N + 12*L*h*s, N active",
        attention="full", embeddings="included", source="llm-foundry, composer SpeedMonitor", count=foundry,
    ),
    Convention(
        name="titan", formula="6*(N - embedding) + 6*L*H*(d_qk + d_v)*s",
        attention="full", embeddings="untied only", source="torchtitan since 2024-05", count=titan,
    ),
    Convention(
        name="k22", formula="72*L*h^2*(1 + s/6h + V/12hL), for multi-head attention and an MLP of 4h",
        attention="full", embeddings="excluded", source="Korthikanti et al. 2022, arXiv 2205.05198", count=korthikanti,
    ),
    Convention(
        name="eq3",
        formula="96*L*h^2*(1 + s/6h + V/16Lh), recompute included, for multi-head attention and an MLP of 4h",
        attention="full", embeddings="excluded", source="Megatron-LM 2021, arXiv 2104.04473, equation 3",
        count=megatron_2021, counts_recompute=True,
    ),
    Convention(
        name="llm_c", formula="6*N + 6*L*h*s", attention="causal", embeddings="included", source="llm.c", count=llm_c,
    ),
    Convention(
        name="verl", formula="6*(W + router + V*h) + 6*L*H*d*sum(l^2)/sum(l)",
        attention="causal", embeddings="included", source="veRL flops_counter", count=verl,
    ),
    Convention(
        name="torch_flash", formula="6*(W + router) + 14*L*H*d*s: a flash kernel's backward counts 2.5 forwards",
        attention="full", embeddings="excluded", source="torch FlopCounterMode on CUDA; counts what runs",
        count=exact(Counting(full_attention=True, padded_vocab=False, router=True, core_passes=3.5)),
        counts_recompute=True,
    ),
    Convention(
        name="six_n", formula="6*N", attention="none", embeddings="included", source="arXiv 2001.08361", count=six_n,
    ),
    Convention(
        name="hf_trainer", formula="6*(N - embedding), all experts counted",
        attention="none", embeddings="untied only", source="Hugging Face Trainer floating_point_ops", count=hf_trainer,
    ),
    Convention(
        name="llama_factory", formula="6*(L*(2h^2 + 2*h*K*d + 3*h*f) + V*h) + 12*L*h*s, experts ignored",
        attention="full", embeddings="excluded", source="LLaMA-Factory cal_mfu", count=llama_factory,
    ),
)  # fmt: skip
CONVENTIONS: dict[str, Convention] = {convention.name: convention for convention in _ALL}
DEFAULT_CONVENTION = "causal"
