"""Hugging Face configs: parameters as the repositories publish them, FLOPs by hand, and refusals."""

from dataclasses import replace

import pytest
from tests.unit.flopwatch import hf_configs as configs

from flopwatch.blocks import Mamba2, Mask, ShapeError
from flopwatch.flops import ModelShape, StackTokens, flops_per_token
from flopwatch.huggingface.config import known_types
from flopwatch.model_names import by_name
from flopwatch.parameters import count

PUBLISHED_PARAMETERS = [
    (configs.LLAMA_3_8B, 8_030_261_248),
    (configs.MISTRAL_7B, 7_241_732_096),
    (configs.MIXTRAL_8X7B, 46_702_792_704),
    (configs.QWEN2_5_7B, 7_615_616_512),
    (configs.QWEN3_8B, 8_190_735_360),
    (configs.QWEN2_57B_A14B, 57_409_011_712),
    (configs.QWEN3_30B_A3B, 30_532_122_624),
    (configs.DEEPSEEK_V3, 671_026_419_200),
    (configs.DEEPSEEK_V2_LITE, 15_706_484_224),
    (configs.GEMMA_7B, 8_537_680_896),
    (configs.GEMMA_2_9B, 9_241_705_984),
    (configs.GPT2, 124_439_808),
    (configs.GPT_NEOX_20B, 20_554_567_680),
    (configs.GPT_OSS_120B, 116_829_156_672),
    (configs.PHI_2, 2_779_683_840),
    (configs.PHI_3_MINI, 3_821_079_552),
    (configs.OLMO_2_7B, 7_298_617_344),
    (configs.OLMOE_7B, 6_919_161_856),
    (configs.FALCON_7B, 6_921_720_704),
    (configs.FALCON_40B, 41_303_293_952),
    (configs.GRANITE_3_8B, 8_170_848_256),
    (configs.MAMBA2_2_7B, 2_702_599_680),
    (configs.MAMBA_2_8B, 2_768_345_600),
    (configs.JAMBA, 51_570_323_328),
    (configs.NEMOTRON_H_8B, 8_100_000_000),
    (configs.QWEN3_NEXT_80B, 79_674_391_296),
    (configs.LLAMA_4_MAVERICK, 400_711_848_960),
    (configs.ARCTIC, 480e9),
    (configs.APERTUS_70B, 70.6e9),
    (configs.ARCEE_4_5B, 4.62e9),
    (configs.GLM_4_32B, 32.57e9),
    (configs.MINIMAX_M2, 228.7e9),
    (configs.BERT_BASE, 109_514_298),
    (configs.VIT_BASE, 85_800_000),
]


@pytest.mark.parametrize(
    ("config", "published"),
    PUBLISHED_PARAMETERS,
    ids=[f"{config['model_type']}-{size}" for config, size in PUBLISHED_PARAMETERS],
)
def test_a_configs_parameters_are_the_published_ones(config, published):
    assert count(ModelShape.from_hf_config(config)).total == pytest.approx(published, rel=0.006)


@pytest.mark.parametrize(
    ("config", "name", "seq_len"),
    [
        (configs.LLAMA_3_8B, "llama-3-8b", 8192),
        (configs.MIXTRAL_8X7B, "mixtral-8x7b", 32768),
        (configs.QWEN2_5_7B, "qwen2.5-7b", 4096),
        (configs.QWEN3_8B, "qwen3-8b", 4096),
        (configs.QWEN3_30B_A3B, "qwen3-30b-a3b", 4096),
        (configs.DEEPSEEK_V3, "deepseek-v3", 4096),
        (configs.GPT_OSS_120B, "gpt-oss-120b", 4096),
        (configs.GPT2, "gpt-2-124m", 1024),
    ],
)
def test_a_config_counts_as_the_model_of_its_name(config, name, seq_len):
    shape = ModelShape.from_hf_config(config)

    assert flops_per_token(shape, seq_len) == flops_per_token(by_name(name), seq_len)
    assert flops_per_token(shape, seq_len, "palm") == flops_per_token(by_name(name), seq_len, "palm")


@pytest.mark.parametrize(
    ("config", "active"),
    [
        (configs.QWEN2_57B_A14B, 14.2e9),
        (configs.DEEPSEEK_V2_LITE, 2.66e9),
        (configs.OLMOE_7B, 1.28e9),
        (configs.JAMBA, 12.1e9),
        (configs.QWEN3_NEXT_80B, 3.9e9),
        (configs.LLAMA_4_MAVERICK, 17.2e9),
    ],
    ids=["qwen2_moe", "deepseek_v2", "olmoe", "jamba", "qwen3_next", "llama4"],
)
def test_a_mixtures_active_parameters_are_those_of_the_chosen_experts(config, active):
    assert count(ModelShape.from_hf_config(config)).active == pytest.approx(active, rel=0.03)


