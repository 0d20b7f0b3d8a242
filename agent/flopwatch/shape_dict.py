"""A shape as plain JSON values: flat keys that people and benchmark tables use, or ``blocks`` for any model."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from flopwatch.blocks import (
    MOST_LAYERS,
    Attention,
    Block,
    DenseMlp,
    FeedForward,
    GatedDelta,
    LatentAttention,
    Mamba1,
    Mamba2,
    Mask,
    Mixer,
    MoeMlp,
    ShapeError,
    field_names,
    require_whole,
)
from flopwatch.layer_runs import runs
from flopwatch.shape_text import Hybrid, hybrid_of, masks_of

PARTS: dict[str, type] = {
    "attention": Attention, "latent_attention": LatentAttention, "mamba2": Mamba2, "mamba1": Mamba1,
    "gated_delta": GatedDelta, "dense_mlp": DenseMlp, "moe_mlp": MoeMlp, "mask": Mask,
}  # fmt: skip
BOOLEAN_FIELDS = frozenset({"gated", "output_gate", "own_keys", "causal", "frozen"})
OPTIONAL_FIELDS = frozenset({"value_head_dim", "key_value_hidden", "q_lora", "latent", "window", "chunk"})
COMMON_KEYS = frozenset({
    "name", "hidden", "vocab", "padded_vocab_used", "seq_len", "tied_embeddings", "n_params", "n_params_is",
    "n_params_active", "mtp_layers", "learned_positions", "lora", "frozen_layers",
})  # fmt: skip
FLAT_KEYS = frozenset({
    "n_layers", "ffn_hidden", "n_heads", "n_kv_heads", "head_dim", "gated_mlp", "moe", "mla", "attn", "extra",
})  # fmt: skip
GENERAL_KEYS = frozenset({"blocks", "stacks", "entry_weights", "mtp_blocks"})


def read(description: Mapping[str, Any]) -> dict[str, Any]:
    """Field values of ``ModelShape``; stacks and finetuning as dicts.

    Raises:
        ShapeError: a key is unknown or missing, or its value is not understood.
    """
    allowed = COMMON_KEYS | (GENERAL_KEYS if "blocks" in description else FLAT_KEYS)
    for key in description:
        if key not in allowed:
            raise ShapeError(key, description[key], "one of " + ", ".join(sorted(allowed)))
    values = _common(description)
    if "blocks" in description:
        return values | {
            "blocks": _blocks(description["blocks"]),
            "mtp_blocks": _blocks(description.get("mtp_blocks", ())),
            "entry_weights": whole(description, "entry_weights", default=0),
            "stacks": _stacks(description.get("stacks", ())),
        }
    return values | {"blocks": _flat_blocks(description)}


def _common(description: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that both forms share."""
    tied = description.get("tied_embeddings", False)
    if not isinstance(tied, bool):
        raise ShapeError("tied_embeddings", tied, "true or false")
    name = description.get("name")
    if name is not None and not isinstance(name, str):
        raise ShapeError("name", name, "text")
    values: dict[str, Any] = {
        "name": name,
        "hidden": whole(description, "hidden", minimum=1),
        "vocab": whole(description, "vocab"),
        "tied_embeddings": tied,
        "mtp_layers": whole(description, "mtp_layers", default=0),
        "learned_positions": whole(description, "learned_positions", default=0),
        "finetuning": _finetuning(description),
    }
    optional = {
        "padded_vocab_used": "padded_vocab", "seq_len": "seq_len",
        "n_params": "stated_parameters", "n_params_active": "stated_active_parameters",
    }  # fmt: skip
    for key, field in optional.items():
        if description.get(key) is not None and not (
            key.startswith("n_params") and _by_flat_formula(description)
        ):
            values[field] = whole(description, key, minimum=1)
    return values


def _by_flat_formula(description: Mapping[str, Any]) -> bool:
    """Whether a hybrid's parameters were computed from the flat keys, which do not hold for its layers."""
    return description.get("extra") is not None and str(description.get("n_params_is", "")).startswith(
        "computed"
    )


def whole(description: Mapping[str, Any], key: str, *, minimum: int = 0, default: int | None = None) -> int:
    """A whole number of a description, ``default`` when the key is missing or null.

    Raises:
        ShapeError: missing without a default, or not a whole number of at least ``minimum``.
    """
    value = description.get(key)
    if value is None:
        value = default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return require_whole(key, value, minimum)


