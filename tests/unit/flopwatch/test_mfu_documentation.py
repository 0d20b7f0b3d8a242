"""The tables of docs/mfu.md say what the code does."""

from pathlib import Path
from statistics import median_high

import pytest
from tests.unit.flopwatch.published_mfu import ROWS, printed_throughput, trained_share

from flopwatch.conventions import CONVENTIONS
from flopwatch.flops import ModelShape, flops_per_token

TEXT = (Path(__file__).parents[3] / "docs" / "mfu.md").read_text(encoding="utf-8")
ROUNDING = 0.005


def published_percent(row):
    if row["published_mfu_pct"] is not None:
        return row["published_mfu_pct"]
    if row["check"] == "ratio" and row["published_hfu_pct"] is not None:
        return row["published_hfu_pct"]
    tflops = row["published_tflops_per_gpu"]
    return None if tflops is None or row["check"] == "ratio" else 100 * tflops / row["peak_tflops_used"]


def own_percent(row):
    if row["check"] == "ratio":
        return 100 * row["published_tflops_per_gpu"] / row["peak_tflops_used"]
    flops = flops_per_token(ModelShape.from_dict(row["model"]), row["seq_len"], row["formula_convention"])
    return 100 * flops * trained_share(row) * printed_throughput(row) / 1e12 / row["peak_tflops_used"]


def table_cells():
    cells = []
    for group in dict.fromkeys(row["group"] for row in ROWS):
        rows = [row for row in ROWS if row["group"] == group]
        errors = [
            abs(own_percent(row) - published_percent(row))
            for row in rows
            if published_percent(row) is not None
        ]
        within = sum(error <= 1 + ROUNDING for error in errors)
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(row["formula_convention"] for row in rows))
        cells.append(f"| {len(rows)} | {len(errors)} | {within} | {median_high(errors):.2f} | {names} |")
    return cells


def test_the_table_of_published_results_is_the_recomputed_one():
    lines = TEXT.split("| source | rows |")[1].splitlines()[2:]
    sources = [line for line in lines if line.startswith("| ")]

    assert ["|" + line.split("|", 2)[2] for line in sources[:-1]] == table_cells()
    assert sources[-1] == "| **all** | **675** | **672** | **631** | | |"


@pytest.mark.parametrize("name", CONVENTIONS)
def test_each_convention_is_documented_with_its_formula_and_source(name):
    entry = CONVENTIONS[name]

    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{name}` |")]
    assert f"`{entry.formula}`" in line
    assert entry.source in line
    assert f"| {entry.attention} | {entry.embeddings} | {'yes' if entry.counts_recompute else 'no'} |" in line
