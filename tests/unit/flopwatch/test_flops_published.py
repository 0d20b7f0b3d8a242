"""Every published row that can be recomputed, in the convention of its source."""

import pytest
from tests.unit.flopwatch.published_mfu import (
    GOLDEN,
    RATIO,
    THROUGHPUT,
    names,
    printed_throughput,
    rounding,
    tokens_per_second_per_gpu,
    trained_share,
)

from flopwatch.flops import ModelShape, flops_per_token, hardware_flops_per_token

CHECKPOINTED = [row for row in GOLDEN if "activation checkpointing True" in row.get("note", "")]
NOT_CHECKPOINTED = [row for row in GOLDEN if "activation checkpointing False" in row.get("note", "")]
SELECTIVE = [
    row for row in GOLDEN if row["formula_convention"] == "k22" and row["published_hfu_pct"] is not None
]
WITH_RECOMPUTE = [row for row in GOLDEN if row["published_counts_recompute"]]
WITH_MFU = [row for row in GOLDEN if row["published_mfu_pct"] is not None]
WITH_TFLOPS = [
    row for row in GOLDEN if row["published_tflops_per_gpu"] is not None and row not in CHECKPOINTED
]
WITH_BOTH_COUNTS = [row for row in THROUGHPUT if "recomputed_palm" in row]


def tflops_per_gpu(row, convention):
    shape = ModelShape.from_dict(row["model"])
    return flops_per_token(shape, row["seq_len"], convention) * tokens_per_second_per_gpu(row) / 1e12


def published_way(row):
    shape = ModelShape.from_dict(row["model"])
    flops = flops_per_token(shape, row["seq_len"], row["formula_convention"]) * trained_share(row)
    return flops * printed_throughput(row) / 1e12


@pytest.mark.parametrize("row", THROUGHPUT, ids=names(THROUGHPUT))
def test_the_count_per_token_is_the_recomputed_one_to_the_last_flop(row):
    shape = ModelShape.from_dict(row["model"])

    flops = flops_per_token(shape, row["seq_len"], row["formula_convention"]) * trained_share(row)

    assert flops == pytest.approx(row["recomputed"]["flops_per_token"], rel=1e-11, abs=0.5)


@pytest.mark.parametrize("row", WITH_MFU, ids=names(WITH_MFU))
def test_the_published_mfu_is_within_one_percentage_point(row):
    tflops = published_way(row)

    assert 100 * tflops / row["peak_tflops_used"] == pytest.approx(row["published_mfu_pct"], abs=1.0)


@pytest.mark.parametrize("row", WITH_TFLOPS, ids=names(WITH_TFLOPS))
def test_the_published_flops_per_second_are_within_one_percentage_point_of_the_peak(row):
    tflops = published_way(row)

    assert tflops == pytest.approx(row["published_tflops_per_gpu"], abs=row["peak_tflops_used"] / 100)


@pytest.mark.parametrize("row", WITH_BOTH_COUNTS, ids=names(WITH_BOTH_COUNTS))
def test_the_default_count_of_the_same_throughput_is_the_recomputed_one(row):
    expected = row["recomputed_causal_exact"]["tflops_per_gpu"]

    assert tflops_per_gpu(row, "causal") == pytest.approx(expected, abs=rounding(row, expected))


@pytest.mark.parametrize("row", WITH_BOTH_COUNTS, ids=names(WITH_BOTH_COUNTS))
def test_the_palm_count_of_the_same_throughput_is_the_recomputed_one(row):
    expected = row["recomputed_palm"]["tflops_per_gpu"]

    assert tflops_per_gpu(row, "palm") == pytest.approx(expected, abs=rounding(row, expected))


def hfu_percent(row, recompute):
    shape = ModelShape.from_dict(row["model"])
    flops = hardware_flops_per_token(shape, row["seq_len"], recompute, row["formula_convention"])
    return 100 * flops * tokens_per_second_per_gpu(row) / 1e12 / row["peak_tflops_used"]


@pytest.mark.parametrize("row", CHECKPOINTED, ids=names(CHECKPOINTED))
def test_hfu_of_a_checkpointed_run_is_the_published_one(row):
    assert hfu_percent(row, "full") == pytest.approx(row["published_hfu_pct"], abs=1.0)


@pytest.mark.parametrize("row", NOT_CHECKPOINTED, ids=names(NOT_CHECKPOINTED))
def test_hfu_without_recompute_is_the_mfu(row):
    assert hfu_percent(row, "none") == pytest.approx(row["published_hfu_pct"], abs=1.0)


@pytest.mark.parametrize("row", SELECTIVE, ids=names(SELECTIVE))
def test_hfu_of_selective_recompute_is_the_papers(row):
    assert hfu_percent(row, "selective") == pytest.approx(row["published_hfu_pct"], abs=0.1)


@pytest.mark.parametrize("row", WITH_RECOMPUTE, ids=names(WITH_RECOMPUTE))
def test_a_convention_that_holds_recompute_gives_hfu_whatever_is_asked(row):
    assert hfu_percent(row, "full") == hfu_percent(row, "none")
    assert hfu_percent(row, "none") == pytest.approx(row["recomputed"]["hfu"], abs=0.02)


@pytest.mark.parametrize("row", RATIO, ids=names(RATIO))
def test_a_row_without_throughput_is_its_flops_over_its_peak(row):
    published = row["published_mfu_pct"] if row["published_mfu_pct"] is not None else row["published_hfu_pct"]

    assert 100 * row["published_tflops_per_gpu"] / row["peak_tflops_used"] == pytest.approx(
        published, abs=1.0
    )


def test_the_fixture_holds_the_rows_these_tests_are_about():
    assert len(GOLDEN) == 576
    assert len(RATIO) == 52
    assert (len(CHECKPOINTED), len(SELECTIVE), len(WITH_RECOMPUTE)) == (57, 3, 11)
