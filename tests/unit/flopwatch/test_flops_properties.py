"""What must hold for every shape, whatever its numbers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch.blocks import Attention, Block, DenseMlp, Mask, MoeMlp
from flopwatch.conventions import CONVENTIONS
from flopwatch.flops import Documents, ModelShape, flops_per_token, hardware_flops_per_token
from flopwatch.shape import Finetuning

heads = st.sampled_from([(8, 8), (8, 2), (8, 1), (12, 4)])
lengths = st.integers(min_value=2, max_value=9000)


@st.composite
def attentions(draw, mask=None):
    many, few = draw(heads)
    width = draw(st.sampled_from([16, 64, 128, 192]))
    chosen = mask or draw(
        st.sampled_from([Mask(), Mask(window=128), Mask(window=1), Mask(chunk=512), Mask(causal=False)])
    )
    return Attention(heads=many, kv_heads=few, head_dim=width, mask=chosen)


@st.composite
def feed_forwards(draw):
    gated = draw(st.booleans())
    if draw(st.booleans()):
        return DenseMlp(ffn=draw(st.integers(1, 4096)), gated=gated)
    experts = draw(st.integers(2, 64))
    return MoeMlp(
        n_experts=experts,
        top_k=draw(st.integers(1, experts)),
        expert_ffn=draw(st.integers(1, 2048)),
        shared_expert_ffn=draw(st.sampled_from([0, 512])),
        gated=gated,
    )


@st.composite
def shapes(draw, mask=None):
    blocks = draw(
        st.lists(
            st.builds(Block, count=st.integers(1, 20), mixer=attentions(mask), mlp=feed_forwards()),
            min_size=1,
            max_size=3,
        )
    )
    return ModelShape(
        hidden=draw(st.sampled_from([64, 256, 1024])),
        vocab=draw(st.integers(1, 100_000)),
        tied_embeddings=draw(st.booleans()),
        blocks=tuple(blocks),
    )


@given(shapes(), lengths)
def test_every_convention_counts_something_finite_above_zero(shape, seq_len):
    for name in CONVENTIONS:
        assert 0 < flops_per_token(shape, seq_len, name) < float("inf")


@given(shapes(), lengths)
def test_a_shape_written_and_read_again_is_the_same(shape, seq_len):
    again = ModelShape.from_dict(shape.to_dict())

    assert again == shape
    assert flops_per_token(again, seq_len) == flops_per_token(shape, seq_len)


@given(shapes(), lengths)
def test_causal_attention_costs_no_more_than_full(shape, seq_len):
    assert flops_per_token(shape, seq_len) <= flops_per_token(shape, seq_len, "full")


@given(shapes(), lengths, lengths)
def test_a_longer_sequence_costs_no_less_per_token_without_chunks(shape, one, other):
    shorter, longer = sorted((one, other))
    blocks = tuple(
        replace(block, mixer=replace(block.mixer, mask=Mask(causal=block.mixer.mask.causal)))
        for block in shape.blocks
    )

    assert flops_per_token(replace(shape, blocks=blocks), shorter) <= flops_per_token(
        replace(shape, blocks=blocks), longer
    )


@given(shapes(mask=Mask()), lengths, st.integers(0, 5000))
def test_a_window_as_long_as_the_sequence_is_causal_attention(shape, seq_len, more):
    blocks = tuple(
        replace(block, mixer=replace(block.mixer, mask=Mask(window=seq_len + more))) for block in shape.blocks
    )

    assert flops_per_token(replace(shape, blocks=blocks), seq_len) == flops_per_token(shape, seq_len)


@given(shapes(mask=Mask()), lengths, st.integers(1, 9000))
def test_a_window_never_costs_more_than_causal_attention(shape, seq_len, window):
    blocks = tuple(
        replace(block, mixer=replace(block.mixer, mask=Mask(window=window))) for block in shape.blocks
    )

    assert flops_per_token(replace(shape, blocks=blocks), seq_len) <= flops_per_token(shape, seq_len)


@given(attentions(), st.integers(1, 8), st.integers(1, 1000), st.booleans(), lengths)
def test_a_mixture_with_all_experts_active_is_a_dense_mlp_of_their_summed_width(
    mixer, experts, width, gated, seq_len
):
    mixture = MoeMlp(n_experts=experts, top_k=experts, expert_ffn=width, shared_expert_ffn=0, gated=gated)
    dense = DenseMlp(ffn=experts * width, gated=gated)
    of_experts, of_dense = (
        ModelShape(hidden=256, vocab=1000, blocks=(Block(count=4, mixer=mixer, mlp=mlp),))
        for mlp in (mixture, dense)
    )

    assert flops_per_token(of_experts, seq_len) == flops_per_token(of_dense, seq_len)


@given(shapes(), lengths)
def test_one_document_as_long_as_the_sequence_is_no_packing(shape, seq_len):
    packed = flops_per_token(shape, seq_len, documents=Documents.of([seq_len]))

    assert packed == pytest.approx(flops_per_token(shape, seq_len), rel=1e-12)


@given(shapes(), st.lists(st.integers(1, 2000), min_size=1, max_size=20))
def test_packed_documents_cost_no_more_than_one_sequence_of_their_length(shape, documents):
    packed = flops_per_token(shape, sum(documents), documents=Documents.of(documents))

    assert packed <= flops_per_token(shape, sum(documents)) * (1 + 1e-12)


@given(shapes(), st.lists(st.integers(1, 2000), min_size=1, max_size=20))
def test_the_two_sums_alone_are_exact_without_windows_and_never_too_low_with_them(shape, documents):
    known = Documents.of(documents)
    sums = Documents(tokens=known.tokens, squared_tokens=known.squared_tokens)
    from_lengths = flops_per_token(shape, sum(documents), documents=known)
    from_sums = flops_per_token(shape, sum(documents), documents=sums)
    chunked = any(block.mixer.mask.chunk for block in shape.blocks)
    windowed = any(block.mixer.mask.window for block in shape.blocks)

    assert chunked or from_sums >= from_lengths * (1 - 1e-12)
    assert chunked or windowed or from_sums == pytest.approx(from_lengths, rel=1e-12)


@given(shapes(), lengths, st.integers(1, 4))
def test_lora_costs_between_four_sixths_and_all_of_full_training(shape, seq_len, rank):
    wide = replace(
        shape, hidden=1024, blocks=tuple(replace(b, mlp=DenseMlp(ffn=1024, gated=True)) for b in shape.blocks)
    )
    whole = flops_per_token(wide, seq_len)

    assert 4 / 6 <= flops_per_token(wide.with_lora(rank), seq_len) / whole < 1


@given(shapes(), lengths, st.data())
def test_freezing_layers_takes_two_thirds_of_them_away_and_no_more(shape, seq_len, data):
    frozen = data.draw(st.integers(0, shape.layers))
    part = flops_per_token(replace(shape, finetuning=Finetuning(frozen_layers=frozen)), seq_len)
    whole = flops_per_token(shape, seq_len)

    assert whole / 3 < part <= whole


@given(shapes(), lengths)
def test_full_recompute_is_four_thirds_and_selective_between(shape, seq_len):
    model, selective, full = (
        hardware_flops_per_token(shape, seq_len, kind) for kind in ("none", "selective", "full")
    )

    assert model == flops_per_token(shape, seq_len)
    assert full == pytest.approx(model * 4 / 3)
    assert model <= selective <= full * (1 + 1e-12)


@given(shapes(), st.integers(1, 8), lengths)
def test_layers_and_logits_add_up(shape, times, seq_len):
    deeper = replace(shape, blocks=tuple(replace(block, count=block.count * times) for block in shape.blocks))
    logits = 6 * shape.hidden * shape.vocab

    of_layers = flops_per_token(shape, seq_len) - logits
    assert flops_per_token(deeper, seq_len) - logits == pytest.approx(times * of_layers, rel=1e-9)
