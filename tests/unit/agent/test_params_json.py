"""The shape in a ``params.json``, held against the published parameter counts."""

from typing import Any

import pytest

from flopwatch.parameters import count
from flopwatch.shape import ModelShape
from flopwatch_agent.params_json import params_shape

LLAMA_2_7B = {
    "dim": 4096, "multiple_of": 256, "n_heads": 32, "n_layers": 32, "norm_eps": 1e-05, "vocab_size": 32000,
}  # fmt: skip
LLAMA_3_8B = {
    "dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 1024,
    "ffn_dim_multiplier": 1.3, "norm_eps": 1e-05, "rope_theta": 500000.0, "use_scaled_rope": True,
}  # fmt: skip
LLAMA_2_70B = {
    "dim": 8192, "multiple_of": 4096, "ffn_dim_multiplier": 1.3, "n_heads": 64, "n_kv_heads": 8, "n_layers": 80,
    "norm_eps": 1e-05, "vocab_size": 32000,
}  # fmt: skip
MIXTRAL_8X7B = {
    "dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
    "norm_eps": 1e-05, "vocab_size": 32000, "moe": {"num_experts_per_tok": 2, "num_experts": 8},
}  # fmt: skip


@pytest.mark.parametrize(
    ("params", "total"),
    [
        # 2 x 32000 x 4096 + 4096 + 32 x (4 x 4096^2 + 3 x 4096 x 11008 + 2 x 4096)
        (LLAMA_2_7B, 6_738_415_616),
        # 2 x 128256 x 4096 + 4096 + 32 x (2.5 x 4096^2 + 3 x 4096 x 14336 + 2 x 4096)
        (LLAMA_3_8B, 8_030_261_248),
        # 2 x 32000 x 8192 + 8192 + 80 x (2.25 x 8192^2 + 3 x 8192 x 28672 + 2 x 8192)
        (LLAMA_2_70B, 68_976_648_192),
        # 2 x 32000 x 4096 + 4096 + 32 x (2.5 x 4096^2 + 8 x 3 x 4096 x 14336 + 8 x 4096 + 2 x 4096)
        (MIXTRAL_8X7B, 46_702_792_704),
    ],
)
def test_a_published_model_has_its_published_parameters(params: dict[str, Any], total: int) -> None:
    assert count(ModelShape.from_dict(params_shape(params))).total == total


def test_mistral_s_window_is_in_every_layer() -> None:
    shape = ModelShape.from_dict(params_shape({**LLAMA_2_7B, "hidden_dim": 14336, "sliding_window": 4096}))

    assert [(block.count, block.mixer.mask.window) for block in shape.blocks] == [(32, 4096)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"vocab_size": -1}, "vocab_size missing or unknown"),
        ({"vocab_size": None, "n_heads": None}, "n_heads, vocab_size missing or unknown"),
        ({"multiple_of": None}, "hidden_dim or multiple_of missing or unknown"),
        ({"n_heads": True}, "n_heads missing or unknown"),
        ({"moe": {"num_experts": 8}}, "moe.num_experts_per_tok missing or unknown"),
        ({"moe": {"num_experts": 8, "n": 1}}, "moe is not understood; allowed: num_experts, num_experts_per_tok"),
        ({"moe_args": {"num_experts": 16}}, "moe_args is not understood"),
        ({"lora_args": {"rank": 16}}, "lora_args is not understood"),
        ({"vision_chunk_size": 448}, "vision_chunk_size is not understood"),
        ({"sliding_window": [4096]}, "sliding_window is not understood; allowed: null or a positive whole number"),
    ],
)  # fmt: skip
def test_what_does_not_tell_the_whole_shape_is_none_and_says_why(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is held in full
        params_shape({**LLAMA_2_7B, **changed})

    assert str(caught.value) == why


def test_a_part_that_is_switched_off_does_no_harm() -> None:
    off = {"vision_chunk_size": -1, "moe": None, "sliding_window": None, "lora_rank": 0, "dropout": 0.1}

    assert params_shape({**LLAMA_2_7B, **off}) == params_shape(LLAMA_2_7B)
