"""What a PyTorch model tells of itself: shape, parameters, number format. Nothing is computed on its device."""

import sys
from collections.abc import Mapping
from typing import Any

from flopwatch.accelerator import dtype_of
from flopwatch.blocks import ShapeError
from flopwatch.flops import ModelShape

WRAPPERS = ("module", "_orig_mod")
PEFT_ROLES = {
    "q_proj": "q", "k_proj": "k", "v_proj": "v", "o_proj": "o", "gate_proj": "gate", "up_proj": "up",
    "down_proj": "down",
}  # fmt: skip


def model_facts(model: Any) -> dict[str, object]:
    """``shape`` of a model with a Hugging Face configuration; ``parameter_count`` where there is no shape.

    Neither is there for what cannot be told so: other adapters than LoRA, or parameters that are cut or packed.
    """
    model = unwrapped(model)
    adapters = getattr(model, "peft_config", None)
    shape = model_shape(model)
    if adapters:
        shape = None if shape is None else adapted(shape, adapters)
        return {} if shape is None else {"shape": shape.to_dict()}
    return {"parameter_count": parameter_count(model)} if shape is None else {"shape": shape.to_dict()}


def unwrapped(model: Any) -> Any:
    """The model inside data-parallel and compiled wrappers."""
    for _ in range(len(WRAPPERS) * 2):
        model = next((inner for name in WRAPPERS if (inner := getattr(model, name, None)) is not None), model)
    return model


def model_shape(model: Any) -> ModelShape | None:
    """The shape that the model's ``config`` describes; None when it has none that is understood."""
    to_dict = getattr(getattr(model, "config", None), "to_dict", None)
    if not callable(to_dict):
        return None
    try:
        return ModelShape.from_hf_config(to_dict())
    except ShapeError:
        return None


def adapted(shape: ModelShape, adapters: Mapping[str, Any]) -> ModelShape | None:
    """The frozen shape with PEFT's LoRA adapters; None for other kinds of adapters."""
    for adapter in adapters.values():
        rank, targets = getattr(adapter, "r", None), getattr(adapter, "target_modules", None)
        if not isinstance(rank, int) or rank < 1:
            return None
        named = set(targets) if isinstance(targets, (set, list, tuple)) else set()
        known = named <= set(PEFT_ROLES)
        return shape.with_lora(rank, frozenset(PEFT_ROLES[name] for name in named) if known else frozenset())
    return None


def parameter_count(model: Any) -> int | None:
    """All parameters over all ranks; None where a rank holds a flat part or packed values."""
    total = 0
    for parameter in model.parameters():
        if type(parameter).__name__ in ("FlatParameter", "Params4bit", "UninitializedParameter"):
            return None
        whole = getattr(parameter, "ds_numel", None)  # ZeRO 3 keeps the full size here
        total += whole if isinstance(whole, int) else parameter.numel()
    return total or None


def number_format(word: object) -> str | None:
    """A declared precision in flopwatch's words; 32 bits are TF32 where PyTorch may use it for them."""
    dtype = dtype_of(str(word))
    return float32_format() if dtype == "fp32" else dtype


def float32_format() -> str | None:
    """What PyTorch's matmuls of 32-bit numbers run in; None when it does not say."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    try:
        return "fp32" if torch.get_float32_matmul_precision() == "highest" else "tf32"
    except RuntimeError:  # the script set it through both of PyTorch's interfaces, which then refuses to say
        return None
