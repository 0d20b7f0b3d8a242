"""Megatron's arguments as a shape: Megatron-LM, Megatron-DeepSpeed, MindSpeed, GPT-NeoX; a log's or a command's."""

from collections.abc import Mapping, Sequence
from typing import Any

from flopwatch.argument_values import flag, named, pattern, whole
from flopwatch.blocks import (
    MOST_LAYERS,
    Attention,
    Block,
    DenseMlp,
    FeedForward,
    GatedDelta,
    LatentAttention,
    Mamba2,
    Mask,
    Mixer,
    MoeMlp,
    ShapeError,
    require_whole,
)
from flopwatch.layer_runs import runs

NOT_COUNTED: dict[str, str] = {
    "retro_add_retriever": "absent: the retrieval encoder's tokens are not in the arguments",
    "heterogeneous_layers_config_path": "absent: the layers differ by a file that is not in the arguments",
    "heterogeneous_layers_config_encoded_json": "absent: layers that differ one by one are not understood",
    "vision_pretraining": "absent: give the vision model's own config",
    "freeze_lm": "absent: say what is frozen in the shape",
    "freeze_vit": "absent: say what is frozen in the shape",
    "use_dsa": "absent: sparse attention is not understood",
}
GATED_ACTIVATIONS = ("swiglu", "geglu", "reglu", "liglu", "swiglu_torch", "bilinear")
"""Values of ``glu_activation`` (Megatron-LM before 2023-06) and of GPT-NeoX's ``activation`` that have a gate."""


