"""Layers one by one, as blocks of equal neighbours."""

from collections.abc import Iterable
from itertools import groupby

from flopwatch.blocks import Attention, Block, FeedForward, Mixer


def runs(
    layers: Iterable[tuple[Mixer | None, FeedForward | None]], cross: Attention | None = None
) -> tuple[Block, ...]:
    """Blocks of the layers (mixer, feed-forward), equal neighbours together."""
    return tuple(
        Block(count=sum(1 for _ in group), mixer=mixer, mlp=mlp, cross=cross)
        for (mixer, mlp), group in groupby(layers)
    )