def test_next_token_layers_count_only_when_they_are_trained():
    shape = ModelShape.from_hf_config(configs.DEEPSEEK_V3)
    trained = ModelShape.from_hf_config(configs.DEEPSEEK_V3, trains_mtp=True)

    assert flops_per_token(shape, 4096) / 1e9 == pytest.approx(249.81, abs=0.01)
    assert flops_per_token(trained, 4096) / 1e9 == pytest.approx(259.99, abs=0.01)


def masks(config):
    return [
        block.mixer.mask for block in ModelShape.from_hf_config(config).blocks for _ in range(block.count)
    ]


def test_each_familys_windows_are_on_its_own_layers():
    assert masks(configs.MISTRAL_7B) == [Mask(window=4096)] * 32
    assert masks(configs.GEMMA_2_9B) == [Mask(window=4096), Mask()] * 21
    assert masks(configs.GPT_OSS_120B) == [Mask(window=128), Mask()] * 18
    assert masks(configs.QWEN2_5_7B) == [Mask()] * 28
    assert masks({**configs.QWEN2_5_7B, "use_sliding_window": True, "max_window_layers": 21})[20:22] == [
        Mask(),
        Mask(window=131072),
    ]
    assert masks(configs.GEMMA_3_4B)[:6] == [Mask(window=1024)] * 5 + [Mask()]
    assert masks(configs.LLAMA_4_MAVERICK)[:4] == [Mask(chunk=8192)] * 3 + [Mask()]


def test_llama_4_alternates_dense_and_expert_layers():
    shape = ModelShape.from_hf_config(configs.LLAMA_4_MAVERICK)
    rate = {"vision": StackTokens(per_token=0, length=577)}

    assert flops_per_token(shape, 8192, stacks=rate) == pytest.approx(108_883_476_480, rel=1e-9)


def test_a_nemotron_hybrid_has_one_part_a_layer():
    shape = ModelShape.from_hf_config(configs.NEMOTRON_H_8B)
    mamba = next(block.mixer for block in shape.blocks if isinstance(block.mixer, Mamba2))

    assert shape.layers == 52
    assert shape.attention_layers == 4
    assert mamba == Mamba2(inner=8192, state=128, groups=8, heads=128)


def test_a_vision_transformer_counts_patches_and_the_whole_square():
    shape = ModelShape.from_hf_config(configs.VIT_BASE)
    layer = 4 * 768 * 768 + 2 * 768 * 3072

    assert shape.seq_len == 197
    assert flops_per_token(shape, 197) == 6 * (12 * layer + 3 * 16 * 16 * 768) + 12 * 12 * 768 * 197


def test_bert_has_a_masked_language_head():
    shape = ModelShape.from_hf_config(configs.BERT_BASE)
    layer = 4 * 768 * 768 + 2 * 768 * 3072

    assert flops_per_token(shape, 512) == 6 * (12 * layer + 768 * 768 + 768 * 30522) + 12 * 12 * 768 * 512


def test_t5_counts_encoder_tokens_apart():
    shape = ModelShape.from_hf_config(configs.T5_BASE)
    square, mlp = 4 * 768 * 768, 2 * 768 * 3072
    decoder = 6 * (12 * (square + 2 * 768 * 768 + mlp) + 768 * 32128) + 12 * (6 * 768 * 128 + 12 * 768 * 512)
    encoder = 6 * 12 * (square + mlp + 2 * 768 * 768) + 12 * 12 * 768 * 512

    counted = flops_per_token(shape, 128, stacks={"encoder": StackTokens(per_token=4, length=512)})
    assert counted == pytest.approx(decoder + 4 * encoder)


def test_gated_t5_has_three_matrices():
    plain, gated = (
        ModelShape.from_hf_config({**configs.T5_BASE, "feed_forward_proj": kind})
        for kind in ("relu", "gated-gelu")
    )

    assert not plain.blocks[0].mlp.gated
    assert gated.blocks[0].mlp.gated


@pytest.mark.parametrize(
    ("config", "tokens", "tower_parameters"),
    [
        (configs.LLAVA_1_5_7B, 577, 303e6),
        (configs.GEMMA_3_4B, 4096, 412e6),
        (configs.LLAMA_4_MAVERICK, 577, 834e6),
        (configs.QWEN2_VL_7B, None, 675e6),
    ],
    ids=["llava", "gemma3", "llama4", "qwen2_vl"],
)
def test_a_vision_tower_is_a_stack_with_its_own_tokens(config, tokens, tower_parameters):
    (stack,) = ModelShape.from_hf_config(config).stacks

    assert stack.name == "vision"
    assert stack.tokens_per_item == tokens
    layers = sum(block.count * block.passed_weights(stack.hidden) for block in stack.blocks)
    assert layers + stack.stored_weights == pytest.approx(tower_parameters, rel=0.09)


