"""Well-known models by name, for people who have no config file at hand."""

from typing import Any

from flopwatch.shape import ModelShape


def _dense(layers: int, hidden: int, ffn: int, heads: int, **other: Any) -> dict[str, Any]:
    """A gated decoder with untied embeddings, unless ``other`` says differently."""
    return {
        "n_layers": layers, "hidden": hidden, "ffn_hidden": ffn, "n_heads": heads,
        "gated_mlp": True, "tied_embeddings": False, **other,
    }  # fmt: skip


def _experts(count: int, top_k: int, width: int, shared: int = 0, first_dense: int = 0) -> dict[str, int]:
    return {
        "n_experts": count, "top_k": top_k, "expert_ffn": width,
        "shared_expert_ffn": shared, "first_dense_layers": first_dense,
    }  # fmt: skip


_LLAMA_3 = {"n_kv_heads": 8, "vocab": 128256}
_QWEN_3 = {"head_dim": 128, "vocab": 151936}
_MLA = {"q_lora": 1536, "kv_lora": 512, "nope": 128, "rope": 64, "v": 128}
_GPT_OSS = {
    "head_dim": 64,
    "n_kv_heads": 8,
    "vocab": 201088,
    "attn": "alternating sliding window 128 and full",
}
DESCRIPTIONS: dict[str, dict[str, Any]] = {
    "llama-2-7b": _dense(32, 4096, 11008, 32, vocab=32000),
    "llama-2-13b": _dense(40, 5120, 13824, 40, vocab=32000),
    "llama-2-70b": _dense(80, 8192, 28672, 64, n_kv_heads=8, vocab=32000),
    "llama-3-8b": _dense(32, 4096, 14336, 32, **_LLAMA_3),
    "llama-3-70b": _dense(80, 8192, 28672, 64, **_LLAMA_3),
    "llama-3.1-405b": _dense(126, 16384, 53248, 128, **_LLAMA_3),
    "qwen2.5-7b": _dense(28, 3584, 18944, 28, n_kv_heads=4, vocab=152064),
    "qwen2.5-72b": _dense(80, 8192, 29568, 64, n_kv_heads=8, vocab=152064),
    "qwen3-8b": _dense(36, 4096, 12288, 32, n_kv_heads=8, **_QWEN_3),
    "qwen3-32b": _dense(64, 5120, 25600, 64, n_kv_heads=8, **_QWEN_3),
    "qwen3-30b-a3b": _dense(48, 2048, 6144, 32, n_kv_heads=4, moe=_experts(128, 8, 768), **_QWEN_3),
    "qwen3-235b-a22b": _dense(94, 4096, 12288, 64, n_kv_heads=4, moe=_experts(128, 8, 1536), **_QWEN_3),
    "mixtral-8x7b": _dense(32, 4096, 14336, 32, n_kv_heads=8, vocab=32000, moe=_experts(8, 2, 14336)),
    "mixtral-8x22b": _dense(56, 6144, 16384, 48, n_kv_heads=8, vocab=32768, moe=_experts(8, 2, 16384)),
    "deepseek-v3": _dense(61, 7168, 18432, 128, vocab=129280, mla=_MLA, moe=_experts(256, 8, 2048, 2048, 3)),
    "gpt-oss-20b": _dense(24, 2880, 2880, 64, moe=_experts(32, 4, 2880), **_GPT_OSS),
    "gpt-oss-120b": _dense(36, 2880, 2880, 64, moe=_experts(128, 4, 2880), **_GPT_OSS),
    "gpt-3-175b": {
        "n_layers": 96, "hidden": 12288, "ffn_hidden": 49152, "n_heads": 96, "vocab": 50257,
        "padded_vocab_used": 51200, "gated_mlp": False, "tied_embeddings": True, "learned_positions": 2048,
    },
    "gpt-2-124m": {
        "n_layers": 12, "hidden": 768, "ffn_hidden": 3072, "n_heads": 12, "vocab": 50257,
        "gated_mlp": False, "tied_embeddings": True, "learned_positions": 1024,
    },
}  # fmt: skip


def by_name(name: str) -> ModelShape | None:
    """The shape of a well-known model such as ``llama-3-8b``; None when the name is not one of them."""
    description = DESCRIPTIONS.get(name.strip().lower())
    return None if description is None else ModelShape.from_dict({"name": name, **description})
