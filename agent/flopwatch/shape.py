"""The shape of a model: everything its FLOP count depends on, whatever described it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flopwatch import megatron_args, shape_dict
from flopwatch.blocks import Attention, Block, MoeMlp, ShapeError, require_positive, require_whole
from flopwatch.huggingface import config as huggingface


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """A second network with its own token count: the encoder of an encoder-decoder, a vision tower.

    ``entry_weights``: matmul weights a token passes outside the blocks (patch embedding, projector).
    """

    name: str
    hidden: int
    blocks: tuple[Block, ...]
    entry_weights: int = 0
    stored_weights: int = 0
    """Weights outside the blocks that the stack holds: ``entry_weights`` and its embeddings."""
    frozen: bool = False
    """Runs forward only."""
    tokens_per_item: int | None = None
    """Tokens of one image, where that is fixed."""

    def __post_init__(self) -> None:
        require_positive(self, "hidden")
        for name in ("entry_weights", "stored_weights"):
            require_whole(name, getattr(self, name))
        if self.tokens_per_item is not None:
            require_positive(self, "tokens_per_item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finetuning:
    """What of the model is trained, when it is not all of it.

    ``adapter_rank``: low-rank adapters on the matrices whose roles are in ``adapter_roles`` (all, when
    empty), everything else frozen. ``frozen_layers``: that many lowest layers and the embedding are
    frozen and hold no adapter, so nothing goes backward through them.
    """

    adapter_rank: int | None = None
    adapter_roles: frozenset[str] = frozenset()
    frozen_layers: int = 0

    def __post_init__(self) -> None:
        require_whole("frozen_layers", self.frozen_layers)
        if self.adapter_rank is not None:
            require_positive(self, "adapter_rank")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShape:
    """A model's shape. Make one with ``from_dict``, ``from_hf_config`` or ``from_megatron_args``."""

    hidden: int
    blocks: tuple[Block, ...]
    vocab: int
    """Rows of the logits matmul; 0 for a network without one."""
    padded_vocab: int | None = None
    """Rows that are really multiplied where the trainer pads the vocabulary; None: not known to be padded."""
    tied_embeddings: bool = False
    name: str | None = None
    seq_len: int | None = None
    mtp_layers: int = 0
    """Trained multi-token-prediction depths: each a layer, a 2h-to-h projection and one more logits matmul."""
    mtp_blocks: tuple[Block, ...] = ()
    """What one depth is made of, where it is not one more layer like the last."""
    learned_positions: int = 0
    entry_weights: int = 0
    """Matmul weights a token passes before the first block (the patch embedding of a vision transformer)."""
    stacks: tuple[Stack, ...] = ()
    finetuning: Finetuning | None = None
    stated_parameters: int | None = None
    stated_active_parameters: int | None = None

    def __post_init__(self) -> None:
        require_positive(self, "hidden")
        for name in ("vocab", "mtp_layers", "learned_positions", "entry_weights"):
            require_whole(name, getattr(self, name))
        if self.padded_vocab is not None and self.padded_vocab < self.vocab:
            raise ShapeError("padded_vocab_used", self.padded_vocab, f"at least vocab ({self.vocab})")
        if self.mtp_layers:
            _ = self.mtp_depth
        if self.layers < 1:
            raise ShapeError("n_layers", self.layers, "a whole number of at least 1")
        if self.finetuning is not None and self.finetuning.frozen_layers > self.layers:
            raise ShapeError(
                "frozen_layers", self.finetuning.frozen_layers, f"at most n_layers ({self.layers})"
            )

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "ModelShape":
        """The shape that ``to_dict`` wrote, or that flat keys describe.

        Flat keys: ``n_layers``, ``hidden``, ``ffn_hidden``, ``n_heads``, ``n_kv_heads``, ``head_dim``, ``vocab``,
        ``padded_vocab_used``, ``seq_len``, ``gated_mlp``, ``tied_embeddings``, ``n_params``, ``n_params_active``,
        ``moe``, ``mla``, ``mtp_layers``, ``attn``, ``extra``, ``name``; see ``shape_dict``.

        Raises:
            ShapeError: a key is unknown or missing, or its value is not understood.
        """
        return cls(**_with_parts(shape_dict.read(description)))

    def to_dict(self) -> dict[str, Any]:
        """The shape as JSON values, for ``from_dict``."""
        return shape_dict.write(self)

    @classmethod
    def from_hf_config(cls, config: Mapping[str, Any], *, trains_mtp: bool = False) -> "ModelShape":
        """The shape that a Hugging Face ``config.json`` describes.

        ``trains_mtp``: also count its multi-token-prediction layers, which the transformers library drops.

        Raises:
            ShapeError: the model type or one of its fields is not understood.
        """
        return cls(**_with_parts(huggingface.read(config, trains_mtp=trains_mtp)))

    @classmethod
    def from_megatron_args(cls, arguments: Mapping[str, Any] | Sequence[str]) -> "ModelShape":
        """The shape that Megatron's arguments describe: a log's block by name, or the words of a command line.

        Raises:
            ShapeError: an argument that decides the count is missing or not understood.
        """
        return cls(**_with_parts(megatron_args.read(arguments)))

    @property
    def layers(self) -> int:
        """Layers of the main network."""
        return sum(block.count for block in self.blocks)

    @property
    def logits_rows(self) -> int:
        """Rows of the logits matmul that is really run: the padded vocabulary where it is known."""
        return self.padded_vocab if self.padded_vocab is not None else self.vocab

    @property
    def attention_layers(self) -> int:
        """Layers that hold attention."""
        return sum(block.count for block in self.blocks if block.mixer and block.mixer.core_width)

    @property
    def is_moe(self) -> bool:
        """Whether any layer routes tokens to experts."""
        return any(isinstance(block.mlp, MoeMlp) for block in self.blocks)

    @property
    def mtp_depth(self) -> tuple[Block, ...]:
        """The layers of one multi-token-prediction depth: as given, else one like the last with attention."""
        if self.mtp_blocks or not self.mtp_layers:
            return self.mtp_blocks
        last = next((block for block in reversed(self.blocks) if block.mixer and block.mlp), None)
        if last is None:
            raise ShapeError(
                "mtp_layers", self.mtp_layers, "0, or mtp_blocks that say what one depth is made of"
            )
        return (replace(last, count=1),)

    def with_lora(self, rank: int, roles: frozenset[str] = frozenset()) -> "ModelShape":
        """This model frozen, with low-rank adapters of ``rank`` on the matrices of ``roles`` (empty: all)."""
        return replace(self, finetuning=Finetuning(adapter_rank=rank, adapter_roles=roles))

    @property
    def first_attention(self) -> Attention | None:
        """The first layer's grouped attention, for tools that know one kind only."""
        mixers = (block.mixer for block in self.blocks)
        return next((mixer for mixer in mixers if isinstance(mixer, Attention)), None)


def _with_parts(values: dict[str, Any]) -> dict[str, Any]:
    """Field values in which stacks and finetuning, described as dicts, became their dataclasses."""
    result = dict(values)
    if "stacks" in result:
        result["stacks"] = tuple(Stack(**stack) for stack in result["stacks"])
    if result.get("finetuning") is not None:
        result["finetuning"] = Finetuning(**result["finetuning"])
    return result
