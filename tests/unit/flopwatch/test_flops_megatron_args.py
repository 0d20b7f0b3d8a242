"""Megatron's arguments, from a log's block and from a command line."""

import shlex
from dataclasses import replace

import pytest

from flopwatch.blocks import DenseMlp, GatedDelta, Mamba2, Mask, MoeMlp, ShapeError
from flopwatch.flops import ModelShape, flops_per_token
from flopwatch.model_names import by_name

LLAMA_3_8B = {
    "num_layers": "32", "hidden_size": "4096", "ffn_hidden_size": "14336", "num_attention_heads": "32",
    "group_query_attention": "True", "num_query_groups": "8", "kv_channels": "128", "swiglu": "True",
    "padded_vocab_size": "128256", "vocab_size": "None", "untie_embeddings_and_output_weights": "True",
    "seq_length": "8192", "num_experts": "None", "multi_latent_attention": "False", "mtp_num_layers": "None",
    "window_size": "None", "position_embedding_type": "rope", "max_position_embeddings": "8192", "lr": "0.0003",
}  # fmt: skip
DEEPSEEK_V3 = {
    "num_layers": 61, "hidden_size": 7168, "ffn_hidden_size": 18432, "num_attention_heads": 128,
    "group_query_attention": False, "num_query_groups": 1, "kv_channels": 128, "swiglu": True, "vocab_size": 129280,
    "padded_vocab_size": 129280, "untie_embeddings_and_output_weights": True, "multi_latent_attention": True,
    "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128,
    "num_experts": 256, "moe_router_topk": 8, "moe_ffn_hidden_size": 2048, "moe_shared_expert_intermediate_size": 2048,
    "moe_layer_freq": "([0]*3+[1]*58)", "mtp_num_layers": 1,
}  # fmt: skip
HYBRID = {
    "num_layers": 8, "hidden_size": 512, "ffn_hidden_size": 2048, "num_attention_heads": 8,
    "group_query_attention": True, "num_query_groups": 2, "padded_vocab_size": 1024, "squared_relu": True,
    "hybrid_override_pattern": "M-M*-M|-E", "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 256,
    "mamba_state_dim": 64, "mamba_num_groups": 4,
}  # fmt: skip


def shape_of(arguments, **changes):
    return ModelShape.from_megatron_args({**arguments, **changes})


def feed_forwards(shape):
    return [block.mlp for block in shape.blocks for _ in range(block.count)]


def masks(shape):
    return [block.mixer.mask for block in shape.blocks for _ in range(block.count)]


def test_a_logs_block_of_words_is_the_model():
    shape = shape_of(LLAMA_3_8B)

    assert replace(shape, name="llama-3-8b", padded_vocab=None, seq_len=None) == by_name("llama-3-8b")
    assert shape.seq_len == 8192


def test_a_command_line_is_the_model():
    line = (
        "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size=4096 --ffn-hidden-size 14336 "
        "--num-attention-heads 32 --group-query-attention --num-query-groups 8 --swiglu --seq-length 8192 "
        "--untie-embeddings-and-output-weights --vocab-size 128256 --position-embedding-type rope --bf16"
    )

    shape = ModelShape.from_megatron_args(shlex.split(line))

    assert flops_per_token(shape, 8192) == flops_per_token(by_name("llama-3-8b"), 8192)


def test_a_command_line_without_the_switch_has_no_grouped_queries():
    words = shlex.split(
        "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --num-query-groups 2 --vocab-size 100 --seq-length 8"
    )

    assert ModelShape.from_megatron_args(words).blocks[0].mixer.kv_heads == 4


def test_deepseek_v3_counts_as_nvidia_counts_it():
    shape = shape_of(DEEPSEEK_V3)

    assert flops_per_token(shape, 4096) == 259_992_059_904
    assert flops_per_token(shape, 4096, "mcore_causal_nomtp") == 249_811_304_448


def test_a_vocabulary_that_was_not_padded_yet_is_padded_as_megatron_does():
    arguments = {
        **LLAMA_3_8B,
        "padded_vocab_size": None,
        "vocab_size": 50257,
        "tensor_model_parallel_size": 8,
    }

    assert (shape_of(arguments).vocab, shape_of(arguments).padded_vocab) == (50257, 51200)
    assert (
        shape_of(arguments, make_vocab_size_divisible_by=1, tensor_model_parallel_size=1).padded_vocab
        == 50257
    )


