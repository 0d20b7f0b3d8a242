"""The published rows of tests/fixtures, and the throughput each of them prints or implies."""

import json
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parents[2] / "fixtures" / "published_mfu.json"
ROWS: list[dict[str, Any]] = json.loads(FIXTURE.read_text(encoding="utf-8"))
THROUGHPUT = [row for row in ROWS if row["check"] == "throughput"]
GOLDEN = [row for row in THROUGHPUT if row["within_1pp"] and row["verified"]]
RATIO = [row for row in ROWS if row["check"] == "ratio" and row["within_1pp"]]


def names(rows: list[dict[str, Any]]) -> list[str]:
    """Test ids."""
    return [row["id"] for row in rows]


def printed_throughput(row: dict[str, Any]) -> float:
    """Tokens/s of a GPU as printed, else from batch and step time."""
    return row["tokens_per_s_per_gpu"] or tokens_per_second_per_gpu(row)


def tokens_per_second_per_gpu(row: dict[str, Any]) -> float:
    """Tokens/s of a GPU from batch and step time where both are printed (the recomputed way), else as printed."""
    batch = row["global_batch"]
    if batch is not None and row["step_time_s"] is not None:
        tokens = batch["value"] * (row["seq_len"] if batch["unit"] == "sequences" else 1)
        return tokens / row["step_time_s"] / row["n_gpus"]
    return row["tokens_per_s_per_gpu"]


def rounding(row: dict[str, Any], tflops: float) -> float:
    """How far two decimals, and the printed throughput's two decimals, may move a TFLOP/s."""
    return 0.0051 + tflops * 0.0051 / tokens_per_second_per_gpu(row)


def trained_share(row: dict[str, Any]) -> float:
    """Share of the full-training count that the row's source multiplies by: two thirds for LoRA."""
    return 2 / 3 if "LoRA" in row.get("note", "") else 1.0
