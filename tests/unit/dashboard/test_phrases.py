import dataclasses
from typing import Any

import pytest
from tests.fixtures import dashboard_cluster as cluster

from flopwatch.query import Cause, Target
from flopwatch_dashboard.components import phrases, spark, verdict
from flopwatch_dashboard.view import View

ENGLISH, CHINESE = View(), View(lang="zh")


def test_a_cause_is_a_sentence_with_its_values() -> None:
    hang = Cause(code="hang", severity="critical", values={"hours": 9.54})

    assert phrases.cause(hang, ENGLISH) == "No step for 9.5 h"
    assert phrases.cause(hang, CHINESE) == "训练无进展 9.5 小时"


def test_a_cause_of_an_unknown_code_or_without_its_value_still_reads() -> None:
    assert phrases.cause(Cause(code="new_code", severity="info", values={}), ENGLISH) == "No single cause"
    assert (
        phrases.cause(Cause(code="straggler", severity="warning", values={}), ENGLISH) == "Straggler on n/a"
    )


def test_an_alert_says_its_rule_with_its_values() -> None:
    low = cluster.ALERTS[2]

    assert phrases.alert(low, ENGLISH) == "vit-g-pre/08: MFU 30.8% below target 42%"
    assert phrases.alert(low, CHINESE) == "vit-g-pre/08：MFU 30.8% 低于目标 42%"  # noqa: RUF001 - Chinese punctuation


def test_alerts_say_how_many_gpus_and_how_long() -> None:
    idle, hang, _, down, _ = cluster.ALERTS

    assert phrases.alert(idle, ENGLISH) == "dlrm-v4/run-2: 256 GPUs held idle for 5.2 h"
    assert phrases.alert(hang, ENGLISH) == "whisper-xl/ft3: no training progress, 64 GPUs wait"
    assert phrases.alert(down, CHINESE).endswith("gpu-n402 停机：8 卡")  # noqa: RUF001 - Chinese punctuation


def test_an_alert_of_an_unknown_rule_or_without_its_values_says_its_own_summary() -> None:
    bare = dataclasses.replace(cluster.ALERTS[2], values={})

    assert phrases.alert(cluster.ALERTS[4], ENGLISH) == "QuotaUnused on research"
    assert phrases.alert(bare, ENGLISH) == bare.summary


def test_an_mfu_comes_with_its_basis_and_convention_or_with_the_reason_for_none() -> None:
    assert phrases.basis(cluster.mfu(0.4, 8), ENGLISH) == "shape"
    long = "From step records and the model's shape · causal"
    assert phrases.basis_long(cluster.mfu(0.4, 8), ENGLISH) == long
    # 0.4 x 8 x 989.4e12 / 4.36e11 = 7,262 tokens a second.
    assert phrases.basis_hint(cluster.mfu(0.4, 8), ENGLISH) == (
        f"{long} · PaLM 42.4% · dense bf16 peak 989.4 TFLOP/s (from the log) · 7.3 k tokens/s"
    )
    assert (
        phrases.basis(cluster.mfu(None, 8, reason="unknown_gpu"), ENGLISH) == "GPU model without a known peak"
    )
    assert phrases.basis(cluster.mfu(None, 8, reason="something_new"), ENGLISH) == "no figure"
    assert phrases.basis(cluster.mfu(0.4, 8, basis="hardware"), ENGLISH) == "estimate"


def test_observed_gpus_are_said_when_they_are_not_all() -> None:
    partly = cluster.job_row(1, gpus=1_024, gpus_observed=800)

    assert phrases.gpus(partly, ENGLISH) == "800 of 1,024"
    assert phrases.gpus_long(partly, ENGLISH) == "observed 800 of 1,024 GPUs"
    assert phrases.gpus(cluster.job_row(0), ENGLISH) == "256"
    assert phrases.gpus_long(cluster.job_row(0, gpus=None), ENGLISH) == "256 GPUs observed, total unknown"


def test_no_target_is_said_and_not_guessed() -> None:
    assert phrases.target(Target(ratio=None, source="none"), ENGLISH) == "no target set"
    assert phrases.target(Target(ratio=0.425, source="job"), ENGLISH) == "42.5%"


