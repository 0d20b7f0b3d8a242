"""Megatron's arguments as a shape."""

from collections.abc import Mapping
from typing import Any

from flopwatch.blocks import ShapeError


def read(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Field values of ``ModelShape``."""
    raise ShapeError("num_layers", arguments.get("num_layers"), "a whole number")
