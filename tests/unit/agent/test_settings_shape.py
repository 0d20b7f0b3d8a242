"""The shape in the settings of a run, as OLMo, LitGPT, Megatron and the trackers keep them."""

from typing import Any

import pytest

from flopwatch.parameters import count
from flopwatch.shape import ModelShape
from flopwatch_agent.settings_shape import settings_shape
from flopwatch_agent.trainers.settings_text import block_mapping, list_or_scalar

OLMO_1B = """\
run_name: OLMo-1B
seed: 6198
model:
  d_model: 2048
  n_heads: 16
  n_layers: 16
  mlp_ratio: 8
  weight_tying: true
  activation_type: swiglu
  block_type: sequential
  vocab_size: 50280
  embedding_size: 50304
  max_sequence_length: 2048
  init_device: meta
optimizer:
  name: adamw
  betas:
  - 0.9
  - 0.95
evaluators:
  - label: all
    n_layers: 3
    vocab_size: 1
description: |
  n_heads: 99
"""
PYTHIA_LITGPT = """\
name: tiny
hf_config: {}
block_size: 2048
vocab_size: 32000
padded_vocab_size: 32000
n_layer: 22
n_head: 32
head_size: 64
n_embd: 2048
n_query_groups: 4
sliding_window_size: null
mlp_class_name: LLaMAMLP
intermediate_size: 5632
"""
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "vocab_size": 32000, "tie_word_embeddings": False,
}  # fmt: skip


def total(settings: dict[str, Any]) -> int:
    shape = settings_shape(settings)
    assert shape is not None
    return count(ModelShape.from_dict(shape)).total


def test_olmo_s_configuration_gives_its_shape_and_its_padded_vocabulary() -> None:
    shape = ModelShape.from_dict(settings_shape(block_mapping(OLMO_1B)) or {})

    # 50280 x 2048 + 2048 + 16 x (4 x 2048^2 + 3 x 2048 x 8192 + 2 x 2048)
    assert count(shape).total == 1_176_782_848
    assert (shape.vocab, shape.padded_vocab, shape.tied_embeddings) == (50280, 50304, True)


def test_litgpt_s_model_configuration_gives_its_shape() -> None:
    # 2 x 32000 x 2048 + 2048 + 22 x (2 x 2048^2 + 2 x 2048 x 256 + 3 x 2048 x 5632 + 2 x 2048): TinyLlama
    assert total(block_mapping(PYTHIA_LITGPT)) == 1_100_048_384


def test_training_arguments_beside_a_model_s_configuration_do_not_disturb_it() -> None:
    run = {**LLAMA, "learning_rate": 1e-4, "output_dir": "out", "per_device_train_batch_size": 8}

    assert total(run) == 6_738_415_616
    assert (settings_shape({**run, "_name_or_path": "private/model"}) or {}).get("name") is None


def test_megatron_s_arguments_are_read_by_their_own_rules() -> None:
    run = {
        "num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "ffn_hidden_size": 256, "swiglu": False,
        "padded_vocab_size": 1024, "vocab_size": 1000, "tensor_model_parallel_size": 1, "seq_length": 128,
        "max_position_embeddings": 128, "position_embedding_type": "rope", "num_experts": None,
        "untie_embeddings_and_output_weights": True,
    }  # fmt: skip

    assert (settings_shape(run) or {})["hidden"] == 64


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({**LLAMA, "peft_config": {"default": {"r": 16}}}, "peft_config trains adapters, whose sizes are not read"),
        ({"n_embd": 768, "n_layer": 12, "n_head": 12}, "vocabulary missing or unknown"),
        ({"n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 50257, "n_expert": 8}, "n_expert is not understood"),
        (
            {"model": {"d_model": 768, "n_layers": 12, "n_heads": 12, "vocab_size": 5, "expansion_ratio": 4,
                       "attn_config": {"kv_n_heads": 4}}},
            "attn_config is not understood",
        ),
    ],
)  # fmt: skip
def test_settings_that_do_not_tell_the_whole_shape_give_none_and_say_why(
    settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is held in full
        settings_shape(settings)

    assert str(caught.value) == why


def test_settings_that_are_not_of_a_model_are_passed_over() -> None:
    assert settings_shape({"learning_rate": 0.1, "layers": 3}) is None


def test_scalars_are_read_as_yaml_and_python_write_them() -> None:
    written = [
        "7",
        "-1",
        "1e-05",
        "0.5",
        "true",
        "False",
        "null",
        "None",
        "'a b'",
        "[1, 2]",
        "1_000",
        "9" * 400,
    ]

    read = [list_or_scalar(text) for text in written]

    assert read == [7, -1, 1e-05, 0.5, True, False, None, None, "a b", [1, 2], "1_000", "9" * 400]


def test_sections_lists_and_text_over_lines_keep_their_places() -> None:
    text = "a:\n  b: 1\n  c:\n  - x\n  - y: 2\n    z: 3\n  d: >-\n    e: 4\n'f': &id001 !!python/object\n  g: 5\nh: 6\n"

    assert block_mapping(text) == {
        "a": {"b": 1, "c": ["x", "y: 2"], "d": ">-"}, "f": "&id001 !!python/object", "h": 6,
    }  # fmt: skip


def test_the_deepest_file_is_read_without_going_deep() -> None:
    deep = "".join(" " * depth + "a:\n" for depth in range(1000))

    assert block_mapping(deep + "b: 1\n") == {"a": block_mapping(deep)["a"], "b": 1}