def test_the_verdict_shows_its_arithmetic_with_the_numbers_filled_in() -> None:
    fleet = cluster.fleet(ENGLISH.asked, cluster.status())

    # 28 valid days, mean 62.5 %: 2.50 / 0.6245 = 4.00; 2.50 / 0.70 = 3.57.
    assert verdict.arithmetic(fleet, ENGLISH)[1:5] == [
        "Mean of the 28 valid days among the last 30: 62.5%",
        "The line is the default 70%: no costs of your own are set",
        "$2.50 a capacity GPU-hour (example) ÷ 62.5% = $4.00 a billable GPU-hour",
        "$2.50 (example) ÷ 70% = $3.57 at the line",
    ]


def test_the_arithmetic_says_where_the_verdict_stands_without_barely_used_time() -> None:
    fleet = cluster.fleet(ENGLISH.asked, cluster.status())
    stricter = dataclasses.replace(
        fleet.verdict, mean_30d_without_barely_used_ratio=0.412, code_without_barely_used="below_sustained"
    )

    lines = verdict.arithmetic(dataclasses.replace(fleet, verdict=stricter), ENGLISH)

    assert lines[2] == (
        "Without work below 5% SM activity the mean is 41.2%: "
        + ENGLISH.t("verdict.below_sustained", line="70%")
    )


def test_a_sparkline_breaks_at_gaps_and_needs_two_values() -> None:
    drawn = spark.sparkline([0.1, 0.2, None, 0.3, 0.4], "#000000")

    assert drawn is not None
    assert drawn.count("polyline") == 2
    assert spark.sparkline([None, 0.3, None], "#000000") is None
    assert spark.sparkline([], "#000000") is None


ESTIMATE = cluster.mfu(
    0.48,
    8,
    basis="hardware",
    convention="hardware",
    reason="no_steps",
    palm_ratio=None,
    clock_basis="peak_clock",
)


def test_an_estimate_is_about_and_says_what_it_is_not() -> None:
    assert phrases.ratio(ESTIMATE) == "≈ 48.0%"
    assert phrases.ratio(cluster.mfu(0.48, 8)) == "48.0%"
    assert phrases.basis(ESTIMATE, ENGLISH) == "estimate"
    assert phrases.basis(ESTIMATE, CHINESE) == "估算"
    assert "in no average of measured MFU" in phrases.basis_hint(ESTIMATE, ENGLISH)
    assert "dense bf16 peak" not in phrases.basis_hint(ESTIMATE, ENGLISH)


def test_an_fp8_run_is_labelled_with_both_peaks() -> None:
    figure = cluster.mfu(0.4, 8, run_dtype="fp8", run_dtype_peak_flops=1978.9e12, run_dtype_ratio=0.2)

    assert "20.0% against the dense fp8 peak" in phrases.basis_hint(figure, ENGLISH)
    assert "按稠密 fp8 峰值为 20.0%" in phrases.basis_hint(figure, CHINESE)


def test_a_vision_tower_that_is_not_counted_is_named() -> None:
    figure = cluster.mfu(0.4, 8, left_out=("vision",))

    assert phrases.basis_hint(figure, ENGLISH).endswith(
        "not counted, because its tokens are not known: vision tower"
    )


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([], "no known cause fits"),
        ([[{"code": "sparse_peak", "factor": 0.5, "subject": ""}]], "the sparse peak taken as dense (2×)"),  # noqa: RUF001 - as shown
        (
            [[{"code": "wrong_device", "factor": 1.18, "subject": "H100 NVL"}], [{"code": "recompute"}]],
            "wrong device: the peak of H100 NVL, or activation recompute counted as work (4/3)",
        ),
        (
            [[{"code": "a100_fallback", "factor": 3.17}, {"code": "padded_tokens", "factor": 1.1834}]],
            "wrong device: the A100's 312 TFLOP/s, which tools fall back to and padding counted as work (1.18)",
        ),
        (
            [[{"code": "window_ignored", "factor": 1.9, "subject": "full"}]],
            "sliding windows counted as causal attention, attention in full",
        ),
        ([[{"code": "of_a_newer_collector", "factor": 2.0}]], "of_a_newer_collector"),
    ],
)  # fmt: skip
def test_what_explains_a_difference_is_said_in_words(groups: list[Any], words: str) -> None:
    assert phrases.explanation(groups, ENGLISH) == words
