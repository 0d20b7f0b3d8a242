"""torchtitan's models by family and flavor, whose sizes it does not print: as the published ``config.json`` of each."""

from collections.abc import Mapping
from typing import Any

_QWEN3 = {
    # flavor: hidden, layers, heads, key-value heads, feed-forward, tied embeddings
    "0.6B": (1024, 28, 16, 8, 3072, True),
    "1.7B": (2048, 28, 16, 8, 6144, True),
    "4B": (2560, 36, 32, 8, 9728, True),
    "8B": (4096, 36, 32, 8, 12288, False),
    "14B": (5120, 40, 40, 8, 17408, False),
    "32B": (5120, 64, 64, 8, 25600, False),
}
_QWEN3_MOE = {
    # flavor: hidden, layers, heads, key-value heads, width of an expert
    "30B-A3B": (2048, 48, 32, 4, 768),
    "235B-A22B": (4096, 94, 64, 4, 1536),
}
_DEEPSEEK = {
    # flavor: hidden, layers, heads, feed-forward, width of an expert, experts, shared, chosen, dense layers,
    # rank of the queries, vocabulary
    "16B": (2048, 27, 16, 10944, 1408, 64, 2, 6, 1, 0, 102400),
    "236B": (5120, 60, 128, 12288, 1536, 160, 2, 6, 1, 1536, 102400),
    "671B": (7168, 61, 128, 18432, 2048, 256, 1, 8, 3, 1536, 129280),
}
_LLAMA_4 = {
    # flavor: experts, every how many layers they stand
    "17bx16e": (16, 1),
    "17bx128e": (128, 2),
}
_LLAMA_4_LAYERS = 48
_CHUNKED = "_irope"
"""Ends the names of Llama 4's flavors with attention in chunks, as it was published; the others' is full."""
_QWEN3_HEAD_DIM = 128
_QWEN3_VOCAB = 151936
_QWEN3_EXPERTS, _QWEN3_CHOSEN = 128, 8


def flavor_config(family: str | None, flavor: str | None) -> Mapping[str, Any] | None:
    """The configuration, for ``ModelShape.from_hf_config``; None for families and flavors that are not known."""
    if flavor is None:
        return None
    if family == "qwen3":
        return _qwen3(flavor) or _qwen3_moe(flavor)
    if family == "llama4":
        return _llama_4(flavor)
    return _deepseek(flavor) if family == "deepseek_v3" else None


def _qwen3(flavor: str) -> Mapping[str, Any] | None:
    sizes = _QWEN3.get(flavor)
    if sizes is None:
        return None
    hidden, layers, heads, groups, width, tied = sizes
    return {
        "model_type": "qwen3", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": groups, "head_dim": _QWEN3_HEAD_DIM, "intermediate_size": width,
        "vocab_size": _QWEN3_VOCAB, "tie_word_embeddings": tied,
    }  # fmt: skip


def _qwen3_moe(flavor: str) -> Mapping[str, Any] | None:
    sizes = _QWEN3_MOE.get(flavor)
    if sizes is None:
        return None
    hidden, layers, heads, groups, width = sizes
    return {
        "model_type": "qwen3_moe", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": groups, "head_dim": _QWEN3_HEAD_DIM, "intermediate_size": width,
        "moe_intermediate_size": width, "num_experts": _QWEN3_EXPERTS, "num_experts_per_tok": _QWEN3_CHOSEN,
        "vocab_size": _QWEN3_VOCAB, "tie_word_embeddings": False,
    }  # fmt: skip


def _deepseek(flavor: str) -> Mapping[str, Any] | None:
    sizes = _DEEPSEEK.get(flavor)
    if sizes is None:
        return None
    hidden, layers, heads, width, expert, experts, shared, chosen, dense, queries, vocab = sizes
    return {
        "model_type": "deepseek_v3", "hidden_size": hidden, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": heads, "intermediate_size": width,
        "moe_intermediate_size": expert, "n_routed_experts": experts, "n_shared_experts": shared,
        "num_experts_per_tok": chosen, "first_k_dense_replace": dense, "moe_layer_freq": 1,
        "q_lora_rank": queries or None, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "vocab_size": vocab, "tie_word_embeddings": False,
    }  # fmt: skip


def _llama_4(flavor: str) -> Mapping[str, Any] | None:
    """Scout and Maverick, text only."""
    sizes = _LLAMA_4.get(flavor.removesuffix(_CHUNKED))
    if sizes is None:
        return None
    experts, step = sizes
    masks: dict[str, Any] = {"attention_chunk_size": 8192}
    if not flavor.endswith(_CHUNKED):
        masks = {"layer_types": ["full_attention"] * _LLAMA_4_LAYERS}
    return {
        "model_type": "llama4_text", "hidden_size": 5120, "num_hidden_layers": _LLAMA_4_LAYERS,
        "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192,
        "intermediate_size_mlp": 16384, "num_local_experts": experts, "num_experts_per_tok": 1,
        "interleave_moe_layer_step": step, "vocab_size": 202048, "tie_word_embeddings": False, **masks,
    }  # fmt: skip
