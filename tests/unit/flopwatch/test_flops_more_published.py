"""Published throughputs beside those of the fixture: each in the convention that its source counts in."""

import pytest

from flopwatch.flops import ModelShape, flops_per_token


def gpt(hidden, layers, heads):
    return ModelShape.from_hf_config(
        {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "vocab_size": 50_257}
    )


def llama(hidden, layers, kv_heads, ffn, vocab):
    return ModelShape.from_hf_config({
        "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": hidden // 128,
        "num_key_value_heads": kv_heads, "intermediate_size": ffn, "vocab_size": vocab, "tie_word_embeddings": False,
    })  # fmt: skip


GPT_5B, GPT_20B, GPT_175B = gpt(4096, 24, 32), gpt(6144, 44, 48), gpt(12_288, 96, 96)
LLAMA_2_7B = llama(4096, 32, 32, 11_008, 32_000)
LLAMA_2_13B = llama(5120, 40, 40, 13_824, 32_000)
LLAMA_2_70B = llama(8192, 80, 8, 28_672, 32_000)
LLAMA_3_8B, LLAMA_3_70B = llama(4096, 32, 8, 14_336, 128_256), llama(8192, 80, 8, 28_672, 128_256)

PRETRAINING = {
    GPT_5B: ((23_406, 765),), GPT_20B: ((5_851, 750),), GPT_175B: ((716, 771), (825, 888)),
    LLAMA_2_7B: ((16_934, 780),), LLAMA_2_13B: ((8_715, 760),), LLAMA_2_70B: ((1_728, 768),),
    LLAMA_3_8B: ((12_273, 711),), LLAMA_3_70B: ((1_524, 734),),
}  # fmt: skip
"""docs.nvidia.com, NeMo 24.12 performance summary: tokens/s and TFLOP/s of an H100 in fp8."""
TUNING = {LLAMA_2_7B: (16_891, 673), LLAMA_2_13B: (10_176, 787), LLAMA_2_70B: (1_816, 749)}
"""The same page: full fine-tuning on SQuAD, short samples packed to 4,096."""
LENGTHS = {GPT_5B: 2048, GPT_20B: 2048, GPT_175B: 2048, LLAMA_3_8B: 8192, LLAMA_3_70B: 8192}
MT_NLG_BATCH_TOKENS = 1_920 * 2_048
MT_NLG = ((2_240, 60.1, 126), (2_800, 50.2, 121), (3_360, 44.4, 113))
"""arXiv 2201.11990, section 2.4: A100s, seconds of an iteration, TFLOP/s of a GPU."""


@pytest.mark.parametrize(
    "shape", PRETRAINING, ids=lambda shape: f"{shape.layers} layers of {shape.hidden}, {shape.vocab}"
)
def test_nemos_table_of_2024_counts_the_whole_square(shape):
    for tokens_per_second, tflops in PRETRAINING[shape]:
        flops = flops_per_token(shape, LENGTHS.get(shape, 4096), "full")

        assert flops * tokens_per_second / 1e12 == pytest.approx(tflops, rel=0.0015)


@pytest.mark.parametrize(
    "shape", TUNING, ids=lambda shape: f"{shape.layers} layers of {shape.hidden}, {shape.vocab}"
)
def test_nemos_table_of_2024_counts_no_attention_in_short_samples(shape):
    tokens_per_second, tflops = TUNING[shape]

    assert flops_per_token(shape, 4096, "matmul_only") * tokens_per_second / 1e12 == pytest.approx(
        tflops, rel=0.006
    )


@pytest.mark.parametrize(("gpus", "seconds", "tflops"), MT_NLG)
def test_megatron_turings_figures_hold_the_recomputation(gpus, seconds, tflops):
    shape = gpt(20_480, 105, 128)
    tokens_per_second = MT_NLG_BATCH_TOKENS / seconds / gpus

    assert flops_per_token(shape, 2048, "eq3") * tokens_per_second / 1e12 == pytest.approx(tflops, abs=0.6)
    assert flops_per_token(shape, 2048, "palm") * tokens_per_second / 1e12 == pytest.approx(
        tflops * 3 / 4, rel=0.006
    )


def test_kempnerforges_figure_counts_the_embedding_as_well():
    """Llama 3 8B on an H200 at 4,096: 10,471 tokens/s, printed as 57.8 %."""
    flops = flops_per_token(LLAMA_3_8B, 4096, "palm") * 10_471

    assert flops / 989e12 == pytest.approx(0.578, abs=0.0005)
    assert flops_per_token(LLAMA_3_8B, 4096, "causal") * 10_471 / 989e12 == pytest.approx(0.511, abs=0.0005)
