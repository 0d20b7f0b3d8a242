"""Parts of a shape against hand-made arithmetic, and descriptions that are not understood."""

from dataclasses import replace

import pytest

from flopwatch.blocks import Attention, Block, DenseMlp, GatedDelta, LatentAttention, Mamba2, Mask, ShapeError
from flopwatch.conventions import CONVENTIONS
from flopwatch.exact import TokensUnknown
from flopwatch.flops import Documents, ModelShape, StackTokens, flops_per_token, hardware_flops_per_token
from flopwatch.shape import Finetuning, Stack

FLAT = {
    "n_layers": 4, "hidden": 64, "ffn_hidden": 256, "n_heads": 4, "n_kv_heads": 2, "head_dim": 32, "vocab": 1000,
    "gated_mlp": True, "tied_embeddings": False,
}  # fmt: skip
ATTENTION = 2 * 64 * 128 + 2 * 64 * 64
MLP = 3 * 64 * 256


def flops(seq_len=128, convention="causal", **changes):
    return flops_per_token(ModelShape.from_dict({**FLAT, **changes}), seq_len, convention)


def test_a_dense_layer_is_its_projections_its_mlp_and_half_the_square():
    assert flops() == 6 * (4 * (ATTENTION + MLP) + 64 * 1000) + 6 * 4 * 4 * 32 * 128


def test_an_ungated_mlp_has_two_matrices():
    assert flops() - flops(gated_mlp=False) == 6 * 4 * 64 * 256


def test_heads_default_to_one_key_each_and_their_width_to_an_equal_share():
    shape = ModelShape.from_dict({key: FLAT[key] for key in FLAT if key not in ("n_kv_heads", "head_dim")})

    assert shape.blocks[0].mixer == Attention(heads=4, kv_heads=4, head_dim=16)


def test_the_logits_matmul_has_the_padded_rows_where_they_are_known():
    assert flops(padded_vocab_used=1024) - flops() == 6 * 64 * 24
    assert flops(padded_vocab_used=1024, convention="maxtext") == flops(convention="maxtext")


def test_tying_the_embedding_changes_n_but_no_matmul():
    assert flops(tied_embeddings=True) == flops()
    assert flops(convention="palm") - flops(tied_embeddings=True, convention="palm") == 6 * 64 * 1000


def test_leading_layers_of_a_mixture_are_dense():
    moe = {"n_experts": 8, "top_k": 2, "expert_ffn": 100, "shared_expert_ffn": 50, "first_dense_layers": 1}
    passed = 4 * ATTENTION + MLP + 3 * (3 * 64 * (2 * 100 + 50)) + 64 * 1000

    assert flops(moe=moe) == 6 * passed + 6 * 4 * 4 * 32 * 128
    assert flops(moe=moe, convention="maxtext") - flops(moe=moe) == 6 * 3 * 64 * 8


def test_latent_attention_is_its_five_projections_and_two_widths():
    mla = {"q_lora": 24, "kv_lora": 16, "nope": 8, "rope": 4, "v": 12}
    weights = 64 * 24 + 24 * 4 * 12 + 64 * (16 + 4) + 16 * 4 * 20 + 4 * 12 * 64
    core = 3 * 4 * ((8 + 4) + 12) * 128

    assert flops(mla=mla) == 6 * (4 * (weights + MLP) + 64 * 1000) + 4 * core


def test_latent_attention_without_low_rank_queries_projects_them_at_once():
    low, full = (
        LatentAttention(heads=4, q_lora=rank, kv_lora=16, nope=8, rope=4, v=12) for rank in (24, None)
    )

    assert full.matrices(64)["q"] == (64, 48)
    assert low.matrices(64)["q_up"] == (24, 48)


def test_multi_token_prediction_adds_a_layer_a_projection_and_one_more_logits_matmul():
    added = 6 * (ATTENTION + MLP + 2 * 64 * 64 + 64 * 1000) + 6 * 4 * 32 * 128

    assert flops(mtp_layers=1) - flops() == added