def _finetuning(description: Mapping[str, Any]) -> dict[str, Any] | None:
    """``lora`` ({rank, roles}) and ``frozen_layers`` as fields of ``Finetuning``."""
    lora, frozen = description.get("lora"), whole(description, "frozen_layers", default=0)
    if lora is None:
        return {"frozen_layers": frozen} if frozen else None
    if not isinstance(lora, Mapping) or set(lora) - {"rank", "roles"}:
        raise ShapeError("lora", lora, "an object with rank and roles")
    roles = lora.get("roles") or []
    if not isinstance(roles, list | tuple) or not all(isinstance(role, str) for role in roles):
        raise ShapeError("lora.roles", roles, "a list of roles such as q, v, up")
    return {
        "adapter_rank": whole(lora, "rank", minimum=1),
        "adapter_roles": frozenset(roles),
        "frozen_layers": frozen,
    }


def _flat_blocks(description: Mapping[str, Any]) -> tuple[Block, ...]:
    """Blocks of the flat form: dense or mixture layers, or what ``extra`` says of a hybrid."""
    layers = require_whole("n_layers", whole(description, "n_layers", minimum=1), maximum=MOST_LAYERS)
    if description.get("extra") is not None:
        return _hybrid(description, layers)
    mixers = [_attention(description, mask) for mask in masks_of(description.get("attn"), layers)]
    return runs(zip(mixers, _feed_forwards(description, layers), strict=True))


def _attention(description: Mapping[str, Any], mask: Mask) -> Mixer:
    """The attention of one layer: latent when ``mla`` is there, else grouped heads."""
    heads = whole(description, "n_heads", minimum=1)
    mla = description.get("mla")
    if mla is not None:
        part = _object("mla", mla, {"q_lora", "kv_lora", "nope", "rope", "v"})
        q_lora = whole(part, "q_lora", default=0) or None
        sizes = {key: whole(part, key) for key in ("kv_lora", "nope", "rope", "v")}
        return LatentAttention(heads=heads, q_lora=q_lora, mask=mask, **sizes)
    hidden = whole(description, "hidden", minimum=1)
    default = hidden // heads if hidden % heads == 0 else None
    return Attention(
        heads=heads,
        kv_heads=whole(description, "n_kv_heads", minimum=1, default=heads),
        head_dim=whole(description, "head_dim", minimum=1, default=default),
        mask=mask,
    )


def _object(key: str, value: object, allowed: set[str]) -> Mapping[str, Any]:
    """``value`` as an object with no other keys than ``allowed``."""
    if not isinstance(value, Mapping):
        raise ShapeError(key, value, "an object with " + ", ".join(sorted(allowed)))
    for name in value:
        if name not in allowed:
            raise ShapeError(f"{key}.{name}", value[name], "one of " + ", ".join(sorted(allowed)))
    return value


def _gated(description: Mapping[str, Any]) -> bool:
    gated = description.get("gated_mlp")
    if not isinstance(gated, bool):
        raise ShapeError("gated_mlp", gated, "true or false")
    return gated


def _feed_forwards(description: Mapping[str, Any], layers: int) -> list[FeedForward]:
    """The feed-forward network of each layer, the leading dense ones first."""
    gated, moe = _gated(description), description.get("moe")
    if moe is None:
        return [DenseMlp(ffn=whole(description, "ffn_hidden", minimum=1), gated=gated)] * layers
    sizes = {"n_experts", "top_k", "expert_ffn", "shared_expert_ffn", "first_dense_layers"}
    part = _object("moe", moe, sizes)
    dense = whole(part, "first_dense_layers", default=0)
    if dense > layers:
        raise ShapeError("moe.first_dense_layers", dense, f"at most n_layers ({layers})")
    experts = MoeMlp(
        n_experts=whole(part, "n_experts", minimum=1),
        top_k=whole(part, "top_k", minimum=1),
        expert_ffn=whole(part, "expert_ffn", minimum=1),
        shared_expert_ffn=whole(part, "shared_expert_ffn", default=0),
        gated=gated,
    )
    leading: list[FeedForward] = []
    if dense:
        leading = [DenseMlp(ffn=whole(description, "ffn_hidden", minimum=1), gated=gated)] * dense
    return [*leading, *([experts] * (layers - dense))]


