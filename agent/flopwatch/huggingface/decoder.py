"""Decoders of Hugging Face: dense and mixture-of-experts transformers, by model type."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flopwatch.blocks import (
    MOST_LAYERS,
    Attention,
    DenseMlp,
    FeedForward,
    LatentAttention,
    Mask,
    Mixer,
    MoeMlp,
    require_whole,
)
from flopwatch.huggingface.reader import HfConfig
from flopwatch.layer_runs import runs

Masks = Callable[[HfConfig, int], list[Mask]]
FeedForwards = Callable[[HfConfig, "Family", int], list[FeedForward]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """What the configs of a model type leave out because the code knows it."""

    masks: Masks
    feed_forwards: FeedForwards
    gated: bool = True
    tied: bool = False
    """Default of ``tie_word_embeddings``."""
    head_dim: int | None = None
    positions: bool = False
    mixers: Callable[[HfConfig, list[Mask]], list[Mixer]] | None = None


def decoder(config: HfConfig, family: Family) -> dict[str, Any]:
    """Field values of ``ModelShape`` for a decoder of that family.

    Raises:
        ShapeError: a field is missing or not understood.
    """
    layers = layers_of(config)
    if config.get("word_embed_proj_dim") not in (None, hidden_of(config)):
        raise config.refused("word_embed_proj_dim", "hidden_size")
    masks = family.masks(config, layers)
    mixers = (
        family.mixers(config, masks) if family.mixers else [attention(config, family, mask) for mask in masks]
    )
    return {
        **embeddings(config, tied=family.tied),
        "learned_positions": _positions(config) if family.positions else 0,
        "blocks": runs(zip(mixers, family.feed_forwards(config, family, layers), strict=True)),
    }


def embeddings(config: HfConfig, *, tied: bool) -> dict[str, Any]:
    """Hidden width, vocabulary and whether it is tied."""
    return {
        "hidden": hidden_of(config),
        "vocab": config.whole("vocab_size", "padded_vocab_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
    }


def layers_of(config: HfConfig) -> int:
    """Layers, under any of the names in use."""
    layers = config.whole("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    return require_whole("num_hidden_layers", layers, maximum=MOST_LAYERS)


def hidden_of(config: HfConfig) -> int:
    """Hidden width, under any of the names in use."""
    return config.whole("hidden_size", "n_embd", "n_embed", "d_model")


def heads_of(config: HfConfig) -> int:
    """Query heads, under any of the names in use."""
    return config.whole("num_attention_heads", "n_head", "n_heads")


def _positions(config: HfConfig) -> int:
    return config.whole("n_positions", "max_position_embeddings", minimum=0, default=0)


def attention(config: HfConfig, family: Family, mask: Mask) -> Attention:
    """One layer's grouped attention."""
    heads, hidden = heads_of(config), hidden_of(config)
    default = family.head_dim or (hidden // heads if hidden % heads == 0 else None)
    return Attention(
        heads=heads,
        kv_heads=config.whole("num_key_value_heads", default=heads),
        head_dim=config.whole("head_dim", "attention_head_dim", default=default),
        mask=mask,
    )


def latent_attention(config: HfConfig, masks: list[Mask]) -> list[Mixer]:
    """DeepSeek's latent attention in every layer."""
    q_lora = config.get("q_lora_rank")
    config.get("head_dim", "num_key_value_heads")
    return [
        LatentAttention(
            heads=heads_of(config),
            q_lora=None if q_lora is None else config.whole("q_lora_rank"),
            kv_lora=config.whole("kv_lora_rank"),
            nope=config.whole("qk_nope_head_dim"),
            rope=config.whole("qk_rope_head_dim", minimum=0),
            v=config.whole("v_head_dim"),
            mask=mask,
        )
        for mask in masks
    ]


def falcon_attention(config: HfConfig, masks: list[Mask]) -> list[Mixer]:
    """Falcon and StarCoder 1: one key-value head, grouped ones in the new architecture, or as many as queries."""
    heads, hidden = heads_of(config), hidden_of(config)
    if config.flag("new_decoder_architecture"):
        kv_heads = config.whole("num_kv_heads", default=heads)
    else:
        kv_heads = 1 if config.flag("multi_query", default=True) else heads
    head_dim = hidden // heads
    return [Attention(heads=heads, kv_heads=kv_heads, head_dim=head_dim, mask=mask) for mask in masks]


def causal(config: HfConfig, layers: int) -> list[Mask]:  # noqa: ARG001 - the signature of all mask readers
    """Causal attention everywhere."""
    return [Mask()] * layers


def typed(config: HfConfig, layers: int) -> list[Mask] | None:
    """Masks by ``layer_types``, where the config has them."""
    types = config.words("layer_types", layers)
    if types is None:
        return None
    masks = {"full_attention": Mask()}
    if "sliding_attention" in types:
        masks["sliding_attention"] = Mask(window=config.whole("sliding_window"))
    if "chunked_attention" in types:
        masks["chunked_attention"] = Mask(chunk=config.whole("attention_chunk_size"))
    config.get("sliding_window", "attention_chunk_size")
    if not set(types) <= set(masks):
        raise config.refused("layer_types", "full_attention, sliding_attention, chunked_attention")
    return [masks[name] for name in types]


def window_everywhere(config: HfConfig, layers: int) -> list[Mask]:
    """The sliding window on every layer, where there is one (Mistral, Phi-3, StarCoder 2)."""
    by_type = typed(config, layers)
    if by_type is not None:
        return by_type
    window = config.get("sliding_window")
    return [Mask() if window is None else Mask(window=config.whole("sliding_window"))] * layers


def window_from_layer(config: HfConfig, layers: int) -> list[Mask]:
    """Qwen: the window from ``max_window_layers`` on, and only when ``use_sliding_window`` says so."""
    by_type = typed(config, layers)
    if by_type is not None:
        return by_type
    config.get("sliding_window")
    if not config.flag("use_sliding_window"):
        return [Mask()] * layers
    local, first = Mask(window=config.whole("sliding_window")), config.whole("max_window_layers", minimum=0)
    return [local if index >= first else Mask() for index in range(layers)]


def window_alternating(period: int | None = None) -> Masks:
    """The window on all but each ``period``-th layer (None: as ``sliding_window_pattern`` says)."""

    def masks(config: HfConfig, layers: int) -> list[Mask]:
        by_type = typed(config, layers)
        if by_type is not None:
            config.get("sliding_window_pattern")
            return by_type
        local = Mask(window=config.whole("sliding_window"))
        every = config.whole("sliding_window_pattern", "_sliding_window_pattern", default=period)
        return [local if (index + 1) % every else Mask() for index in range(layers)]

    return masks


def chunked(config: HfConfig, layers: int) -> list[Mask]:
    """Llama 4: chunks on the layers with rotary positions, full attention on each fourth."""
    by_type = typed(config, layers)
    if by_type is not None:
        config.get("no_rope_layers", "no_rope_layer_interval")
        return by_type
    local = Mask(chunk=config.whole("attention_chunk_size", default=8192))
    rotary = config.numbers("no_rope_layers")
    if not rotary:
        every = config.whole("no_rope_layer_interval", default=4)
        rotary = [int((index + 1) % every != 0) for index in range(layers)]
    if len(rotary) != layers:
        raise config.refused("no_rope_layers", f"a list of {layers} numbers")
    return [local if has_rope else Mask() for has_rope in rotary]


def softmax_only(config: HfConfig, layers: int) -> list[Mask]:
    """MiniMax-M2: causal attention everywhere; a 0 in ``attn_type_list`` is another kind, which is refused."""
    if set(config.numbers("attn_type_list") or [1]) != {1}:
        raise config.refused("attn_type_list", "1 for each layer")
    return causal(config, layers)


def dense(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    """A dense MLP in every layer; 4h wide where no width is given."""
    return [dense_mlp(config, family)] * layers


def dense_mlp(config: HfConfig, family: Family) -> DenseMlp:
    """The dense MLP of a config."""
    width = config.whole(
        "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", default=4 * hidden_of(config)
    )
    return DenseMlp(ffn=width, gated=family.gated)


def experts_everywhere(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    """Mixtral's kind: experts as wide as ``intermediate_size`` in every layer."""
    experts = MoeMlp(
        n_experts=config.whole("num_local_experts", "num_experts"),
        top_k=config.whole("num_experts_per_tok", "experts_per_token"),
        expert_ffn=config.whole("intermediate_size"),
        shared_expert_ffn=config.whole("shared_intermediate_size", minimum=0, default=0),
        gated=family.gated,
    )
    return [experts] * layers


def experts_by_step(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    """Qwen's kind: experts in each ``decoder_sparse_step``-th layer, save ``mlp_only_layers``."""
    step = config.whole("decoder_sparse_step", default=1)
    dense_layers = config.numbers("mlp_only_layers") or []
    shared = config.whole("shared_expert_intermediate_size", minimum=0, default=0)
    experts = _experts(config, family, shared)
    return [
        experts if index not in dense_layers and (index + 1) % step == 0 else dense_mlp(config, family)
        for index in range(layers)
    ]


def experts_after_dense(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    """DeepSeek's kind: leading dense layers, then experts with shared ones."""
    if config.get("n_routed_experts") is None:
        return dense(config, family, layers)
    width = config.whole("moe_intermediate_size")
    shared = config.whole("n_shared_experts", "num_shared_experts", minimum=0, default=0) * width
    experts = _experts(config, family, shared)
    first, every = (
        config.whole("first_k_dense_replace", minimum=0, default=0),
        config.whole("moe_layer_freq", default=1),
    )
    return [
        experts if index >= first and index % every == 0 else dense_mlp(config, family)
        for index in range(layers)
    ]


def _experts(config: HfConfig, family: Family, shared: int) -> MoeMlp:
    return MoeMlp(
        n_experts=config.whole("num_experts", "n_routed_experts", "num_local_experts"),
        top_k=config.whole("num_experts_per_tok"),
        expert_ffn=config.whole("moe_intermediate_size"),
        shared_expert_ffn=shared,
        gated=family.gated,
    )


def experts_interleaved(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    """Llama 4: experts with one shared expert of the same width in ``moe_layers``, wider dense layers between."""
    width = config.whole("intermediate_size")
    experts = MoeMlp(
        n_experts=config.whole("num_local_experts"),
        top_k=config.whole("num_experts_per_tok"),
        expert_ffn=width,
        shared_expert_ffn=width,
        gated=family.gated,
    )
    plain = DenseMlp(ffn=config.whole("intermediate_size_mlp"), gated=family.gated)
    step = config.whole("interleave_moe_layer_step", default=1)
    routed = config.numbers("moe_layers")
    if routed is None:
        routed = list(range(step - 1, layers, step))
    return [experts if index in routed else plain for index in range(layers)]


def experts_beside_dense(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    """Snowflake Arctic: experts in each ``moe_layer_frequency``-th layer, a dense MLP as wide as the model beside."""
    beside = hidden_of(config) if config.flag("parallel_attn_mlp_res") else 0
    experts = MoeMlp(
        n_experts=config.whole("num_local_experts"),
        top_k=config.whole("num_experts_per_tok"),
        expert_ffn=config.whole("intermediate_size"),
        shared_expert_ffn=beside,
        gated=family.gated,
    )
    every, plain = config.whole("moe_layer_frequency", default=2), dense_mlp(config, family)
    return [plain if (index + 1) % every else experts for index in range(layers)]


PLAIN = Family(masks=causal, feed_forwards=dense)
WINDOWED = Family(masks=window_everywhere, feed_forwards=dense)
UNGATED = Family(masks=causal, feed_forwards=dense, gated=False)
GPT = Family(masks=causal, feed_forwards=dense, gated=False, tied=True, positions=True)
ALTERNATING = Family(masks=window_alternating(2), feed_forwards=dense, tied=True, head_dim=256)
DECODERS: dict[str, Family] = {
    **dict.fromkeys(
        ("llama", "granite", "olmo", "olmo2", "stablelm", "internlm2", "helium", "glm", "glm4", "seed_oss"),
        PLAIN,
    ),
    **dict.fromkeys(("mistral", "phi3"), WINDOWED),
    "ministral": WINDOWED,
    "cohere": Family(masks=causal, feed_forwards=dense, tied=True),
    "cohere2": Family(masks=window_alternating(4), feed_forwards=dense, tied=True),
    "smollm3": Family(masks=window_from_layer, feed_forwards=dense, tied=True),
    "exaone4": Family(masks=window_alternating(4), feed_forwards=dense),
    "olmo3": Family(masks=window_alternating(4), feed_forwards=dense),
    "qwen2": Family(masks=window_from_layer, feed_forwards=dense),
    "qwen3": Family(masks=window_from_layer, feed_forwards=dense, head_dim=128),
    "gemma": Family(masks=causal, feed_forwards=dense, tied=True, head_dim=256),
    "gemma2": ALTERNATING,
    "gemma3_text": Family(masks=window_alternating(6), feed_forwards=dense, tied=True, head_dim=256),
    "starcoder2": Family(masks=window_everywhere, feed_forwards=dense, gated=False, tied=True),
    **dict.fromkeys(("phi", "gpt_neox", "nemotron", "arcee", "apertus"), UNGATED),
    "gptj": UNGATED,
    "gpt2": GPT,
    "opt": GPT,
    "bloom": Family(masks=causal, feed_forwards=dense, gated=False, tied=True),
    "falcon": Family(masks=causal, feed_forwards=dense, gated=False, tied=True, mixers=falcon_attention),
    "gpt_bigcode": Family(
        masks=causal, feed_forwards=dense, gated=False, tied=True, positions=True, mixers=falcon_attention
    ),
    **dict.fromkeys(("mixtral", "phimoe"), Family(masks=window_everywhere, feed_forwards=experts_everywhere)),
    **dict.fromkeys(("olmoe", "granitemoe"), Family(masks=causal, feed_forwards=experts_everywhere)),
    "arctic": Family(masks=window_everywhere, feed_forwards=experts_beside_dense),
    "minimax_m2": Family(masks=softmax_only, feed_forwards=experts_everywhere),
    "granitemoeshared": Family(masks=causal, feed_forwards=experts_everywhere),
    "gpt_oss": Family(masks=window_alternating(2), feed_forwards=experts_everywhere, head_dim=64),
    "qwen2_moe": Family(masks=window_from_layer, feed_forwards=experts_by_step),
    "qwen3_moe": Family(masks=window_from_layer, feed_forwards=experts_by_step, head_dim=128),
    **dict.fromkeys(
        ("glm4_moe", "dots1"), Family(masks=window_from_layer, feed_forwards=experts_after_dense)
    ),
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v3", "kimi_k2"),
        Family(masks=causal, feed_forwards=experts_after_dense, mixers=latent_attention),
    ),
    "llama4_text": Family(masks=chunked, feed_forwards=experts_interleaved, head_dim=128),
}
