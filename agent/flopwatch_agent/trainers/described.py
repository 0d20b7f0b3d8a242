"""The model's shape as a trainer prints it whole: Megatron's argument block, Hugging Face's ``config.json``."""

import functools
import json
from collections.abc import Mapping
from typing import Any

from flopwatch.blocks import ShapeError
from flopwatch.shape import ModelShape
from flopwatch_agent.trainers.derive import complete_shape
from flopwatch_agent.trainers.facts import Fact, integer
from flopwatch_agent.trainers.flavors import flavor_config

NOT_UNDERSTOOD: dict[str, Any] = {}


def described_shape(facts: Mapping[str, Fact]) -> dict[str, Any] | None:
    """The shape of a run, for ``ModelShape.from_dict``: hybrid layers, windows and expert patterns included.

    None where the log does not tell it, or tells of layers that are not understood.
    """
    arguments, document = facts.get("arguments"), facts.get("config_document")
    found: dict[str, Any] | None = None
    if isinstance(arguments, str):
        found = _of_arguments(arguments, integer(facts, "vocab"), integer(facts, "padded_vocab_used"))
    elif isinstance(document, str):
        found = _of_config(document)
    if found is None:
        return complete_shape(facts) or _of_flavor(facts)
    return found if found is not NOT_UNDERSTOOD else None


@functools.lru_cache(maxsize=64)
def _of_arguments(block: str, vocab: int | None, padded_vocab: int | None) -> dict[str, Any] | None:
    """The shape of an argument block; None when an argument that it needs was not printed."""
    arguments: dict[str, Any] = dict(line.split("=", 1) for line in block.splitlines())
    for name, value in (("vocab_size", vocab), ("padded_vocab_size", padded_vocab)):
        if value is not None and arguments.get(name) in (None, "None"):
            arguments[name] = value
    try:
        return ModelShape.from_megatron_args(arguments).to_dict()
    except ShapeError as error:
        return None if arguments.get(error.field) in (None, "None") else NOT_UNDERSTOOD


@functools.lru_cache(maxsize=64)
def _of_config(document: str) -> dict[str, Any] | None:
    """The shape of a printed ``config.json``; None when its model type or a field is not known."""
    try:
        return ModelShape.from_hf_config(json.loads(document)).to_dict()
    except ShapeError:
        return None


def _of_flavor(facts: Mapping[str, Fact]) -> dict[str, Any] | None:
    family, flavor = facts.get("model_family"), facts.get("flavor")
    config = flavor_config(str(family), str(flavor)) if family and flavor else None
    return None if config is None or "hidden" in facts else _of_config(json.dumps(config))
