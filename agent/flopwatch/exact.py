"""Architecture-exact model FLOPs: the matmuls a token really passes, attention, and state-space scans.

Forward and backward are three passes of every matmul: forward, gradient of the input, gradient of the weight.
A frozen weight needs no third; below the lowest trained layer there is no second either.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from flopwatch.blocks import Attention, Block, LatentAttention, MoeMlp, ShapeError
from flopwatch.documents import Documents, StackTokens
from flopwatch.parameters import router_weights
from flopwatch.shape import ModelShape, Stack

TRAINED, FROZEN, FORWARD_ONLY = 3.0, 2.0, 1.0
KEYS_OF_CROSS = ("cross_k", "cross_v")


class TokensUnknown(ShapeError):
    """A shape with a second stack needs that stack's token count."""

    def __init__(self, stack: str) -> None:
        super().__init__(
            f"stacks.{stack}", None, "StackTokens: the stack's tokens per trained token and their length"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What of a run the count depends on besides the shape."""

    seq_len: float
    documents: Documents
    stacks: Mapping[str, StackTokens] = field(default_factory=dict)

    def stack_tokens(self, stack: Stack) -> StackTokens:
        """The token count of a stack.

        Raises:
            TokensUnknown: it was not given.
        """
        tokens = self.stacks.get(stack.name)
        if tokens is None:
            raise TokensUnknown(stack.name)
        return tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """FLOPs per trained token, forward and backward, by what needs them."""

    matmul: float = 0.0
    """Projections, feed-forward networks, logits: 2 per weight and pass."""
    core: float = 0.0
    """Scores and weighted values of attention."""
    scan: float = 0.0
    """Recurrences of state-space and linear-attention layers."""

    @property
    def total(self) -> float:
        """The sum."""
        return self.matmul + self.core + self.scan

    def plus(self, other: "Terms", times: float = 1.0) -> "Terms":
        """This and ``times`` the other."""
        return Terms(
            matmul=self.matmul + times * other.matmul,
            core=self.core + times * other.core,
            scan=self.scan + times * other.scan,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Counting:
    """What a convention takes in. The default is the product's: causal, MTP in, router out."""

    full_attention: bool = False
    """Every layer attends to the full square: causal masks and windows are ignored."""
    mtp_layer: bool = True
    mtp_head: bool = True
    padded_vocab: bool = True
    router: bool = False
    core_passes: float = TRAINED
    """Passes of the attention core: 3.5 where a flash kernel's backward recomputes the scores, 0 to leave it out."""


def count(shape: ModelShape, run: Run, counting: Counting) -> Terms:
    """FLOPs per trained token of the whole model, by term.

    Raises:
        TokensUnknown: the shape has a second stack whose tokens were not given.
    """
    terms = Terms(matmul=2 * _entry_passes(shape) * shape.entry_weights)
    for block, passes in _layers(shape):
        terms = terms.plus(_mixing(block, passes, run.documents, counting), block.count)
        weights = block.count * _weights(block, shape.hidden, counting)
        terms = terms.plus(Terms(matmul=2 * passes * weights))
        if passes == FROZEN:
            terms = terms.plus(Terms(matmul=2 * TRAINED * block.count * _adapters(block, shape)))
    terms = terms.plus(Terms(matmul=2 * _head_passes(shape) * _logits(shape, counting)))
    terms = terms.plus(_mtp(shape, run, counting))
    for stack in shape.stacks:
        tokens = run.stack_tokens(stack)
        terms = terms.plus(_stack(shape, stack, tokens, counting), tokens.per_token)
    return terms


def _layers(shape: ModelShape) -> Iterator[tuple[Block, float]]:
    """The blocks with the passes of their weights, split where the frozen layers end."""
    tuning = shape.finetuning
    below = tuning.frozen_layers if tuning is not None else 0
    above = FROZEN if tuning is not None and tuning.adapter_rank is not None else TRAINED
    for block in shape.blocks:
        frozen = min(below, block.count)
        below -= frozen
        if frozen:
            yield replace(block, count=frozen), FORWARD_ONLY
        if block.count > frozen:
            yield replace(block, count=block.count - frozen), above


def _entry_passes(shape: ModelShape) -> float:
    """Passes of what lies below the first block: forward only when the model is partly frozen."""
    return TRAINED if shape.finetuning is None else FORWARD_ONLY


def _head_passes(shape: ModelShape) -> float:
    """Passes of the logits matmul: frozen under adapters."""
    return FROZEN if shape.finetuning is not None and shape.finetuning.adapter_rank is not None else TRAINED


def _logits(shape: ModelShape, counting: Counting) -> int:
    """Weights of the logits matmul, counted once; the embedding look-up is no matmul."""
    return shape.hidden * (shape.logits_rows if counting.padded_vocab else shape.vocab)


def _weights(block: Block, hidden: int, counting: Counting) -> int:
    """Matmul weights that a token passes in one layer; what encoder tokens pass is counted with the encoder."""
    sizes = block.matrices(hidden)
    weights = sum(rows * columns for role, (rows, columns) in sizes.items() if role not in KEYS_OF_CROSS)
    return weights + (router_weights(block, hidden) if counting.router else 0)


def _mixing(block: Block, passes: float, documents: Documents, counting: Counting) -> Terms:
    """Attention core and scan of one layer: activations need their gradients also where weights are frozen."""
    mixer = block.mixer
    if mixer is None:
        return Terms()
    full = passes > FORWARD_ONLY
    if not isinstance(mixer, Attention | LatentAttention):
        return Terms(scan=(TRAINED if full else FORWARD_ONLY) * mixer.scan_flops())
    keys = documents.mean_length if counting.full_attention else documents.mean_keys(mixer.mask)
    core_passes = counting.core_passes if full else min(counting.core_passes, FORWARD_ONLY)
    return Terms(core=2 * core_passes * mixer.core_width * keys)


def _adapters(block: Block, shape: ModelShape) -> int:
    """Weights of the low-rank adapters that a token passes in one layer: rank * (inputs + outputs) a matrix."""
    tuning = shape.finetuning
    if tuning is None or tuning.adapter_rank is None:
        return 0
    chosen = block.mlp.top_k if isinstance(block.mlp, MoeMlp) else 1
    total = 0
    for role, (rows, columns) in block.matrices(shape.hidden).items():
        if tuning.adapter_roles and role not in tuning.adapter_roles:
            continue
        total += rows + columns
        if role in ("expert_up", "expert_gate", "expert_down"):
            total += (chosen - 1) * (columns if role == "expert_down" else rows)
    return tuning.adapter_rank * total


def _mtp(shape: ModelShape, run: Run, counting: Counting) -> Terms:
    """Multi-token-prediction blocks: each a layer, a 2h-to-h projection and one more logits matmul."""
    if not counting.mtp_layer:
        return Terms()
    passes = TRAINED if shape.finetuning is None else FROZEN
    one = Terms()
    for block in shape.mtp_depth:
        one = one.plus(_mixing(block, passes, run.documents, counting), block.count)
        one = one.plus(Terms(matmul=2 * passes * block.count * _weights(block, shape.hidden, counting)))
    if counting.mtp_head:
        one = one.plus(Terms(matmul=2 * passes * (2 * shape.hidden**2 + _logits(shape, counting))))
    return Terms().plus(one, shape.mtp_layers)


def _stack(shape: ModelShape, stack: Stack, tokens: StackTokens, counting: Counting) -> Terms:
    """One token of a second stack, with the keys and values that the decoder's cross attention makes of it."""
    passes = FORWARD_ONLY if stack.frozen else _entry_passes(shape)
    documents = Documents.unpacked(tokens.length)
    terms = Terms(matmul=2 * passes * stack.entry_weights)
    for block in stack.blocks:
        terms = terms.plus(_mixing(block, passes, documents, counting), block.count)
        terms = terms.plus(Terms(matmul=2 * passes * block.count * _weights(block, stack.hidden, counting)))
    return terms.plus(_cross(shape, tokens)) if stack.name == "encoder" else terms


def _cross(shape: ModelShape, tokens: StackTokens) -> Terms:
    """Cross attention as seen from one encoder token: its keys and values, and each decoder token's look at it.

    A decoder token meets all ``length`` encoder tokens; per encoder token that is length / per_token looks.
    """
    terms = Terms()
    for block, passes in _layers(shape):
        if block.cross is None:
            continue
        sizes = block.matrices(shape.hidden)
        weights = sum(rows * columns for role, (rows, columns) in sizes.items() if role in KEYS_OF_CROSS)
        through = TRAINED if passes > FORWARD_ONLY else FORWARD_ONLY
        looks = 2 * through * block.cross.core_width * tokens.length / tokens.per_token
        terms = terms.plus(Terms(matmul=2 * passes * weights, core=looks), block.count)
    return terms
