"""Doubts about an MFU, and the factor that explains each."""

import pytest
from tests.unit.flopwatch.published_mfu import ROWS, names

from flopwatch.accelerators import by_name, by_product
from flopwatch.exact import Run
from flopwatch.flops import Documents, ModelShape, flops_per_token
from flopwatch.mfu_findings import Evidence, Hypothesis, explain, findings
from flopwatch.mfu_hypotheses import Counted, hypotheses
from flopwatch.model_names import by_name as model

H100 = by_name("NVIDIA H100 80GB HBM3")
PEAK = 989.4e12
EXPLAINED = [row for row in ROWS if "explanation" in row]
REASONS = {
    "source constant too high": "grouped_queries_ignored",
    "printed tokens/s corresponds to batch 512": "factor_two",
    "BF16 run divided by the FP8 peak": "fp8_peak",
    "implied 27": "gate_ignored",
    "implied 30.7": "matmul_only",
    "published value fits the count without the MTP layer": "mcore_causal_nomtp",
    "published TFLOP/s is half of 6N+12LHQT": "palm",
}


def counted(shape, seq_len=8192, convention="causal"):
    run = Run(seq_len=seq_len, documents=Documents.unpacked(seq_len))
    return Counted(shape=shape, run=run, convention=convention)


def found_with(factor, shape=None, **known):
    shape = shape or model("llama-3-8b")
    guesses = hypotheses(counted(shape), accelerator=H100, dtype="bf16", **known)
    return findings(0.4, 0.4 * PEAK, PEAK, Evidence(reported_ratio=0.4 * factor, hypotheses=guesses))


def codes(finding):
    return [[guess.code for guess in group] for group in finding.explained_by]


@pytest.mark.parametrize("row", EXPLAINED, ids=names(EXPLAINED))
def test_a_published_figure_that_is_wrong_is_found_with_its_reason(row):
    shape, peak = ModelShape.from_dict(row["model"]), row["peak_tflops_used"] * 1e12
    guesses = hypotheses(
        counted(shape, row["seq_len"], row["formula_convention"]),
        accelerator=by_product(row["gpu"]) or by_product("B200 (HGX/DGX)"),
        dtype=row["dtype"],
    )
    ours = row["recomputed"]["tflops_per_gpu"] * 1e12
    percent, tflops = row["published_mfu_pct"], row["published_tflops_per_gpu"]
    evidence = Evidence(
        reported_ratio=None if percent is None else percent / 100,
        reported_flops_per_gpu=None if tflops is None else tflops * 1e12,
        hypotheses=guesses,
    )

    (finding,) = findings(ours / peak, ours, peak, evidence)

    reason = next(code for words, code in REASONS.items() if row["explanation"].startswith(words))
    assert reason in [code for group in codes(finding) for code in group]


def test_a_figure_like_the_trainers_is_no_finding():
    assert found_with(1.0) == ()
    assert found_with(1.01) == ()


def test_a_sparse_peak_halves_the_trainers_figure():
    (finding,) = found_with(0.5)

    assert finding.code == "mfu_differs"
    assert finding.factor == pytest.approx(0.5)
    assert ["sparse_peak"] in codes(finding)
    assert "the sparse peak taken as dense (2x)" in finding.text


def test_causal_attention_counted_in_full_is_named():
    shape = model("llama-3-8b")
    factor = flops_per_token(shape, 8192, "full") / flops_per_token(shape, 8192)

    assert codes(found_with(factor)[0])[0] == ["full"]


def test_recompute_counted_as_work_is_named():
    assert ["recompute"] in codes(found_with(4 / 3)[0])


def test_a_lora_run_counted_as_full_training_is_named():
    shape = model("llama-3-8b").with_lora(16, frozenset({"q", "v"}))
    factor = flops_per_token(model("llama-3-8b"), 8192) / flops_per_token(shape, 8192)

    (finding,) = found_with(factor, shape)

    assert 1.3 < factor < 1.5
    assert ["lora"] in codes(finding)


def test_a_factor_of_one_and_a_half_suggests_lora_where_nobody_said_so():
    assert ["lora"] in codes(found_with(1.5)[0])