@pytest.mark.parametrize(
    ("text", "window_layers"),
    [
        ("alternating full and sliding window 16", 2),
        ("alternating sliding window 16 and full", 2),
        ("sliding window 16", 4),
        ("3 sliding window 16 to 1 full", 3),
        ("every 2nd full, sliding window 16", 2),
        ("full", 0),
        ("causal", 0),
    ],
)
def test_windows_are_counted_to_the_pair(text, window_layers):
    pairs = 128 * 16 - 16 * 15 / 2
    saved = 12 * 4 * 32 * (64 - pairs / 128)

    assert flops() - flops(attn=text) == pytest.approx(window_layers * saved)


def test_chunks_attend_inside_themselves():
    mask = Mask(chunk=50)

    assert mask.pairs(128) == (50 * 50 + 50 * 50 + 28 * 28) / 2
    assert mask.pairs(50) == 50 * 50 / 2
    assert Mask(causal=False, chunk=50).pairs(128) == 50 * 50 + 50 * 50 + 28 * 28


def test_bidirectional_attention_meets_the_whole_square():
    assert flops(attn="bidirectional") - flops() == 6 * 4 * 4 * 32 * 128


def test_a_hybrid_counts_each_kind_of_layer():
    text = "hybrid: 3 Mamba-2, 1 attention, 2 MLP layers; state 16, 2 groups, head dim 8"
    mamba = 64 * (2 * 128 + 2 * 2 * 16 + 16) + 128 * 64
    expected = 6 * (3 * mamba + ATTENTION + 2 * MLP + 64 * 1000) + 3 * 6 * 128 * 16 + 6 * 4 * 32 * 128

    assert flops(n_layers=6, extra=text) == expected


def test_a_hybrids_parameters_are_its_layers_and_not_those_of_the_flat_formula():
    text = "hybrid: 3 Mamba-2, 1 attention, 2 MLP layers; state 16, 2 groups, head dim 8"
    flat = {"n_layers": 6, "extra": text, "n_params": 10**9}
    computed = flops(**flat, n_params_is="computed from the config", convention="six_n")

    assert computed < 6 * 10**6
    assert flops(**flat, n_params_is="published", convention="six_n") == 6 * 10**9


def test_a_gated_delta_layer_is_its_projections_its_recurrence_and_its_convolution():
    layer = GatedDelta(key_heads=2, value_heads=4, key_head_dim=8, value_head_dim=16, convolution=4)
    shape = ModelShape(hidden=64, vocab=0, blocks=(Block(count=1, mixer=layer),))
    weights = 64 * (2 * 16 + 2 * 64 + 2 * 4) + 64 * 64

    assert flops_per_token(shape, 128) == 6 * weights + 6 * (4 * 4 * 8 * 16 + 4 * (2 * 16 + 64))


def test_packed_documents_attend_inside_themselves():
    shape = ModelShape.from_dict(FLAT)
    packed = flops_per_token(shape, 128, documents=Documents(tokens=128, squared_tokens=2 * 64 * 64))

    assert flops_per_token(shape, 128) - packed == 6 * 4 * 4 * 32 * 64


def test_a_thousand_token_documents_in_eight_thousand_save_eleven_percent_of_llama_3_8b():
    shape = ModelShape.from_dict(
        {
            "n_layers": 32,
            "hidden": 4096,
            "ffn_hidden": 14336,
            "n_heads": 32,
            "n_kv_heads": 8,
            "vocab": 128256,
            "gated_mlp": True,
        }
    )
    packed = flops_per_token(shape, 8192, documents=Documents.of([1024] * 8))

    assert 1 - packed / flops_per_token(shape, 8192) == pytest.approx(0.11, abs=0.005)


@pytest.mark.parametrize(("tokens", "squared"), [(0, 0), (10, 5), (-1, 4)])
def test_impossible_document_sums_are_refused(tokens, squared):
    with pytest.raises(ValueError, match="documents have tokens"):
        Documents(tokens=tokens, squared_tokens=squared)