def test_grouped_queries_count_only_when_they_are_switched_on():
    assert shape_of(LLAMA_3_8B, group_query_attention="False").blocks[0].mixer.kv_heads == 32
    without = {key: value for key, value in LLAMA_3_8B.items() if key != "group_query_attention"}
    assert shape_of(without).blocks[0].mixer.kv_heads == 8


def test_other_trainers_names_are_read():
    deepspeed = {
        "num_layers": 32, "hidden_size": 4096, "ffn_hidden_size": 11008, "num_attention_heads": 32, "swiglu": True,
        "num_key_value_heads": 8, "padded_vocab_size": 32000, "num_experts": [1], "topk": 1,
    }  # fmt: skip
    neox = {
        "num_layers": 44, "hidden_size": 6144, "num_attention_heads": 64, "padded_vocab_size": 50432,
        "no_weight_tying": True, "attention_config": "['flash', 'flash']", "pos_emb": "rotary",
    }  # fmt: skip

    assert shape_of(deepspeed).blocks[0].mixer.kv_heads == 8
    assert not shape_of(deepspeed).is_moe
    assert feed_forwards(shape_of(neox)) == [DenseMlp(ffn=24576, gated=False)] * 44
    assert not shape_of(neox).tied_embeddings
    assert shape_of(deepspeed).tied_embeddings


@pytest.mark.parametrize(
    ("arguments", "mlp"),
    [
        ({}, DenseMlp(ffn=4096, gated=False)),
        ({"swiglu": True}, DenseMlp(ffn=2688, gated=True)),
        ({"glu_activation": "swiglu"}, DenseMlp(ffn=2688, gated=True)),
        ({"quick_geglu": True}, DenseMlp(ffn=4096, gated=True)),
        ({"mlp_type": "llama"}, DenseMlp(ffn=2816, gated=True)),
        ({"ffn_hidden_size": 3000, "swiglu": True}, DenseMlp(ffn=3000, gated=True)),
        ({"squared_relu": True}, DenseMlp(ffn=4096, gated=False)),
    ],
)
def test_the_mlp_is_as_wide_as_the_trainer_makes_it(arguments, mlp):
    base = {"num_layers": 1, "hidden_size": 1024, "num_attention_heads": 8, "padded_vocab_size": 100}

    assert feed_forwards(shape_of(base, **arguments)) == [mlp]


@pytest.mark.parametrize(
    ("frequency", "routed"),
    [
        (1, [1, 1, 1, 1]),
        (2, [1, 0, 1, 0]),
        ("[0, 1, 1, 0]", [0, 1, 1, 0]),
        ("([0]*1+[1]*3)", [0, 1, 1, 1]),
        ("[0,1]*2", [0, 1, 0, 1]),
    ],
)
def test_expert_layers_are_where_the_frequency_puts_them(frequency, routed):
    shape = shape_of(LLAMA_3_8B, num_layers=4, num_experts=8, moe_router_topk=2, moe_layer_freq=frequency)

    assert [int(isinstance(mlp, MoeMlp)) for mlp in feed_forwards(shape)] == routed


def test_experts_are_as_wide_as_the_dense_mlp_unless_they_say_otherwise():
    plain, own = (
        shape_of(LLAMA_3_8B, num_experts=8, **more)
        for more in ({}, {"moe_ffn_hidden_size": 1024, "moe_router_topk": 4, "moe_latent_size": 512})
    )

    assert feed_forwards(plain)[0] == MoeMlp(
        n_experts=8, top_k=2, expert_ffn=14336, shared_expert_ffn=0, gated=True
    )
    assert feed_forwards(own)[0].latent == 512
    weights = 2 * 4096 * 512 + 3 * 512 * 4 * 1024
    assert sum(rows * columns for rows, columns in feed_forwards(own)[0].matrices(4096).values()) == weights


@pytest.mark.parametrize(
    ("window", "skip", "expected"),
    [
        ("(127, 0)", None, [Mask(window=128)] * 4),
        ("(127, 0)", 2, [Mask(window=128), Mask(), Mask(window=128), Mask()]),
        ("(127, 0)", "[1,1,0,1]", [Mask(window=128), Mask(window=128), Mask(), Mask(window=128)]),
        ("(-1, 0)", None, [Mask()] * 4),
    ],
)
def test_windows_are_read(window, skip, expected):
    assert (
        masks(shape_of(LLAMA_3_8B, num_layers=4, window_size=window, window_attn_skip_freq=skip)) == expected
    )