def test_padding_counted_as_work_is_named_with_its_factor():
    (finding,) = found_with(1.25, tokens=800, padded_tokens=1000)

    assert ["padded_tokens"] in codes(finding)
    assert "padding counted as work (1.250)" in finding.text


def test_the_a100_fallback_is_named_as_the_wrong_device():
    (finding,) = found_with(PEAK / 312e12)

    assert ["a100_fallback"] in codes(finding)
    assert "wrong device: the A100's 312 TFLOP/s" in finding.text


def test_a_sibling_with_a_similar_name_is_named_as_the_wrong_device():
    (finding,) = found_with(PEAK / 756.5e12)

    assert "wrong device: the peak of H100 PCIe (756.5 TFLOP/s)" in finding.text


def test_two_causes_at_once_are_named_together():
    shape = model("mixtral-8x7b")
    full = flops_per_token(shape, 8192, "full") / flops_per_token(shape, 8192)

    assert {"full", "a100_fallback"} in [
        set(group) for group in codes(found_with(full * PEAK / 312e12, shape)[0])
    ]


def test_a_factor_that_nothing_explains_says_so():
    (finding,) = found_with(7.77)

    assert finding.explained_by == ()
    assert finding.text == "the trainer prints 7.770 times this MFU: no known cause fits"


def test_an_mfu_above_one_is_the_first_finding():
    found = findings(1.2, 1.2 * PEAK, PEAK, Evidence(tensor_active_ratio=0.5))

    assert [finding.code for finding in found] == ["above_peak", "above_tensor_activity"]
    assert "MFU is 120.0%, above 100 %" in found[0].text
    assert found[1].factor == pytest.approx(2.4)


@pytest.mark.parametrize(("active", "count"), [(0.39, 0), (0.41, 0), (0.3, 1), (None, 0), (0.0, 0)])
def test_an_mfu_above_tensor_activity_is_found_beyond_the_windows_margin(active, count):
    found = findings(0.4, 0.4 * PEAK, PEAK, Evidence(tensor_active_ratio=active))

    assert len(found) == count


def test_the_trainers_own_peak_is_told_apart_from_its_count():
    guesses = hypotheses(counted(model("llama-3-8b")), accelerator=H100, dtype="bf16")
    evidence = Evidence(
        reported_ratio=0.2 * 61.07 / 51.47,
        reported_flops_per_gpu=0.4 * PEAK * 61.07 / 51.47,
        hypotheses=guesses,
    )

    peaks, counts = findings(0.4, 0.4 * PEAK, PEAK, evidence)

    assert (peaks.code, counts.code) == ("peak_differs", "flops_differ")
    assert ["sparse_peak"] in codes(peaks)
    assert ["palm"] in codes(counts)
    assert "divides by 1978.8 TFLOP/s, not by 989.4" in peaks.text


def test_a_printed_peak_of_no_device_says_so():
    guesses = hypotheses(None, accelerator=H100)

    (finding,) = findings(0.4, 0.4 * PEAK, PEAK, Evidence(reported_peak_flops=1234e12, hypotheses=guesses))

    assert finding.text.endswith("a peak of no device in the table")


def test_without_a_shape_the_factors_that_need_none_remain():
    assert {guess.code for guess in hypotheses(None)} == {"recompute", "lora", "factor_two"}


def test_a_device_without_a_peak_gives_no_guesses_of_peaks():
    found = hypotheses(None, accelerator=by_name("NVIDIA B100"))

    assert {guess.kind for guess in found} == {"count", "tokens"}


def test_one_cause_is_preferred_to_two():
    one, two = (
        Hypothesis(code=code, factor=factor, text=code) for code, factor in (("one", 2.0), ("two", 1.5))
    )
    peak = Hypothesis(code="peak", factor=4 / 3, text="peak", kind="peak")

    assert explain(2.0, [one, two, peak]) == ((one,),)
    assert explain(8 / 3, [one, two, peak]) == ((one, peak),)
    assert explain(3.0, [one, two, peak]) == ()
