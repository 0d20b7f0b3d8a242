"""A Hugging Face ``config.json`` as a shape."""

from collections.abc import Mapping
from typing import Any

from flopwatch.blocks import ShapeError


def read(config: Mapping[str, Any]) -> dict[str, Any]:
    """Field values of ``ModelShape``."""
    raise ShapeError("model_type", config.get("model_type"), "a known model type")