def test_llavas_tower_meets_the_whole_square_of_an_image():
    shape = ModelShape.from_hf_config(configs.LLAVA_1_5_7B)
    layer = 4 * 1024 * 1024 + 2 * 1024 * 4096
    token = 6 * (24 * layer + 3 * 14 * 14 * 1024 + 1024 * 4096 + 4096**2) + 12 * 24 * 1024 * 577
    none, one = (
        flops_per_token(shape, 2048, stacks={"vision": StackTokens(per_token=rate, length=577)})
        for rate in (0, 577 / 2048)
    )

    assert one - none == pytest.approx(token * 577 / 2048)


def test_a_shape_from_a_config_survives_being_written():
    for config in (
        configs.LLAVA_1_5_7B,
        configs.QWEN3_NEXT_80B,
        configs.T5_BASE,
        configs.DEEPSEEK_V3,
        configs.JAMBA,
    ):
        shape = ModelShape.from_hf_config(config)
        assert ModelShape.from_dict(shape.to_dict()) == shape


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"model_type": "rwkv", "hidden_size": 64}, "model_type"),
        ({"hidden_size": 64}, "model_type"),
        ({**configs.LLAMA_3_8B, "num_hidden_layers": None}, "num_hidden_layers"),
        ({**configs.LLAMA_3_8B, "hidden_size": "4096"}, "hidden_size"),
        ({**configs.LLAMA_3_8B, "num_local_experts": 8}, "num_local_experts"),
        ({**configs.LLAMA_3_8B, "sliding_window": 4096}, "sliding_window"),
        ({**configs.LLAMA_3_8B, "cross_attention_layers": [3]}, "cross_attention_layers"),
        ({**configs.LLAMA_3_8B, "num_key_value_heads": 5}, "n_kv_heads"),
        ({**configs.LLAMA_3_8B, "tie_word_embeddings": "no"}, "tie_word_embeddings"),
        ({**configs.GPT_OSS_120B, "layer_types": ["full_attention"]}, "layer_types"),
        ({**configs.GPT_OSS_120B, "layer_types": ["linear_attention"] * 36}, "layer_types"),
        ({**configs.DEEPSEEK_V3, "index_topk": 2048}, "index_topk"),
        ({**configs.DEEPSEEK_V3, "kv_lora_rank": None}, "kv_lora_rank"),
        ({**configs.NEMOTRON_H_8B, "hybrid_override_pattern": "MX"}, "hybrid_override_pattern"),
        ({**configs.NEMOTRON_H_8B, "hybrid_override_pattern": "M-"}, "hybrid_override_pattern"),
        ({**configs.T5_BASE, "feed_forward_proj": "moe"}, "feed_forward_proj"),
        ({**configs.LLAVA_1_5_7B, "text_config": None}, "text_config"),
        ({**configs.LLAVA_1_5_7B, "vision_config": None}, "vision_config"),
        (
            {**configs.GEMMA_3_4B, "text_config": {"model_type": "gemma3_text"}},
            "text_config.num_hidden_layers",
        ),
        (
            {
                **configs.LLAMA_4_MAVERICK,
                "vision_config": {**configs.LLAMA_4_MAVERICK["vision_config"], "pixel_shuffle_ratio": 2.0},
            },
            "vision_config.pixel_shuffle_ratio",
        ),
    ],
)
def test_a_config_that_is_not_understood_names_its_field(config, field):
    with pytest.raises(ShapeError) as caught:
        ModelShape.from_hf_config(config)

    assert caught.value.field == field


def test_switched_off_features_are_no_reason_to_refuse():
    config = {**configs.LLAMA_3_8B, "num_local_experts": 0, "sliding_window": None, "layer_types": None}

    assert ModelShape.from_hf_config(config) == ModelShape.from_hf_config(configs.LLAMA_3_8B)


def test_the_families_that_are_asked_for_are_known():
    asked = (
        "llama mistral mixtral qwen2 qwen3 qwen2_moe qwen3_moe deepseek_v2 deepseek_v3 gemma2 gemma3 gpt2 gpt_neox "
        "gpt_oss phi olmo olmo2 falcon granite nemotron_h mamba2 llama4 t5 vit llava"
    )

    assert set(asked.split()) <= set(known_types())


def test_the_name_in_a_config_is_the_shapes():
    assert replace(ModelShape.from_hf_config({**configs.GPT2, "_name_or_path": "gpt2"})).name == "gpt2"


def test_arctic_has_a_dense_mlp_beside_two_of_its_experts():
    """Snowflake publishes 17 billion active parameters: by hand, 35 layers and the embeddings."""
    layer = 2 * 7168 * 7168 + 2 * 7168 * 1024 + 3 * 7168 * 4864 * 2 + 3 * 7168 * 7168 + 7168 * 128
    active = 35 * layer + 2 * 32_000 * 7168

    assert count(ModelShape.from_hf_config(configs.ARCTIC)).active == pytest.approx(active, rel=1e-3)
    assert active == pytest.approx(17.3e9, rel=0.01)


def test_minimax_layers_with_another_kind_of_attention_are_refused():
    with pytest.raises(ShapeError, match="attn_type_list"):
        ModelShape.from_hf_config({**configs.MINIMAX_M2, "attn_type_list": [0] * 31 + [1] * 31})
