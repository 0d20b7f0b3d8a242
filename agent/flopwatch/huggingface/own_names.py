"""Decoders of Hugging Face whose configs have names, or parts, of their own."""

from flopwatch.blocks import Attention, DenseMlp, FeedForward, Mask, Mixer, MoeMlp
from flopwatch.huggingface.decoder import (
    UNGATED,
    Family,
    causal,
    dense,
    dense_mlp,
    heads_of,
    hidden_of,
)
from flopwatch.huggingface.reader import HfConfig


def _grouped(heads: int, kv_heads: int, head_dim: int, masks: list[Mask]) -> list[Mixer]:
    return [Attention(heads=heads, kv_heads=kv_heads, head_dim=head_dim, mask=mask) for mask in masks]


def _part_attention(config: HfConfig, masks: list[Mask]) -> list[Mixer]:
    """MPT and DBRX: heads of keys and values in ``attn_config``."""
    heads = heads_of(config)
    kv_heads = config.part("attn_config").whole("kv_n_heads", default=heads)
    return _grouped(heads, kv_heads, hidden_of(config) // heads, masks)


def _channels(config: HfConfig, masks: list[Mask]) -> list[Mixer]:
    """ChatGLM 2 and later, Qwen 1: the width of a head as ``kv_channels``, groups as ``multi_query_group_num``."""
    heads = heads_of(config)
    grouped = config.flag("multi_query_attention")
    kv_heads = config.whole("multi_query_group_num") if grouped else heads
    return _grouped(heads, kv_heads, config.whole("kv_channels"), masks)


def _neo_attention(config: HfConfig, masks: list[Mask]) -> list[Mixer]:
    heads = config.whole("num_heads")
    return _grouped(heads, heads, hidden_of(config) // heads, masks)


def _neo_masks(config: HfConfig, layers: int) -> list[Mask]:
    """GPT-Neo: patterns of global and local layers, each repeated so many times."""
    local, kinds = Mask(window=config.whole("window_size")), []
    for group in config.get("attention_types") or []:
        if not (isinstance(group, list) and len(group) == 2 and isinstance(group[0], list)):
            raise config.refused("attention_types", "lists of a pattern and how often it stands")
        kinds += group[0] * int(group[1])
    if len(kinds) != layers or not set(kinds) <= {"global", "local"}:
        raise config.refused("attention_types", f"global or local for each of {layers} layers")
    return [Mask() if kind == "global" else local for kind in kinds]


def _expanded(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    width = config.whole("expansion_ratio", default=4) * hidden_of(config)
    return [DenseMlp(ffn=width, gated=family.gated)] * layers


def _halved(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    """Qwen 1: ``intermediate_size`` is that of gate and value together."""
    return [DenseMlp(ffn=config.whole("intermediate_size") // 2, gated=family.gated)] * layers


def _dbrx_experts(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    part = config.part("ffn_config")
    experts = MoeMlp(
        n_experts=part.whole("moe_num_experts"),
        top_k=part.whole("moe_top_k"),
        expert_ffn=part.whole("ffn_hidden_size"),
        shared_expert_ffn=0,
        gated=family.gated,
    )
    return [experts] * layers


def _ernie_experts(config: HfConfig, family: Family, layers: int) -> list[FeedForward]:
    """ERNIE 4.5: experts from one layer to another, at an interval; shared ones of the same width."""
    width = config.whole("moe_intermediate_size")
    experts = MoeMlp(
        n_experts=config.whole("moe_num_experts"),
        top_k=config.whole("moe_k"),
        expert_ffn=width,
        shared_expert_ffn=width * config.whole("moe_num_shared_experts", minimum=0, default=0),
        gated=family.gated,
    )
    first = config.whole("moe_layer_start_index", minimum=0)
    last = config.whole("moe_layer_end_index", minimum=-1, default=-1)
    every = config.whole("moe_layer_interval", default=1)
    last = layers - 1 if last == -1 else last
    return [
        experts if first <= index <= last and (index + 1) % every == 0 else dense_mlp(config, family)
        for index in range(layers)
    ]


_PLAIN = Family(masks=causal, feed_forwards=dense)
_TIED = Family(masks=causal, feed_forwards=dense, tied=True)
OWN_NAMES: dict[str, Family] = {
    **dict.fromkeys(("baichuan", "internlm", "xverse", "Yi", "aquila"), _PLAIN),
    **dict.fromkeys(("minicpm", "ernie4_5", "hunyuan_v1_dense"), _TIED),
    "persimmon": UNGATED,
    "mpt": Family(masks=causal, feed_forwards=_expanded, gated=False, tied=True, mixers=_part_attention),
    "dbrx": Family(masks=causal, feed_forwards=_dbrx_experts, mixers=_part_attention),
    "gpt_neo": Family(
        masks=_neo_masks, feed_forwards=dense, gated=False, tied=True, positions=True, mixers=_neo_attention
    ),
    "qwen": Family(masks=causal, feed_forwards=_halved, mixers=_channels),
    "chatglm": Family(masks=causal, feed_forwards=dense, mixers=_channels),
    "ernie4_5_moe": Family(masks=causal, feed_forwards=_ernie_experts, tied=True),
}