def test_the_window_of_a_command_line_is_two_words():
    line = "--num-layers 1 --hidden-size 64 --num-attention-heads 4 --vocab-size 100 --window-size 127 0"

    assert masks(ModelShape.from_megatron_args(shlex.split(line))) == [Mask(window=128)]


def test_linear_attention_alternates_with_attention():
    shape = shape_of(
        LLAMA_3_8B, num_layers=4, experimental_attention_variant="gated_delta_net", linear_attention_freq=4,
        attention_output_gate=True,
    )  # fmt: skip
    kinds = [isinstance(block.mixer, GatedDelta) for block in shape.blocks for _ in range(block.count)]

    assert kinds == [True, True, True, False]
    assert shape.blocks[-1].mixer.output_gate


def test_a_hybrid_pattern_is_one_part_a_layer():
    shape = shape_of(HYBRID)
    mamba = Mamba2(inner=1024, state=64, groups=4, heads=16)

    assert shape.layers == 8
    assert next(block.mixer for block in shape.blocks if block.mixer) == mamba
    assert sum(block.count for block in shape.blocks if block.mlp) == 4
    assert shape.attention_layers == 1


def test_a_hybrid_predicts_more_tokens_by_its_own_pattern():
    plain, two = (shape_of(HYBRID, hybrid_override_pattern=text) for text in ("M-M*-M-E", "M-M*-M-E/*-/*-"))
    attention = 2 * 512 * 512 + 2 * 512 * 128
    depth = 6 * (attention + 2 * 512 * 2048 + 2 * 512 * 512 + 512 * 1024) + 6 * 8 * 64 * 128

    assert two.mtp_layers == 2
    assert flops_per_token(two, 128) - flops_per_token(plain, 128) == 2 * depth


def test_learned_positions_count_as_parameters():
    learned = {**LLAMA_3_8B, "position_embedding_type": "learned_absolute"}

    difference = flops_per_token(shape_of(learned), 8192, "six_n") - flops_per_token(
        shape_of(LLAMA_3_8B), 8192, "six_n"
    )
    assert difference == 6 * 8192 * 4096


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"num_layers": "None"}, "num_layers"),
        ({"hidden_size": "wide"}, "hidden_size"),
        ({"padded_vocab_size": "None"}, "padded_vocab_size"),
        ({"swiglu": "maybe"}, "swiglu"),
        ({"num_experts": "[1, 8]"}, "num_experts"),
        ({"num_experts": 8, "moe_router_topk": 9}, "top_k"),
        ({"num_experts": 8, "moe_layer_freq": "[0, 1]"}, "moe_layer_freq"),
        ({"num_experts": 8, "moe_layer_freq": "__import__('os')"}, "moe_layer_freq"),
        ({"num_experts": 8, "moe_layer_freq": "[1]*10**9"}, "moe_layer_freq"),
        ({"num_experts": 8, "moe_layer_freq": "[1]*999999999"}, "moe_layer_freq"),
        ({"window_size": "(128, 128)"}, "window_size"),
        ({"window_size": "(128, 0)", "window_attn_skip_freq": "[2]"}, "window_attn_skip_freq"),
        ({"experimental_attention_variant": "dsa"}, "experimental_attention_variant"),
        ({"hybrid_override_pattern": "MXM"}, "hybrid_override_pattern"),
        ({"hybrid_override_pattern": "M*/M/*"}, "hybrid_override_pattern"),
        ({"is_hybrid_model": True}, "hybrid_override_pattern"),
        ({"decoder_num_layers": 12}, "decoder_num_layers"),
        ({"retro_add_retriever": True}, "retro_add_retriever"),
        ({"heterogeneous_layers_config_path": "layers.json"}, "heterogeneous_layers_config_path"),
        ({"attention_config": "[[['sparse_fixed'], 32]]"}, "attention_config"),
        ({"num_query_groups": 5}, "n_kv_heads"),
    ],
)
def test_an_argument_that_is_not_understood_is_named(changes, field):
    with pytest.raises(ShapeError) as caught:
        shape_of(LLAMA_3_8B, **changes)

    assert caught.value.field == field


def test_dashes_and_underscores_are_the_same_name():
    dashed = {"--" + key.replace("_", "-"): value for key, value in LLAMA_3_8B.items()}

    assert shape_of(dashed) == shape_of(LLAMA_3_8B)