def _hybrid(description: Mapping[str, Any], layers: int) -> tuple[Block, ...]:
    """Layers of one part each, as ``extra`` lists them: state space, attention, feed-forward."""
    hybrid: Hybrid = hybrid_of(description["extra"])
    if hybrid.layers != layers:
        raise ShapeError("extra", description["extra"], f"layers that add up to n_layers ({layers})")
    hidden = whole(description, "hidden", minimum=1)
    blocks = []
    if hybrid.mamba:
        inner = hybrid.inner or 2 * hidden
        if inner % hybrid.head_dim:
            raise ShapeError(
                "extra", description["extra"], f"a head dim that divides the inner width ({inner})"
            )
        mamba = Mamba2(inner=inner, state=hybrid.state, groups=hybrid.groups, heads=inner // hybrid.head_dim)
        blocks.append(Block(count=hybrid.mamba, mixer=mamba))
    if hybrid.attention:
        mask = masks_of(description.get("attn"), 1)[0]
        blocks.append(Block(count=hybrid.attention, mixer=_attention(description, mask)))
    if hybrid.mlp:
        mlp = DenseMlp(ffn=whole(description, "ffn_hidden", minimum=1), gated=_gated(description))
        blocks.append(Block(count=hybrid.mlp, mlp=mlp))
    if hybrid.moe:
        experts = _feed_forwards(dict(description) | {"n_layers": 1}, 1)[0]
        blocks.append(Block(count=hybrid.moe, mlp=experts))
    return tuple(blocks)


def _blocks(items: object) -> tuple[Block, ...]:
    """Blocks of the general form: ``[{count, mixer: {kind, ...}, mlp: {kind, ...}}, ...]``."""
    if not isinstance(items, list | tuple):
        raise ShapeError("blocks", items, "a list of objects")
    return tuple(_block(item) for item in items)


def _block(item: object) -> Block:
    part = _object("blocks", item, {"count", "mixer", "mlp", "cross"})
    return Block(
        count=whole(part, "count"),
        **{name: _part(f"blocks.{name}", part[name]) for name in ("mixer", "mlp", "cross") if part.get(name)},
    )


def _part(key: str, value: object) -> Any:
    """A part of a block from ``{kind: ..., its fields}``."""
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str) or value["kind"] not in PARTS:
        raise ShapeError(key, value, "an object whose kind is one of " + ", ".join(PARTS))
    kind = PARTS[value["kind"]]
    part = dict(_object(key, value, {"kind", *field_names(kind)}))
    del part["kind"]
    for name, item in part.items():
        part[name] = _part(f"{key}.mask", item) if name == "mask" else _checked(f"{key}.{name}", name, item)
    try:
        return kind(**part)
    except TypeError as error:
        raise ShapeError(key, value, f"all of {', '.join(field_names(kind))} ({error})") from error


def _checked(key: str, name: str, value: object) -> object:
    """A field of a part: yes or no for the fields that say so, else a whole number or null."""
    if name in BOOLEAN_FIELDS:
        if not isinstance(value, bool):
            raise ShapeError(key, value, "true or false")
        return value
    return None if value is None and name in OPTIONAL_FIELDS else require_whole(key, value)


def _stacks(items: object) -> list[dict[str, Any]]:
    """Second stacks of the general form, as fields of ``Stack``."""
    if not isinstance(items, list | tuple):
        raise ShapeError("stacks", items, "a list of objects")
    return [_stack(item) for item in items]


def _stack(item: object) -> dict[str, Any]:
    sizes = {"hidden", "entry_weights", "stored_weights", "tokens_per_item"}
    part = dict(_object("stacks", item, {"name", "blocks", "frozen", *sizes}))
    for name in sizes & set(part):
        part[name] = whole(part, name, minimum=int(name in ("hidden", "tokens_per_item")))
    if not isinstance(part.get("name"), str) or "hidden" not in part:
        raise ShapeError("stacks", item, "objects with name, hidden and blocks")
    part["frozen"] = _checked("stacks.frozen", "frozen", part.get("frozen", False))
    return part | {"blocks": _blocks(part.get("blocks"))}


def write(shape: Any) -> dict[str, Any]:
    """``shape`` in the general form, keys that say nothing left out."""
    renamed = {
        "padded_vocab": "padded_vocab_used", "stated_parameters": "n_params",
        "stated_active_parameters": "n_params_active",
    }  # fmt: skip
    result = {
        renamed.get(field.name, field.name): _plain(getattr(shape, field.name))
        for field in fields(shape)
        if field.name != "finetuning" and getattr(shape, field.name) not in (None, ())
    }
    tuning = shape.finetuning
    if tuning is not None and tuning.adapter_rank is not None:
        result["lora"] = {"rank": tuning.adapter_rank, "roles": sorted(tuning.adapter_roles)}
    if tuning is not None:
        result["frozen_layers"] = tuning.frozen_layers
    return result


def _plain(value: Any) -> Any:
    """A part as JSON values: dataclasses of ``PARTS`` carry their kind."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if not is_dataclass(value):
        return value
    kinds = {kind: name for name, kind in PARTS.items()}
    kind = {"kind": kinds[type(value)]} if type(value) in kinds else {}
    items = ((name, getattr(value, name)) for name in field_names(type(value)))
    return kind | {name: _plain(item) for name, item in items if item is not None}