def test_lora_counts_frozen_matmuls_at_four_and_adapters_at_six():
    roles = frozenset({"q", "v"})
    shape = ModelShape.from_dict(FLAT).with_lora(8, roles)
    adapters = 4 * 8 * ((64 + 128) + (64 + 64))

    assert (
        flops_per_token(shape, 128)
        == 4 * (4 * (ATTENTION + MLP) + 64 * 1000) + 6 * adapters + 6 * 4 * 4 * 32 * 128
    )


def test_lora_keys_are_read_from_a_description():
    described = ModelShape.from_dict({**FLAT, "lora": {"rank": 8, "roles": ["q", "v"]}})

    assert described == ModelShape.from_dict(FLAT).with_lora(8, frozenset({"q", "v"}))
    assert ModelShape.from_dict(described.to_dict()) == described


def test_adapters_of_experts_stand_on_each_chosen_one():
    moe = {"n_experts": 8, "top_k": 2, "expert_ffn": 100, "shared_expert_ffn": 0, "first_dense_layers": 0}
    plain = ModelShape.from_dict({**FLAT, "moe": moe})
    up, both = (
        flops_per_token(plain.with_lora(8, roles), 128)
        for roles in (frozenset({"expert_up"}), frozenset({"q"}))
    )

    adapters_of_up, adapters_of_q = 4 * 8 * 2 * (64 + 100), 4 * 8 * (64 + 128)
    assert up - both == 6 * (adapters_of_up - adapters_of_q)


def test_frozen_lower_layers_run_forward_only():
    shape = replace(ModelShape.from_dict(FLAT), finetuning=Finetuning(frozen_layers=3))
    layer = 6 * (ATTENTION + MLP) + 6 * 4 * 32 * 128

    assert flops_per_token(shape, 128) == 3 * layer / 3 + layer + 6 * 64 * 1000


def test_selective_recompute_adds_a_third_of_the_attention_core():
    shape = ModelShape.from_dict(FLAT)
    core = 6 * 4 * 4 * 32 * 128

    assert hardware_flops_per_token(shape, 128, "selective") - flops_per_token(shape, 128) == core / 3
    assert (
        hardware_flops_per_token(shape, 128, "selective", "full") - flops(convention="full") == 2 * core / 3
    )


def test_an_unknown_kind_of_recompute_is_refused():
    with pytest.raises(ValueError, match="recompute is 'some'"):
        hardware_flops_per_token(ModelShape.from_dict(FLAT), 128, "some")


def encoder_decoder():
    look = Attention(heads=4, kv_heads=4, head_dim=16, mask=Mask(causal=False), key_value_hidden=64)
    own = Attention(heads=4, kv_heads=4, head_dim=16)
    encoder = Block(count=2, mixer=replace(own, mask=Mask(causal=False)), mlp=DenseMlp(ffn=128, gated=False))
    return ModelShape(
        hidden=64,
        vocab=100,
        blocks=(Block(count=3, mixer=own, mlp=DenseMlp(ffn=128, gated=False), cross=look),),
        stacks=(Stack(name="encoder", hidden=64, blocks=(encoder,)),),
    )


def test_an_encoder_decoder_counts_each_stack_by_its_own_tokens():
    counted = flops_per_token(encoder_decoder(), 32, stacks={"encoder": StackTokens(per_token=4, length=128)})

    square, mlp = 4 * 64 * 64, 2 * 64 * 128
    decoder_token = 6 * (3 * (square + 2 * 64 * 64 + mlp) + 64 * 100) + 3 * 6 * 64 * 32 + 3 * 12 * 64 * 128
    encoder_token = 6 * 2 * (square + mlp) + 2 * 12 * 64 * 128 + 6 * 3 * 2 * 64 * 64
    assert counted == pytest.approx(decoder_token + 4 * encoder_token)


def test_a_second_stack_without_a_token_count_is_an_error_and_no_guess():
    with pytest.raises(TokensUnknown, match=r"stacks\.encoder is None; allowed: StackTokens"):
        flops_per_token(encoder_decoder(), 32)