def read(arguments: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Field values of ``ModelShape``; stacks as dicts.

    Raises:
        ShapeError: an argument that decides the count is missing or not understood.
    """
    args = named(arguments)
    if not isinstance(arguments, Mapping):
        args.setdefault("group_query_attention", False)
    for name, allowed in NOT_COUNTED.items():
        if args.get(name) not in (None, False):
            raise ShapeError(name, args[name], allowed)
    values: dict[str, Any] = {
        "hidden": whole(args, "hidden_size"),
        "blocks": _blocks(args),
        "tied_embeddings": _tied(args),
        "learned_positions": _positions(args),
    }
    values |= _vocabulary(args) | _mtp(args)
    if args.get("seq_length") is not None:
        values["seq_len"] = whole(args, "seq_length")
    return values


def _mtp(args: Mapping[str, Any]) -> dict[str, Any]:
    """Multi-token-prediction depths, and for a hybrid the layers of each."""
    depths = whole(args, "mtp_num_layers", minimum=0, default=0)
    symbols = _symbols(args)
    if symbols is None or (len(symbols) == 1 and not depths):
        return {"mtp_layers": depths}
    if len(symbols) == 1:
        raise ShapeError("mtp_num_layers", depths, "0, or a hybrid pattern that has /-parts")
    return {"mtp_layers": depths or len(symbols) - 1, "mtp_blocks": _patterned(args, symbols[1])}


def _tied(args: Mapping[str, Any]) -> bool:
    """Whether input and output share their embedding."""
    untied = flag(args, "untie_embeddings_and_output_weights") or flag(args, "no_weight_tying")
    return not untied


def _positions(args: Mapping[str, Any]) -> int:
    """Rows of a learned position embedding."""
    kind = args.get("position_embedding_type", args.get("pos_emb"))
    if kind not in ("learned_absolute", "learned"):
        return 0
    return whole(args, "max_position_embeddings", minimum=0, default=0)


def _vocabulary(args: Mapping[str, Any]) -> dict[str, int]:
    """True and padded vocabulary: padded as printed, else as Megatron pads the true one."""
    padded, true = args.get("padded_vocab_size"), args.get("vocab_size")
    if padded is None and true is None:
        raise ShapeError("padded_vocab_size", None, "a whole number (or vocab_size)")
    if padded is not None:
        rows = whole(args, "padded_vocab_size")
        return {"vocab": whole(args, "vocab_size", default=rows), "padded_vocab": rows}
    vocab = whole(args, "vocab_size")
    tensor_parallel = whole(args, "tensor_model_parallel_size", "model_parallel_size", default=1)
    multiple = whole(args, "make_vocab_size_divisible_by", default=128) * tensor_parallel
    return {"vocab": vocab, "padded_vocab": -(-vocab // multiple) * multiple}


def _blocks(args: Mapping[str, Any]) -> tuple[Block, ...]:
    """The layers, a block for each run of equal ones."""
    decoder = args.get("decoder_num_layers")
    if decoder is not None:
        raise ShapeError("decoder_num_layers", decoder, "absent: give an encoder-decoder's own config")
    symbols = _symbols(args)
    if symbols is not None:
        return _patterned(args, symbols[0])
    if flag(args, "is_hybrid_model") or args.get("hybrid_attention_ratio"):
        raise ShapeError("hybrid_override_pattern", None, "the pattern of a hybrid model's layers")
    layers = require_whole("num_layers", whole(args, "num_layers", "encoder_num_layers"), maximum=MOST_LAYERS)
    return runs(zip(_mixers(args, layers), _feed_forwards(args, layers), strict=True))


def _mixers(args: Mapping[str, Any], layers: int) -> list[Mixer]:
    """The mixer of each layer: attention under its mask, or linear attention."""
    variant = args.get("experimental_attention_variant")
    if variant not in (None, "gated_delta_net"):
        raise ShapeError("experimental_attention_variant", variant, "gated_delta_net, or absent")
    masks = _masks(args, layers)
    if variant is None:
        return [_attention(args, mask) for mask in masks]
    every = args.get("linear_attention_freq")
    if isinstance(every, int) and every > 0:
        linear = [int((index + 1) % every != 0) for index in range(layers)]
    else:
        linear = pattern("linear_attention_freq", every, layers)
    delta = _gated_delta(args)
    return [
        delta if is_linear else _attention(args, mask) for is_linear, mask in zip(linear, masks, strict=True)
    ]


def _gated_delta(args: Mapping[str, Any]) -> GatedDelta:
    return GatedDelta(
        key_heads=whole(args, "linear_num_key_heads", default=16),
        value_heads=whole(args, "linear_num_value_heads", default=32),
        key_head_dim=whole(args, "linear_key_head_dim", default=128),
        value_head_dim=whole(args, "linear_value_head_dim", default=128),
        convolution=whole(args, "linear_conv_kernel_dim", default=4),
    )


def _masks(args: Mapping[str, Any], layers: int) -> list[Mask]:
    """The mask of each layer from ``window_size`` (left, right) and ``window_attn_skip_freq``."""
    window = args.get("window_size")
    _check_attention_kind(args)
    if window is None:
        return [Mask()] * layers
    if isinstance(window, int) and not isinstance(window, bool):
        window = (window, 0)
    if (
        not isinstance(window, list | tuple)
        or len(window) != 2
        or window[1] != 0
        or not isinstance(window[0], int)
    ):
        raise ShapeError("window_size", window, "(left, 0)")
    local = Mask(window=window[0] + 1) if window[0] >= 0 else Mask()
    skip = args.get("window_attn_skip_freq")
    if skip is None:
        return [local] * layers
    if isinstance(skip, int):
        return [local if (index + 1) % skip else Mask() for index in range(layers)]
    windowed = pattern("window_attn_skip_freq", skip, layers)
    return [local if has_window else Mask() for has_window in windowed]


def _check_attention_kind(args: Mapping[str, Any]) -> None:
    """GPT-NeoX may name a kind of attention for each layer: only whole causal attention is understood."""
    kinds = args.get("attention_config")
    names = set(_flat(kinds))
    if not names <= {"global", "flash", "all"}:
        raise ShapeError("attention_config", kinds, "global or flash attention on every layer")


def _flat(items: Any) -> list[str]:
    """The words of a nested list."""
    if isinstance(items, list | tuple):
        return [word for item in items for word in _flat(item)]
    return [items] if isinstance(items, str) else []


def _attention(args: Mapping[str, Any], mask: Mask) -> Mixer:
    """One attention layer."""
    heads, hidden = whole(args, "num_attention_heads"), whole(args, "hidden_size")
    if flag(args, "multi_latent_attention"):
        q_lora = args.get("q_lora_rank")
        return LatentAttention(
            heads=heads,
            q_lora=None if q_lora is None else whole(args, "q_lora_rank"),
            kv_lora=whole(args, "kv_lora_rank", default=32),
            nope=whole(args, "qk_head_dim", default=128),
            rope=whole(args, "qk_pos_emb_head_dim", minimum=0, default=64),
            v=whole(args, "v_head_dim", default=128),
            mask=mask,
        )
    default = hidden // heads if hidden % heads == 0 else None
    return Attention(
        heads=heads,
        kv_heads=_kv_heads(args, heads),
        head_dim=whole(args, "kv_channels", default=default),
        output_gate=flag(args, "attention_output_gate"),
        mask=mask,
    )


def _kv_heads(args: Mapping[str, Any], heads: int) -> int:
    """Key-value heads: ``num_query_groups`` counts only with grouped attention switched on, where that is printed."""
    if flag(args, "group_query_attention", default="num_query_groups" in args):
        return whole(args, "num_query_groups", default=1)
    return whole(args, "num_key_value_heads", "num_kv_heads", default=heads)


def _gated(args: Mapping[str, Any]) -> bool:
    """Whether the MLP has a gate."""
    if flag(args, "swiglu") or flag(args, "quick_geglu") or flag(args, "gated_linear_unit"):
        return True
    return any(args.get(name) in GATED_ACTIVATIONS for name in ("glu_activation", "activation")) or (
        args.get("mlp_type") == "llama"
    )


def _dense(args: Mapping[str, Any]) -> DenseMlp:
    """The dense MLP: its width as given, else as the trainers derive it."""
    gated = _gated(args)
    default = _default_width(args, whole(args, "hidden_size"), gated=gated)
    return DenseMlp(ffn=whole(args, "ffn_hidden_size", "intermediate_size", default=default), gated=gated)


def _default_width(args: Mapping[str, Any], hidden: int, *, gated: bool) -> int:
    """4h; with a gate two thirds of it, in whole 64s (GPT-NeoX's llama MLP: up to the next 256)."""
    if args.get("mlp_type") == "llama":
        return -(-int(8 * hidden / 3) // 256) * 256
    if gated and not flag(args, "quick_geglu"):
        return int(4 * hidden * 2 / 3) // 64 * 64
    return 4 * hidden


def _feed_forwards(args: Mapping[str, Any], layers: int) -> list[FeedForward]:
    """The feed-forward network of each layer."""
    experts = _experts(args)
    if experts is None:
        return [_dense(args)] * layers
    every = args.get("moe_layer_freq", args.get("expert_interval"))
    if every is None:
        every = 1
    if isinstance(every, int) and every > 0:
        first = 0 if "moe_layer_freq" in args else every - 1
        routed = [int(index % every == first) for index in range(layers)]
    else:
        routed = pattern("moe_layer_freq", every, layers)
    return [experts if is_routed else _dense(args) for is_routed in routed]


def _experts(args: Mapping[str, Any]) -> MoeMlp | None:
    """The mixture of experts, or None where the model has none."""
    count = args.get("num_experts")
    if isinstance(count, list) and len(set(count)) == 1:
        count = count[0]
    if count is None or (count == 1 and args.get("moe_router_topk") is None):
        return None
    dense = _dense(args)
    return MoeMlp(
        n_experts=whole({"num_experts": count}, "num_experts"),
        top_k=whole(args, "moe_router_topk", "topk", "moe_top_k", default=2),
        expert_ffn=whole(args, "moe_ffn_hidden_size", default=dense.ffn),
        shared_expert_ffn=whole(args, "moe_shared_expert_intermediate_size", minimum=0, default=0),
        latent=args.get("moe_latent_size"),
        gated=dense.gated,
    )


def _symbols(args: Mapping[str, Any]) -> list[str] | None:
    """A hybrid's layers, then one string for each trained multi-token-prediction depth; None: not a hybrid."""
    name = "hybrid_layer_pattern" if args.get("hybrid_layer_pattern") else "hybrid_override_pattern"
    text = args.get(name)
    if text is None:
        return None
    parts = text.replace("|", "").split("/") if isinstance(text, str) else [""]
    if any(not part or set(part) - set("M*-EG") for part in parts) or len(set(parts[1:])) > 1:
        raise ShapeError(
            name, text, "a string of M, *, -, E, G, with | between stages and / before equal MTP parts"
        )
    return parts


def _patterned(args: Mapping[str, Any], symbols: str) -> tuple[Block, ...]:
    """Layers from one symbol each: M Mamba-2, * attention, - MLP, E experts, G gated delta."""
    parts: dict[str, Any] = {
        "M": lambda: Block(count=1, mixer=_mamba(args)),
        "*": lambda: Block(count=1, mixer=_attention(args, _masks(args, 1)[0])),
        "-": lambda: Block(count=1, mlp=_dense(args)),
        "E": lambda: Block(count=1, mlp=_experts(args)),
        "G": lambda: Block(count=1, mixer=_gated_delta(args)),
    }
    made = {symbol: parts[symbol]() for symbol in set(symbols)}
    return runs((made[symbol].mixer, made[symbol].mlp) for symbol in symbols)


def _mamba(args: Mapping[str, Any]) -> Mamba2:
    """One Mamba-2 layer: twice the hidden width inside, unless its heads are given."""
    head_dim = whole(args, "mamba_head_dim", default=64)
    heads = whole(args, "mamba_num_heads", default=2 * whole(args, "hidden_size") // head_dim)
    return Mamba2(
        inner=heads * head_dim,
        heads=heads,
        state=whole(args, "mamba_state_dim", default=128),
        groups=whole(args, "mamba_num_groups", default=8),
    )
