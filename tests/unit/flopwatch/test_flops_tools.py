"""The same model as other tools count it: GFLOP a trained token, worked out by hand for six models."""

from dataclasses import replace

import pytest

from flopwatch.conventions import CONVENTIONS
from flopwatch.flops import ModelShape, convention, flops_per_token
from flopwatch.model_names import by_name

COLUMNS = (
    ("llama-3-8b", 8192),
    ("llama-3.1-405b", 8192),
    ("mixtral-8x7b", 4096),
    ("mixtral-8x7b", 32768),
    ("deepseek-v3", 4096),
    ("gpt-3-175b", 2048),
)
TABLE = {
    "causal": (51.47, 2523.96, 79.71, 102.26, 249.81, 1061.95),
    "maxtext": (51.47, 2523.96, 79.71, 102.26, 250.45, 1061.88),
    "full": (57.91, 2625.42, 82.93, 128.02, 280.51, 1076.44),
    "titan": (57.91, 2625.45, 82.94, 128.03, 281.16, 1076.62),
    "palm": (61.07, 2638.06, 83.72, 128.82, 286.72, 1076.62),
    "foundry": (61.07, 2638.06, 83.72, 128.82, 246.80, 1076.62),
    "llm_c": (54.62, 2536.59, 80.50, 103.05, 236.06, 1062.12),
    "verl": (54.62, 2536.56, 80.50, 103.05, 256.01, 1065.58),
    "torch_flash": (60.06, 2659.25, 84.01, 136.62, 291.39, 1081.21),
    "six_n": (48.18, 2435.12, 77.28, 77.28, 225.31, 1047.63),
    "hf_trainer": (45.03, 2422.51, 279.43, 279.43, 4020.6, 1043.77),
    "llama_factory": (57.91, 2625.42, 49.10, 94.20, 247.34, None),
}
CELLS = [
    (name, model, seq_len, gflop)
    for name, cells in TABLE.items()
    for (model, seq_len), gflop in zip(COLUMNS, cells, strict=True)
    if gflop is not None
]


@pytest.mark.parametrize(("name", "model", "seq_len", "gflop"), CELLS)
def test_a_tool_counts_the_model_as_worked_out(name, model, seq_len, gflop):
    assert flops_per_token(by_name(model), seq_len, name) / 1e9 == pytest.approx(gflop, rel=2.5e-4)


def test_the_multi_token_prediction_block_adds_four_percent_to_deepseek_v3():
    shape = replace(by_name("deepseek-v3"), mtp_layers=1)

    assert flops_per_token(shape, 4096) / 1e9 == pytest.approx(259.99, abs=0.01)
    assert flops_per_token(shape, 4096, "mcore_causal_nomtp") / 1e9 == pytest.approx(249.81, abs=0.01)


def test_equation_3_of_2021_holds_a_second_forward_pass():
    assert flops_per_token(by_name("gpt-3-175b"), 2048, "eq3") / 1e9 == pytest.approx(1434.00, abs=0.01)
    assert convention("eq3").counts_recompute
    assert not convention("causal").counts_recompute


def test_llama_factory_takes_every_mlp_for_gated():
    assert flops_per_token(by_name("gpt-3-175b"), 2048, "llama_factory") / 1e9 == pytest.approx(
        1422.4, rel=2e-3
    )


def test_an_unknown_convention_is_named_with_the_allowed_ones():
    with pytest.raises(ValueError, match="convention is 'megatron'; allowed: causal, full, palm"):
        flops_per_token(by_name("llama-3-8b"), 8192, "megatron")


@pytest.mark.parametrize("seq_len", [0, -1, float("nan")])
def test_a_sequence_length_below_one_is_refused(seq_len):
    with pytest.raises(ValueError, match="seq_len is"):
        flops_per_token(by_name("llama-3-8b"), seq_len)


def test_every_convention_says_how_it_counts_and_where_it_is_from():
    for name, entry in CONVENTIONS.items():
        assert entry.name == name
        assert entry.formula
        assert entry.source
        assert entry.tag == f"{name}: {entry.attention} attention, embeddings {entry.embeddings}"


def test_the_shape_is_importable_beside_the_count():
    assert ModelShape.__module__ == "flopwatch.shape"
