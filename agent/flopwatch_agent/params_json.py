"""The model's shape in a ``params.json``, as Meta's Llama and Mistral's models have it beside their weights."""

import re
from collections.abc import Mapping
from typing import Any

from flopwatch.blocks import ShapeError
from flopwatch.shape import ModelShape

DECIDES = re.compile(r"expert|moe|lora|peft|adapter|vision|window|chunk|mamba|ssm|cross_att|mtp|latent")
"""Parts of names that change what a step computes: one that is set and not understood gives no shape."""
HARMLESS = (None, False, 0, 1, -1, "", "none")
READ = frozenset({"moe", "sliding_window"})
MOST = 1 << 24
"""No width, vocabulary or count of heads is larger."""


def is_params(settings: Mapping[str, Any]) -> bool:
    """Whether these are a model's parameters by Meta's names, and no other program's."""
    return "dim" in settings and "n_layers" in settings


def params_shape(params: Mapping[str, Any]) -> dict[str, Any]:
    """The shape, for ``ModelShape.from_dict``.

    The feed-forward width, where ``hidden_dim`` does not tell it, is 8/3 of ``dim``, times ``ffn_dim_multiplier``,
    rounded up to ``multiple_of``: https://github.com/meta-llama/llama3/blob/main/llama/model.py

    Raises:
        ValueError: naming what is missing (a ``vocab_size`` of -1 is left to the tokenizer) or not understood.
    """
    unknown = next((name for name in params if name not in READ and is_set(params, name)), None)
    if unknown is not None:
        raise ValueError(f"{safe(unknown)} is not understood")
    needed = {name: size(params, name) for name in ("dim", "n_layers", "n_heads", "vocab_size")}
    width = ffn_width(params, needed["dim"])
    missing = [
        name for name, value in (*needed.items(), ("hidden_dim or multiple_of", width)) if value is None
    ]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing or unknown")
    found = {
        "hidden": needed["dim"], "n_layers": needed["n_layers"], "n_heads": needed["n_heads"],
        "vocab": needed["vocab_size"], "n_kv_heads": size(params, "n_kv_heads"), "head_dim": size(params, "head_dim"),
        "ffn_hidden": width, "gated_mlp": True, "moe": experts(params, width), "attn": window(params),
        "tied_embeddings": any(params.get(name) is True for name in ("tied_embeddings", "weight_tying")),
    }  # fmt: skip
    return checked({name: value for name, value in found.items() if value is not None})


def checked(description: Mapping[str, Any]) -> dict[str, Any]:
    """A shape as it travels.

    Raises:
        ValueError: a field cannot be used.
    """
    try:
        return ModelShape.from_dict(description).to_dict()
    except ShapeError as error:
        raise ValueError(f"{safe(error.field)} cannot be used; allowed: {error.allowed}") from error


def safe(name: str) -> str:
    """A field's name as it may leave the node."""
    return name if re.fullmatch(r"[\w.]{1,40}", name) else "a field"


def is_set(settings: Mapping[str, Any], name: str) -> bool:
    """Whether a setting decides what is computed and has a value that says so."""
    if DECIDES.search(name) is None:
        return False
    value = settings.get(name)
    return isinstance(value, list | dict) or value not in HARMLESS


def size(settings: Mapping[str, Any], name: str) -> int | None:
    """A positive whole number; None where it is missing, null, -1 or anything else."""
    value = settings.get(name)
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST
    return value if whole else None


def ffn_width(params: Mapping[str, Any], dim: int | None) -> int | None:
    """The feed-forward width; None where the parameters do not tell it."""
    stated, multiple = size(params, "hidden_dim"), size(params, "multiple_of")
    if stated is not None or dim is None or multiple is None:
        return stated
    factor = params.get("ffn_dim_multiplier")
    width = 8 * dim // 3
    if isinstance(factor, int | float) and not isinstance(factor, bool) and 0 < factor < MOST:
        width = int(factor * width)
    return multiple * -(-width // multiple)


def experts(params: Mapping[str, Any], width: int | None) -> dict[str, Any] | None:
    """Mixtral's experts, each as wide as the feed-forward network of a dense model.

    Raises:
        ValueError: there are experts of another kind.
    """
    moe = params.get("moe")
    if moe in (None, {}):
        return None
    if not isinstance(moe, Mapping) or set(moe) - {"num_experts", "num_experts_per_tok"}:
        raise ValueError("moe is not understood; allowed: num_experts, num_experts_per_tok")
    counts = {name: size(moe, name) for name in ("num_experts", "num_experts_per_tok")}
    missing = [f"moe.{name}" for name, value in counts.items() if value is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing or unknown")
    return {"n_experts": counts["num_experts"], "top_k": counts["num_experts_per_tok"], "expert_ffn": width}


def window(params: Mapping[str, Any]) -> str | None:
    """Mistral's window, the same in all layers.

    Raises:
        ValueError: it is no single width.
    """
    stated = params.get("sliding_window")
    if stated is None:
        return None
    width = size(params, "sliding_window")
    if width is None:
        raise ValueError("sliding_window is not understood; allowed: null or a positive whole number")
    return f"sliding window {width}"
