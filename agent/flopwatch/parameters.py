"""Parameter counts of a shape, for the conventions that are made from N."""

from dataclasses import dataclass

from flopwatch.blocks import Block
from flopwatch.shape import ModelShape


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """N by how it is counted. Norms are in, biases are not (below 0.1 %)."""

    total: int
    """All weights, all experts, embeddings."""
    active: int
    """Weights of the experts that a token passes, embeddings included."""
    input_embedding: int
    positions: int


def count(shape: ModelShape) -> Parameters:
    """N of the shape: as the description states it, else counted from its matrices; MTP blocks left out."""
    embedding = shape.vocab * shape.hidden
    positions = shape.learned_positions * shape.hidden
    outside = embedding * (1 if shape.tied_embeddings else 2) + positions + shape.entry_weights + shape.hidden
    passed = sum(block.count * block.passed_weights(shape.hidden) for block in shape.blocks)
    stored = sum(block.count * block.stored_weights(shape.hidden) for block in shape.blocks)
    routers = sum(block.count * router_weights(block, shape.hidden) for block in shape.blocks)
    norms = sum(block.count * _norms(block) * shape.hidden for block in shape.blocks)
    total = _stated(shape.stated_parameters, outside + stored + norms)
    active = outside + passed + routers + norms if shape.is_moe else total
    return Parameters(
        total=total,
        active=_stated(shape.stated_active_parameters, active),
        input_embedding=embedding,
        positions=positions,
    )


def router_weights(block: Block, hidden: int) -> int:
    """Weights of one layer's router."""
    return block.mlp.router_weights(hidden) if block.mlp is not None else 0


def _norms(block: Block) -> int:
    return sum(part is not None for part in (block.mixer, block.mlp, block.cross))


def _stated(stated: int | None, counted: int) -> int:
    return counted if stated is None else stated
