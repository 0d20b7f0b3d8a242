"""A Hugging Face ``config.json`` as a shape: the model type decides how it is read, unknown types are refused."""

from collections.abc import Mapping
from typing import Any

from flopwatch.blocks import ShapeError
from flopwatch.huggingface.decoder import DECODERS, decoder
from flopwatch.huggingface.hybrid import HYBRIDS
from flopwatch.huggingface.own_names import OWN_NAMES
from flopwatch.huggingface.reader import HfConfig
from flopwatch.huggingface.vision import ENCODERS, TOWERS

_DECODERS = {**DECODERS, **OWN_NAMES}
TEXT_TYPES = {"llama4": "llama4_text", "gemma3": "gemma3_text", "qwen2_vl": "qwen2"}
"""Model types whose text part is not named by ``text_config.model_type``, or stands at the top."""


def read(config: Mapping[str, Any], *, trains_mtp: bool = False) -> dict[str, Any]:
    """Field values of ``ModelShape``; stacks as dicts.

    ``num_nextn_predict_layers`` counts only with ``trains_mtp``: the transformers library drops those layers,
    so a config alone does not say that they are trained.

    Raises:
        ShapeError: the model type or one of its fields is not understood.
    """
    kind = str(config.get("model_type"))
    if kind in TOWERS:
        return _with_tower(HfConfig(config), kind, trains_mtp=trains_mtp)
    values = _plain(config, kind, trains_mtp=trains_mtp)
    name = config.get("_name_or_path")
    return values | {"name": name if isinstance(name, str) and name else None}


def known_types() -> tuple[str, ...]:
    """Every model type that is understood."""
    return tuple(sorted({*_DECODERS, *HYBRIDS, *ENCODERS, *TOWERS}))


def _plain(config: Mapping[str, Any], kind: str, *, trains_mtp: bool, prefix: str = "") -> dict[str, Any]:
    """A model of one stack, or an encoder-decoder."""
    reader = HfConfig(config, prefix)
    depths = reader.whole("num_nextn_predict_layers", minimum=0, default=0)
    if kind in _DECODERS:
        values = decoder(reader, _DECODERS[kind])
    elif kind in HYBRIDS:
        values = HYBRIDS[kind](reader)
    elif kind in ENCODERS:
        values = ENCODERS[kind](reader)
    else:
        raise ShapeError(f"{prefix}model_type", config.get("model_type"), ", ".join(known_types()))
    reader.finish(kind)
    return values | {"mtp_layers": depths if trains_mtp else 0}


def _with_tower(config: HfConfig, kind: str, *, trains_mtp: bool) -> dict[str, Any]:
    """A text decoder with a vision tower as its second stack."""
    text = config.get("text_config")
    if text is None and kind != "qwen2_vl":
        raise config.refused("text_config", "an object")
    inner: Mapping[str, Any] = text if isinstance(text, Mapping) else config.without("vision_config")
    text_type = TEXT_TYPES.get(kind) or str(inner.get("model_type"))
    values = _plain(
        inner, text_type, trains_mtp=trains_mtp, prefix="text_config." if text is not None else ""
    )
    tied = config.get("tie_word_embeddings")
    if isinstance(tied, bool):
        values["tied_embeddings"] = tied
    return values | {"stacks": [TOWERS[kind](config, values["hidden"])]}
