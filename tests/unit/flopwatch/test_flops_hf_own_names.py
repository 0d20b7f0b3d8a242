"""Configs with names of their own: the parameters of the published models, and counts worked out by hand."""

import pytest

from flopwatch.blocks import ShapeError
from flopwatch.flops import ModelShape, StackTokens, flops_per_token
from flopwatch.parameters import count

OPT_175B = {
    "model_type": "opt", "hidden_size": 12288, "ffn_dim": 49152, "num_hidden_layers": 96, "num_attention_heads": 96,
    "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 12288,
}  # fmt: skip
GPT_NEO_2_7B = {
    "model_type": "gpt_neo", "hidden_size": 2560, "num_layers": 32, "num_heads": 20, "vocab_size": 50257,
    "max_position_embeddings": 2048, "window_size": 256, "attention_types": [[["global", "local"], 16]],
    "intermediate_size": None,
}  # fmt: skip
MPT_7B = {
    "model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4, "vocab_size": 50432,
    "max_seq_len": 2048, "attn_config": {"alibi": True},
}  # fmt: skip
DBRX = {
    "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
    "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
}  # fmt: skip
BAICHUAN_13B = {
    "model_type": "baichuan", "hidden_size": 5120, "intermediate_size": 13696, "num_hidden_layers": 40,
    "num_attention_heads": 40, "vocab_size": 64000,
}  # fmt: skip
CHATGLM2_6B = {
    "model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13696, "num_layers": 28,
    "num_attention_heads": 32, "multi_query_attention": True, "multi_query_group_num": 2, "kv_channels": 128,
    "padded_vocab_size": 65024,
}  # fmt: skip
QWEN_7B = {
    "model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
    "num_attention_heads": 32, "kv_channels": 128, "vocab_size": 151936,
}  # fmt: skip
MINICPM_2B = {
    "model_type": "minicpm", "hidden_size": 2304, "intermediate_size": 5760, "num_hidden_layers": 40,
    "num_attention_heads": 36, "num_key_value_heads": 36, "vocab_size": 122753,
}  # fmt: skip
ERNIE_4_5_21B = {
    "model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288, "moe_intermediate_size": 1536,
    "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128,
    "vocab_size": 103424, "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
    "moe_layer_start_index": 1, "moe_layer_end_index": 27, "moe_layer_interval": 1, "tie_word_embeddings": True,
}  # fmt: skip
HUNYUAN_7B = {
    "model_type": "hunyuan_v1_dense", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128167,
    "tie_word_embeddings": True,
}  # fmt: skip
DINOV2_GIANT = {
    "model_type": "dinov2", "hidden_size": 1536, "num_hidden_layers": 40, "num_attention_heads": 24, "mlp_ratio": 4,
    "use_swiglu_ffn": True, "image_size": 518, "patch_size": 14,
}  # fmt: skip
BART_LARGE = {
    "model_type": "bart", "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12,
    "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
    "vocab_size": 50265, "max_position_embeddings": 1024, "is_encoder_decoder": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "published"),
    [
        (OPT_175B, 174.6e9),
        (GPT_NEO_2_7B, 2.651e9),
        (MPT_7B, 6_649_286_656),
        (DBRX, 131.6e9),
        (BAICHUAN_13B, 13_264_901_120),
        (CHATGLM2_6B, 6_243_584_000),
        (QWEN_7B, 7_721_324_544),
        (MINICPM_2B, 2_724_880_896),
        (ERNIE_4_5_21B, 21.83e9),
        (HUNYUAN_7B, 7.5e9),
        (DINOV2_GIANT, 1_136_480_768),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_parameters_are_the_published_ones(config: dict[str, object], published: float) -> None:
    assert count(ModelShape.from_hf_config(config)).total == pytest.approx(published, rel=0.002)


@pytest.mark.parametrize(("config", "active"), [(DBRX, 36e9), (ERNIE_4_5_21B, 3.35e9)])
def test_active_parameters_are_those_of_the_chosen_experts(config: dict[str, object], active: float) -> None:
    """DBRX: as published. ERNIE ("A3B"): 28 x 15.7M attention, 27 x 8 experts of 11.8M, 94M dense, 265M embedding."""
    assert count(ModelShape.from_hf_config(config)).active == pytest.approx(active, rel=0.05)


def test_gpt_neos_local_layers_meet_256_keys() -> None:
    shape = ModelShape.from_hf_config(GPT_NEO_2_7B)
    weights = 32 * 12 * 2560**2 + 50257 * 2560
    global_pairs, local_pairs = 2048 / 2, 256 - 256 * 255 / 2 / 2048

    assert flops_per_token(shape, 2048) == pytest.approx(
        6 * weights + 16 * 12 * 2560 * (global_pairs + local_pairs)
    )


def test_barts_two_stacks_are_counted_by_their_own_tokens() -> None:
    shape = ModelShape.from_hf_config(BART_LARGE)
    square = 1024**2
    # 512 tokens of the encoder and 128 of the decoder a pair; keys and values of the look are the encoder's
    encoder = 512 * (6 * 12 * 12 * square + 12 * 12 * 1024 * 512)
    decoder = 128 * (6 * 12 * 14 * square + 6 * 50265 * 1024)
    decoder += 512 * 6 * 12 * 2 * square
    decoder += 12 * 12 * 1024 * (128 * 128 / 2 + 128 * 512)

    counted = flops_per_token(shape, 128, stacks={"encoder": StackTokens(per_token=4.0, length=512)})

    assert counted * 128 == pytest.approx(encoder + decoder)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({**OPT_175B, "word_embed_proj_dim": 512}, "word_embed_proj_dim"),
        ({**GPT_NEO_2_7B, "attention_types": [[["global"], 16]]}, "attention_types"),
        ({**GPT_NEO_2_7B, "attention_types": "global"}, "attention_types"),
        ({**DBRX, "ffn_config": None}, "ffn_config"),
        ({**CHATGLM2_6B, "kv_channels": None}, "kv_channels"),
        ({**ERNIE_4_5_21B, "moe_k": None}, "moe_k"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(config: dict[str, object], field: str) -> None:
    with pytest.raises(ShapeError) as caught:
        ModelShape.from_hf_config(config)

    assert caught.value.field == field
