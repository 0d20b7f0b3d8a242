"""State-space and hybrid models of Hugging Face, by model type."""

from collections.abc import Callable
from typing import Any

from flopwatch.blocks import Attention, DenseMlp, FeedForward, GatedDelta, Mamba1, Mamba2, Mask, Mixer, MoeMlp
from flopwatch.huggingface.decoder import (
    PLAIN,
    Family,
    attention,
    causal,
    embeddings,
    experts_by_step,
    heads_of,
    hidden_of,
    layers_of,
)
from flopwatch.huggingface.decoder import dense as dense_layers
from flopwatch.huggingface.reader import HfConfig
from flopwatch.layer_runs import runs


def mamba2(config: HfConfig) -> dict[str, Any]:
    """Mamba-2: a state-space layer and nothing else."""
    inner = config.whole("expand", default=2) * hidden_of(config)
    head_dim = config.whole("head_dim", default=64)
    layer = Mamba2(
        inner=inner,
        heads=config.whole("num_heads", default=inner // head_dim),
        state=config.whole("state_size", default=128),
        groups=config.whole("n_groups", default=8),
    )
    return {**embeddings(config, tied=False), "blocks": runs([(layer, None)] * layers_of(config))}


def mamba(config: HfConfig) -> dict[str, Any]:
    """Mamba, Falcon-Mamba: a selective state-space layer and nothing else."""
    hidden = hidden_of(config)
    layer = Mamba1(
        inner=config.whole("intermediate_size", default=config.whole("expand", default=2) * hidden),
        state=config.whole("state_size", default=16),
        time_step_rank=_rank(config, "time_step_rank", hidden),
    )
    return {**embeddings(config, tied=True), "blocks": runs([(layer, None)] * layers_of(config))}


def _rank(config: HfConfig, name: str, hidden: int) -> int:
    """The rank of the time step's projection: ``auto`` is a sixteenth of the hidden width."""
    if config.get(name) in (None, "auto"):
        return -(-hidden // 16)
    return config.whole(name)


def nemotron_h(config: HfConfig) -> dict[str, Any]:
    """Nemotron-H: one part a layer, by ``hybrid_override_pattern`` (M Mamba-2, * attention, - MLP, E experts)."""
    symbols = config.get("hybrid_override_pattern")
    parts: dict[str, Callable[[], tuple[Mixer | None, FeedForward | None]]] = {
        "M": lambda: (_nemotron_mamba(config), None),
        "*": lambda: (attention(config, Family(masks=causal, feed_forwards=dense_layers), Mask()), None),
        "-": lambda: (None, DenseMlp(ffn=config.whole("intermediate_size"), gated=False)),
        "E": lambda: (None, _nemotron_experts(config)),
    }
    if not isinstance(symbols, str) or not symbols or set(symbols) - set(parts):
        raise config.refused("hybrid_override_pattern", "a string of M, *, - and E")
    if len(symbols) != layers_of(config):
        raise config.refused("hybrid_override_pattern", f"num_hidden_layers ({layers_of(config)}) symbols")
    config.get("intermediate_size", "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
    config.get("n_shared_experts", "moe_latent_size", "ssm_state_size", "moe_shared_expert_intermediate_size")
    made = {symbol: parts[symbol]() for symbol in set(symbols)}
    return {**embeddings(config, tied=False), "blocks": runs(made[symbol] for symbol in symbols)}


def _nemotron_mamba(config: HfConfig) -> Mamba2:
    heads, head_dim = config.whole("mamba_num_heads"), config.whole("mamba_head_dim")
    groups = config.whole("n_groups", "mamba_n_groups", default=8)
    state = config.whole("ssm_state_size", "mamba_state_dim", default=128)
    return Mamba2(inner=heads * head_dim, heads=heads, state=state, groups=groups)


def _nemotron_experts(config: HfConfig) -> MoeMlp:
    return MoeMlp(
        n_experts=config.whole("n_routed_experts"),
        top_k=config.whole("num_experts_per_tok"),
        expert_ffn=config.whole("moe_intermediate_size"),
        shared_expert_ffn=config.whole("moe_shared_expert_intermediate_size", minimum=0, default=0)
        * config.whole("n_shared_experts", minimum=0, default=1),
        latent=config.get("moe_latent_size"),
        gated=False,
    )


def bamba(config: HfConfig) -> dict[str, Any]:
    """Bamba: Mamba-2 with attention on ``attn_layer_indices``, a gated MLP in every layer."""
    layers = layers_of(config)
    where = config.numbers("attn_layer_indices") or []
    mixers = [_attention_or(config, index in where) for index in range(layers)]
    mlps = dense_layers(config, PLAIN, layers)
    return {**embeddings(config, tied=False), "blocks": runs(zip(mixers, mlps, strict=True))}


def granite_hybrid(config: HfConfig) -> dict[str, Any]:
    """Granite 4: Mamba-2 and attention by ``layer_types``, experts beside a shared MLP."""
    layers = layers_of(config)
    types = config.words("layer_types", layers) or config.words("layers_block_type", layers)
    if types is None or not set(types) <= {"mamba", "attention"}:
        raise config.refused("layer_types", "mamba or attention for each layer")
    shared = config.whole("shared_intermediate_size", default=1024)
    mlp: FeedForward = DenseMlp(ffn=shared, gated=True)
    experts = config.whole("num_local_experts", minimum=0, default=0)
    top_k, width = config.get("num_experts_per_tok"), config.get("intermediate_size")
    if experts:
        mlp = MoeMlp(n_experts=experts, top_k=top_k, expert_ffn=width, shared_expert_ffn=shared, gated=True)
    layer_mixers = [_attention_or(config, name == "attention") for name in types]
    return {**embeddings(config, tied=False), "blocks": runs((mixer, mlp) for mixer in layer_mixers)}


def _attention_or(config: HfConfig, is_attention: bool) -> Mixer:  # noqa: FBT001 - one layer's kind
    """Attention, or the Mamba-2 layer of Bamba and Granite."""
    if is_attention:
        return attention(config, PLAIN, Mask())
    inner = config.whole("mamba_expand", default=2) * hidden_of(config)
    heads = config.whole("mamba_n_heads")
    return Mamba2(
        inner=inner,
        heads=heads,
        state=config.whole("mamba_d_state", default=256),
        groups=config.whole("mamba_n_groups", default=1),
    )


def jamba(config: HfConfig) -> dict[str, Any]:
    """Jamba: Mamba with attention each ``attn_layer_period``, experts each ``expert_layer_period``."""
    layers, hidden = layers_of(config), hidden_of(config)
    every, first = (
        config.whole("attn_layer_period", default=8),
        config.whole("attn_layer_offset", minimum=0, default=4),
    )
    state = Mamba1(
        inner=config.whole("mamba_expand", default=2) * hidden,
        state=config.whole("mamba_d_state", default=16),
        time_step_rank=_rank(config, "mamba_dt_rank", hidden),
    )
    heads = attention(config, PLAIN, Mask())
    experts = MoeMlp(
        n_experts=config.whole("num_experts", default=16),
        top_k=config.whole("num_experts_per_tok", default=2),
        expert_ffn=config.whole("intermediate_size"),
        shared_expert_ffn=0,
        gated=True,
    )
    plain = DenseMlp(ffn=config.whole("intermediate_size"), gated=True)
    step = config.whole("expert_layer_period", default=2)
    offset = config.whole("expert_layer_offset", minimum=0, default=1)
    return {
        **embeddings(config, tied=False),
        "blocks": runs(
            (heads if index % every == first else state, experts if index % step == offset else plain)
            for index in range(layers)
        ),
    }


def qwen3_next(config: HfConfig) -> dict[str, Any]:
    """Qwen3-Next: gated delta layers, gated attention on each fourth, experts with a shared one."""
    layers = layers_of(config)
    types = config.words("layer_types", layers)
    if types is None:
        every = config.whole("full_attention_interval", default=4)
        types = ["linear_attention" if (i + 1) % every else "full_attention" for i in range(layers)]
    if not set(types) <= {"linear_attention", "full_attention"}:
        raise config.refused("layer_types", "linear_attention or full_attention")
    delta = GatedDelta(
        key_heads=config.whole("linear_num_key_heads"),
        value_heads=config.whole("linear_num_value_heads"),
        key_head_dim=config.whole("linear_key_head_dim"),
        value_head_dim=config.whole("linear_value_head_dim"),
        convolution=config.whole("linear_conv_kernel_dim", default=4),
    )
    heads = heads_of(config)
    full = Attention(
        heads=heads,
        kv_heads=config.whole("num_key_value_heads", default=heads),
        head_dim=config.whole("head_dim", default=256),
        output_gate=True,
    )
    config.get("full_attention_interval")
    mixers = [delta if name == "linear_attention" else full for name in types]
    mlps = (
        experts_by_step(config, PLAIN, layers)
        if config.get("num_experts")
        else dense_layers(config, PLAIN, layers)
    )
    return {**embeddings(config, tied=False), "blocks": runs(zip(mixers, mlps, strict=True))}


HYBRIDS: dict[str, Callable[[HfConfig], dict[str, Any]]] = {
    "mamba": mamba, "falcon_mamba": mamba, "mamba2": mamba2, "nemotron_h": nemotron_h, "bamba": bamba,
    "granitemoehybrid": granite_hybrid, "jamba": jamba, "qwen3_next": qwen3_next,
}  # fmt: skip
