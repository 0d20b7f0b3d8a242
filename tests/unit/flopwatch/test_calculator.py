"""``flopwatch mfu``: figures, arithmetic, other conventions, and wrong use."""

import json

import pytest
from tests.unit.flopwatch.hf_configs import DEEPSEEK_V3, LLAMA_3_8B, LLAVA_1_5_7B

from flopwatch.calculator import main

RUN = [
    "--model", "llama-3-8b", "--gpu", "NVIDIA H100 80GB HBM3", "--gpus", "64", "--seq-len", "8192",
    "--global-batch", "512", "--step-time", "6.2",
]  # fmt: skip


def answer(capsys, *more, base=RUN):
    assert main([*base, *more]) == 0
    return capsys.readouterr().out


def values(capsys, *more, base=RUN):
    return json.loads(answer(capsys, "--json", *more, base=base))


def refusal(capsys, *options):
    assert main([*RUN, *options]) == 2
    return capsys.readouterr().err


def test_the_figure_is_worked_out_from_batch_and_step_time(capsys):
    found = values(capsys)

    tokens = 512 * 8192 / 6.2
    assert found["tokens_per_second"] == pytest.approx(tokens)
    assert found["flops_per_token"] == 51_470_401_536
    assert found["mfu_ratio"] == pytest.approx(51_470_401_536 * tokens / (64 * 989.4e12))
    assert found["palm_mfu_ratio"] == pytest.approx(0.6524, abs=1e-4)
    assert (found["convention"], found["peak_dtype"], found["peak_is_dense"]) == ("causal", "bf16", True)
    assert found["peak_flops"] == 989.4e12


def test_every_convention_is_listed_with_what_makes_it_differ(capsys):
    rows = {row["convention"]: row for row in values(capsys)["conventions"]}

    assert rows["palm"]["against_chosen"] == pytest.approx(1.186, abs=1e-3)
    assert rows["full"]["flops_per_token"] == 57_912_852_480
    assert rows["eq3"]["counts_recompute"]
    assert all(row["formula"] and row["source"] for row in rows.values())


def test_the_text_shows_figure_tag_arithmetic_standing_and_table(capsys):
    text = answer(capsys, "--recompute", "full")

    assert "llama-3-8b on 64 x NVIDIA H100 80GB HBM3 (H100 SXM)" in text
    assert (
        "MFU 55.0%   [causal: causal attention, embeddings excluded; dense bf16 peak 989.4 TFLOP/s]" in text
    )
    assert "HFU 73.3%   [full recompute counted as work; never an MFU]" in text
    assert "51.470 GFLOP a trained token" in text
    assert "x 676,501 tokens/s" in text
    assert "/ (64 GPUs x 989.4 TFLOP/s)   = 0.5499" in text
    assert "reaches only 78% to 87% of a GPU's dense peak" in text
    assert "GPU-Util of nvidia-smi says only that some kernel was resident" in text
    assert "  palm                       61.07 GFLOP/token    65.2%    +18.6%" in text


def test_a_rate_may_stand_for_batch_and_step_time(capsys):
    base = [*RUN[:8], "--tokens-per-second", "640000"]

    assert values(capsys, base=base)["mfu_ratio"] == pytest.approx(0.5202, abs=1e-4)


def test_fp8_stands_against_both_peaks(capsys):
    found = values(capsys, "--dtype", "mxfp8")

    assert found["peak_dtype"] == "fp8"
    assert found["mfu_ratio"] == pytest.approx(0.5499 * 989.4 / 1978.9, abs=1e-4)
    assert found["mfu_ratio_against_bf16_peak"] == pytest.approx(0.5499, abs=1e-4)
    assert "dense bf16 peak instead" in answer(capsys, "--dtype", "fp8")


def test_what_the_trainer_prints_is_explained(capsys):
    found = values(capsys, "--reported-mfu", "27.5")

    assert found["findings"][0]["explained_by"][:1] == [["sparse_peak"]]
    assert "Finding: the trainer prints 0.500 times this MFU" in answer(capsys, "--reported-mfu", "27.5")