def test_a_frozen_tower_runs_forward_only_and_text_alone_costs_nothing_in_it():
    tower = Block(count=2, mixer=Attention(heads=4, kv_heads=4, head_dim=16, mask=Mask(causal=False)))
    stack = Stack(name="vision", hidden=64, blocks=(tower,), entry_weights=100, frozen=True)
    shape = replace(ModelShape.from_dict(FLAT), stacks=(stack,))
    one_image_token = 2 * (2 * 4 * 64 * 64 + 100) + 2 * 4 * 64 * 10

    with_images = flops_per_token(shape, 128, stacks={"vision": StackTokens(per_token=1, length=10)})
    text_only = flops_per_token(shape, 128, stacks={"vision": StackTokens(per_token=0, length=10)})
    assert with_images - text_only == one_image_token
    assert text_only == flops()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"n_layers": None}, "n_layers"),
        ({"n_layers": 0}, "n_layers"),
        ({"hidden": "64"}, "hidden"),
        ({"vocab": -1}, "vocab"),
        ({"gated_mlp": None}, "gated_mlp"),
        ({"gated_mlp": "yes"}, "gated_mlp"),
        ({"tied_embeddings": 1}, "tied_embeddings"),
        ({"n_kv_heads": 3}, "n_kv_heads"),
        ({"n_heads": True}, "n_heads"),
        ({"head_dim": 0}, "head_dim"),
        ({"padded_vocab_used": 999}, "padded_vocab_used"),
        ({"moe": {"n_experts": 2, "top_k": 3, "expert_ffn": 8}}, "top_k"),
        ({"moe": {"n_experts": 2, "top_k": 1}}, "expert_ffn"),
        ({"moe": {"n_experts": 2, "top_k": 1, "expert_ffn": 8, "capacity": 2}}, "moe.capacity"),
        (
            {"moe": {"n_experts": 2, "top_k": 1, "expert_ffn": 8, "first_dense_layers": 5}},
            "moe.first_dense_layers",
        ),
        ({"moe": 8}, "moe"),
        ({"mla": {"q_lora": 1, "kv_lora": 1, "nope": 1, "rope": 1}}, "v"),
        ({"attn": "linear"}, "attn"),
        ({"attn": 128}, "attn"),
        ({"attn": "dilated sliding window 128"}, "attn"),
        ({"extra": "hybrid: 4 RWKV layers"}, "extra"),
        ({"extra": "hybrid: 3 Mamba-2, 1 attention layers"}, "extra"),
        ({"extra": "hybrid: 1 Mamba-2, 1 attention layers; state 16"}, "extra"),
        ({"extra": "something else"}, "extra"),
        ({"mixture_of_depths": True}, "mixture_of_depths"),
        ({"lora": 8}, "lora"),
        ({"lora": {"rank": 0}}, "rank"),
        ({"frozen_layers": 5}, "frozen_layers"),
    ],
)
def test_a_description_that_is_not_understood_names_its_field(changes, field):
    with pytest.raises(ShapeError) as caught:
        ModelShape.from_dict({**FLAT, **changes})

    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field} is ")
    assert "; allowed: " in str(caught.value)


@pytest.mark.parametrize(
    ("blocks", "field"),
    [
        ("many", "blocks"),
        ([{"count": 1}], "blocks"),
        ([{"count": 1, "mixer": {"kind": "rwkv"}}], "blocks.mixer"),
        ([{"count": 1, "mixer": {"kind": "attention", "heads": 4}}], "blocks.mixer"),
        (
            [{"count": 1, "mlp": {"kind": "dense_mlp", "ffn": 4, "gated": True, "bias": True}}],
            "blocks.mlp.bias",
        ),
    ],
)
def test_blocks_that_are_not_understood_name_their_place(blocks, field):
    with pytest.raises(ShapeError) as caught:
        ModelShape.from_dict({"hidden": 64, "vocab": 100, "blocks": blocks})

    assert caught.value.field == field


def test_layers_of_a_mamba_model_have_no_quadratic_term():
    layer = Mamba2(inner=128, state=16, groups=1, heads=2)
    shape = ModelShape(hidden=64, vocab=100, blocks=(Block(count=2, mixer=layer),))

    assert {flops_per_token(shape, length, "full") for length in (128, 4096)} == {flops_per_token(shape, 1)}
    assert all(flops_per_token(shape, 128, name) > 0 for name in CONVENTIONS)
