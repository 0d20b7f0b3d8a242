"""FLOPs of runs that train a part of their parameters, from the numbers that logs print."""

import pytest

from flopwatch import partly_trained
from flopwatch.flops import ModelShape, flops_per_token

HIDDEN, FFN, LAYERS, VOCAB, LENGTH = 64, 256, 3, 1000, 128
SHAPE = ModelShape.from_dict(
    {
        "hidden": HIDDEN, "n_layers": LAYERS, "n_heads": 4, "n_kv_heads": 4, "ffn_hidden": FFN, "gated_mlp": False,
        "vocab": VOCAB,
    }
)  # fmt: skip
MATRICES = LAYERS * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * FFN)
ATTENTION = LAYERS * 6 * HIDDEN * LENGTH


def test_without_a_shape_frozen_parameters_cost_four_and_trained_ones_six() -> None:
    assert partly_trained.of_numbers(1_000, 10) == 4 * 990 + 6 * 10


def test_with_a_shape_only_the_adapters_have_gradients_of_weights() -> None:
    found = partly_trained.of_shape(SHAPE, LENGTH, "causal", trained=5_000)

    assert found == pytest.approx(4 * (MATRICES + HIDDEN * VOCAB) + 6 * 5_000 + ATTENTION, rel=0.01)


def test_it_is_what_adapters_of_the_rank_cost() -> None:
    rank = 8
    adapters = LAYERS * rank * (4 * 2 * HIDDEN + 2 * (HIDDEN + FFN))

    found = partly_trained.of_shape(SHAPE, LENGTH, "causal", trained=adapters)

    assert found == pytest.approx(float(flops_per_token(SHAPE.with_lora(rank), LENGTH, "causal")))


@pytest.mark.parametrize(
    ("parameters", "trained", "part"),
    [(1_000, 10, True), (1_000, 1_000, False), (1_000, 995, False), (None, 10, False), (1_000, None, False)],
)
def test_a_part_is_less_than_all(parameters: int | None, trained: int | None, part: bool) -> None:
    assert partly_trained.is_part(parameters, trained) is part