def test_the_trainers_flops_are_explained(capsys):
    found = values(capsys, "--reported-tflops", str(544.1 * 57.91 / 51.47))

    assert found["findings"][0]["code"] == "flops_differ"
    assert ["full"] in found["findings"][0]["explained_by"]


def test_lora_documents_and_another_convention_change_the_count(capsys):
    assert values(capsys, "--lora-rank", "16")["mfu_ratio"] / values(capsys)["mfu_ratio"] == pytest.approx(
        0.71, abs=0.01
    )
    packed = values(capsys, "--documents", f"8192,{8 * 1024 * 1024}")["flops_per_token"]
    assert packed / 51_470_401_536 == pytest.approx(0.89, abs=0.005)
    assert values(capsys, "--convention", "palm")["mfu_ratio"] == values(capsys)["palm_mfu_ratio"]


def test_a_config_file_is_read(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_3_8B))
    base = ["--model", str(path), *RUN[2:]]

    assert values(capsys, base=base)["flops_per_token"] == 51_470_401_536
    assert values(capsys, base=base)["model"] is None


def test_a_shape_file_is_read(capsys, tmp_path):
    path = tmp_path / "shape.json"
    path.write_text(json.dumps(values(capsys)["shape"]))

    assert values(capsys, base=["--model", str(path), *RUN[2:]])["flops_per_token"] == 51_470_401_536


def test_multi_token_prediction_is_switched_on(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(DEEPSEEK_V3))
    base = ["--model", str(path), *RUN[2:6], "--seq-len", "4096", *RUN[8:]]

    assert values(capsys, base=base)["flops_per_token"] == 249_811_304_448
    assert values(capsys, "--mtp", base=base)["flops_per_token"] == 259_992_059_904


def test_a_vision_tower_needs_its_tokens(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAVA_1_5_7B))
    base = ["--model", str(path), *RUN[2:]]

    assert main(base) == 2
    assert "stacks.vision is None" in capsys.readouterr().err
    assert values(capsys, "--stack", "vision=0.1:577", base=base)["mfu_ratio"] > 0


def test_a_product_name_and_a_peak_of_ones_own_are_taken(capsys):
    assert values(capsys, "--gpu", "H100 SXM")["mfu_ratio"] == values(capsys)["mfu_ratio"]
    found = values(capsys, "--gpu", "Ascend 910C", "--peak-tflops", "780")
    assert (found["peak_flops"], found["peak_source"]) == (780e12, "site setting")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "llama-9"], "--model is 'llama-9'"),
        (["--gpu", "NVIDIA H900"], "--gpu is 'NVIDIA H900', which no table has"),
        (
            ["--gpu", "Tesla V100-SXM2-32GB"],
            "for which V100 SXM2 has no verified dense peak; allowed: fp64, fp32, fp16",
        ),
        (["--gpu", "NVIDIA B100"], "allowed: none, or --peak-tflops"),
        (["--dtype", "posit8"], "--dtype is 'posit8'"),
        (["--step-time", "0"], "--step-time is 0.0; allowed: above 0"),
        (["--global-batch", "-1"], "--global-batch is -1.0"),
        (["--tokens-per-second", "0"], "--tokens-per-second is 0.0"),
        (["--gpus", "0"], "gpus is 0"),
        (["--seq-len", "0"], "--seq-len is 0"),
        (["--documents", "8192"], "--documents is '8192'"),
        (["--stack", "vision"], "--stack is 'vision'"),
        (["--lora-rank", "0"], "adapter_rank is 0"),
        (["--peak-tflops", "-5"], "peak of 'NVIDIA H100 80GB HBM3'"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(capsys, options, words):
    assert words in refusal(capsys, *options)


def test_a_file_that_is_no_model_is_refused(capsys, tmp_path):
    for text, words in (("[1]", "a JSON file that holds an object"), ("{", "a JSON file (")):
        path = tmp_path / "broken.json"
        path.write_text(text)
        assert words in refusal(capsys, "--model", str(path))


def test_batch_or_rate_is_needed(capsys):
    assert main(RUN[:8]) == 2
    assert "--global-batch and --step-time are needed, or --tokens-per-second" in capsys.readouterr().err
