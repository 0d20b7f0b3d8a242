"""The model's shape in the settings of a run: what trackers keep of it, and ``config.yaml`` of OLMo or LitGPT."""

from collections.abc import Mapping
from typing import Any

from flopwatch.blocks import ShapeError
from flopwatch.shape import ModelShape
from flopwatch_agent.params_json import checked, is_params, is_set, params_shape, safe
from flopwatch_agent.trainers.derive import shape
from flopwatch_agent.trainers.facts import Fact, fact_of
from flopwatch_agent.trainers.facts_table import CONFIG_KEYS

SECTIONS = ("model", "model_config")
NAMES = CONFIG_KEYS | {
    "head_size": "head_dim",
    "kv_n_heads": "n_kv_heads",
    "embedding_size": "padded_vocab_used",
}
NEEDED = {
    "n_heads": "heads",
    "vocab": "vocabulary",
    "ffn_hidden": "feed-forward width",
    "gated_mlp": "activation",
}
OF_MEGATRON = ("num_layers", "hidden_size", "num_attention_heads", "tensor_model_parallel_size")
ADAPTERS = "peft_config"
PATH = "_name_or_path"


def settings_shape(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The shape, for ``ModelShape.from_dict``; None where the settings are not about a model.

    Only fields that decide a shape are asked for.

    Raises:
        ValueError: naming what is missing or not understood.
    """
    if settings.get(ADAPTERS):
        raise ValueError(f"{ADAPTERS} trains adapters, whose sizes are not read")
    section = next((part for name in SECTIONS if isinstance(part := settings.get(name), Mapping)), settings)
    if isinstance(section, dict):  # a model's name may be a path
        section = {name: value for name, value in section.items() if name != PATH}
    try:
        if "model_type" in section:
            return ModelShape.from_hf_config(section).to_dict()
        if isinstance(section, dict) and all(section.get(name) is not None for name in OF_MEGATRON):
            arguments = {name: str(section[name]) for name in section}
            return ModelShape.from_megatron_args(arguments).to_dict()
    except ShapeError as error:
        raise ValueError(f"{safe(error.field)} cannot be used; allowed: {error.allowed}") from error
    if is_params(section) and ("multiple_of" in section or "hidden_dim" in section):
        return params_shape(section)
    return _of_facts(section)


def _of_facts(section: Mapping[str, Any]) -> dict[str, Any] | None:
    facts = _facts(section)
    found = shape(facts)
    if found is None:
        return None
    unknown = next((name for name in section if _is_unknown(section, name)), None)
    if unknown is not None:
        raise ValueError(f"{safe(unknown)} is not understood")
    missing = [words for name, words in NEEDED.items() if name not in found]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing or unknown")
    return checked(found)


def _facts(section: Mapping[str, Any]) -> dict[str, Fact]:
    known = ((fact, fact_of(section[name])) for name, fact in NAMES.items() if name in section)
    facts = {fact: value for fact, value in known if value is not None}
    if section.get("n_embd") is not None:
        facts["gpt_style"] = True
    if section.get("multi_query_attention") is True:
        facts["n_kv_heads"] = 1
    return facts


def _is_unknown(section: Mapping[str, Any], name: str) -> bool:
    """Whether a setting changes the shape and is not read."""
    if name in NAMES:
        return False
    if is_set(section, name):
        return True
    part = section[name] if isinstance(section, dict) else None
    return isinstance(part, Mapping) and any(
        (inner in NAMES and part[inner] is not None) or is_set(part, inner) for inner in part
    )
