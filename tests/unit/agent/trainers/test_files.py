"""Files with a structure of their own: JSON lines, tables, the file of a W&B run."""

# ruff: noqa: E501 - records are as long as they are

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from flopwatch_agent.trainers.reader import LogReader, parse_whole
from flopwatch_agent.trainers.rows import Parsed

RUN_FILE = Path(__file__).parents[3] / "fixtures" / "trainer_logs" / "real_wandb_run.wandb"


def lines(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def times(parsed: Parsed) -> list[tuple[int, float | None, str]]:
    return [
        (row.step, None if row.step_seconds is None else round(row.step_seconds, 6), row.basis)
        for row in parsed.steps
    ]


JSON_LINES = {
    "torchtitan's log file": (
        lambda n: {"step": 10 * n, "loss_metrics/global_avg_loss": 7.1, "time_metrics/end_to_end(s)": 1.25},
        "torchtitan", [(10, 1.25, "printed"), (20, 1.25, "printed")],
    ),
    "MaxText's metrics file": (
        lambda n: {"step": float(n), "learning/loss": 7.1, "perf/step_time_seconds": 1.25},
        "MaxText", [(1, 1.25, "printed"), (2, 1.25, "printed")],
    ),
    "MMEngine's scalars": (
        lambda n: {"lr": 3e-4, "data_time": 0.01, "loss": 1.2, "time": 1.21, "iter": 10 * n, "step": 10 * n},
        "XTuner", [(10, 1.21, "printed"), (20, 1.21, "printed")],
    ),
    "fairseq without a prefix": (
        lambda n: {"epoch": 1, "loss": "2.1", "wps": "1000", "wpb": "2000", "num_updates": str(n)},
        "fairseq", [(1, 2.0, "derived_tokens"), (2, 2.0, "derived_tokens")],
    ),
    "ms-swift on Megatron": (
        lambda n: {"loss": 2.1, "iteration": f"{n}/9", "elapsed_time": f"{10 * n}s", "train_speed(s/it)": 10.0},
        "ms-swift", [(1, 10.0, "derived_counter"), (2, 10.0, "derived_counter")],
    ),
    "HF Trainer in W&B": (
        lambda n: {"_step": n, "_timestamp": 1.75e9 + 20 * n, "train/loss": 1.2, "train/global_step": 10 * n},
        "Weights & Biases", [(10, None, "none"), (20, 2.0, "derived_timestamps")],
    ),
    "veRL in W&B": (
        lambda n: {"_step": n, "_timestamp": 1.75e9 + 20 * n, "timing_s/step": 20.5, "training/global_step": n},
        "Weights & Biases", [(1, 20.5, "printed"), (2, 20.5, "printed")],
    ),
    "nanotron in W&B, milliseconds": (
        lambda n: {"_step": n, "_timestamp": 1.75e9 + n, "lm_loss": 2.5, "iteration_step": n, "elapsed_time_per_iteration_ms": 812.5},
        "Weights & Biases", [(1, 0.8125, "printed"), (2, 0.8125, "printed")],
    ),
    "a loop of one's own, with a time of day": (
        lambda n: {"step": n, "loss": 2.1, "timestamp": f"2026-01-01T10:00:{10 + 3 * n}Z"},
        "JSON lines", [(1, None, "none"), (2, 3.0, "derived_timestamps")],
    ),
    "a loop of one's own, in milliseconds since 1970": (
        lambda n: {"step": n, "loss": 2.1, "timestamp": 1_750_000_000_000 + 2_500 * n},
        "JSON lines", [(1, None, "none"), (2, 2.5, "derived_timestamps")],
    ),
    "a loop of one's own, no time": (
        lambda n: {"step": n, "loss": 2.1}, "JSON lines", [(1, None, "none"), (2, None, "none")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JSON_LINES)
def test_records_of_json_give_rows(name: str) -> None:
    record, family, rows = JSON_LINES[name]
    parsed = parse_whole(lines(record(1), record(2)))

    assert parsed.family == family
    assert times(parsed) == rows


def test_records_that_are_no_steps_give_no_rows() -> None:
    records = lines(
        {"step": "checkout", "loss": "none"}, {"step": 1, "msg": "x"}, {"iter": 1, "time": 2.0},
        {"step": 3, "elapsed_seconds": 12}, {"step": True, "loss": 1.0}, {"_step": 4, "_timestamp": 1.7e9, "cpu": 0.5},
    )  # fmt: skip

    assert parse_whole(records).steps == ()


def test_a_trainer_that_prints_objects_among_other_lines_is_read() -> None:
    log = "loading data\n" + "".join(
        f'[rank0]: {{"step": {n}, "loss": 2.5, "step_time_s": 0.5}}\nsome words\n' for n in (1, 2)
    )

    assert times(parse_whole(log.encode())) == [(1, 0.5, "printed"), (2, 0.5, "printed")]


def test_a_structured_record_that_is_a_step_is_not_taken_for_its_message() -> None:
    records = lines(
        *({"level": "info", "msg": "trained", "step": n, "loss": 2.5, "time": 1.75e9 + 4 * n} for n in (1, 2))
    )

    assert times(parse_whole(records)) == [(1, None, "none"), (2, 4.0, "derived_timestamps")]


def test_objects_beside_another_trainers_lines_are_not_counted_again() -> None:
    line = (
        'iter {0}: loss 2.5, time 250.00ms, mfu 40.00%\n{{"step": {0}00, "loss": 2.5, "step_time_s": 0.5}}\n'
    )

    assert times(parse_whole((line.format(1) + line.format(2)).encode())) == [
        (1, 0.25, "printed"),
        (2, 0.25, "printed"),
    ]


TABLES = {
    "seconds": ("step,loss,step_time_s\n1,2.5,0.5\n2,2.4,0.6\n", [(1, 0.5, "printed"), (2, 0.6, "printed")]),
    "decimal commas": ("step;loss;step_time_s\n1;2,5;0,5\n2;2,4;0,6\n", [(1, 0.5, "printed"), (2, 0.6, "printed")]),
    "tabs and milliseconds": ("step\tloss\tstep_time_ms\n1\t2.5\t500\n2\t2.4\t600\n", [(1, 0.5, "printed"), (2, 0.6, "printed")]),
    "time of day": (
        "timestamp,step,loss\n2026-01-01T10:00:00,1,2.5\n2026-01-01T10:00:02,2,2.4\n",
        [(1, None, "none"), (2, 2.0, "derived_timestamps")],
    ),
    "Lightning, no time": ("epoch,step,train_loss\n0,9,2.5\n0,19,2.4\n", [(9, None, "none"), (19, None, "none")]),
    "not of training": ("step,name,status\n1,build,ok\n2,test,ok\n", []),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_gives_rows(name: str) -> None:
    text, rows = TABLES[name]

    assert times(parse_whole(text.encode())) == rows


def test_litgpts_table_counts_micro_batches_and_gives_no_row() -> None:
    parsed = parse_whole(b"epoch,iter,iter_time,loss,step\n0,1,0.35,10.1,0\n0,2,0.35,10.0,1\n")

    assert parsed.steps == ()
    assert [finding.code for finding in parsed.findings] == ["steps_are_micro_batches"]


def framed(payload: bytes, kind: int = 1) -> bytes:
    checksum = zlib.crc32(payload, zlib.crc32(bytes((kind,))))
    return struct.pack("<IHB", checksum, len(payload), kind) + payload


def field(number: int, value: bytes) -> bytes:
    """A length-delimited field of fewer than 128 bytes."""
    key = number << 3 | 2
    return (bytes((key,)) if key < 128 else bytes((key & 127 | 128, key >> 7))) + bytes((len(value),)) + value


def item(key: str, value: object) -> bytes:
    return field(1, field(2, key.encode()) + field(16, json.dumps(value).encode()))


def history(step: int) -> bytes:
    row = item("_step", step) + item("_timestamp", 1.75e9 + 2 * step) + item("loss", 2.5)
    return field(2, row)


HEADER = b":W&B\xe1\xbe\x00"


def test_the_file_of_a_run_is_read_however_it_arrives() -> None:
    data = RUN_FILE.read_bytes()
    reader = LogReader()
    for place in range(0, len(data), 997):
        reader.feed(data[place : place + 997])
    reader.finish()

    assert reader.everything() == parse_whole(data)


def test_the_configuration_in_the_file_of_a_run_is_its_shape() -> None:
    run = parse_whole(RUN_FILE.read_bytes()).runs[-1]

    assert run.shape is not None
    assert (run.shape["hidden"], run.shape["n_layers"], run.shape["vocab"]) == (256, 4, 1000)


def test_a_damaged_record_is_left_out_and_said() -> None:
    damaged = bytearray(framed(history(2)))
    damaged[-1] ^= 1
    parsed = parse_whole(
        HEADER + framed(history(1)) + bytes(damaged) + framed(history(3)) + framed(history(4))
    )

    assert [row.step for row in parsed.steps] == [1, 3, 4]
    assert [finding.code for finding in parsed.findings] == ["damaged_record"]


def test_a_record_in_parts_and_the_padding_of_a_block_are_read() -> None:
    whole = history(1)
    parts = framed(whole[:10], 2) + framed(whole[10:20], 3) + framed(whole[20:], 4)
    filled = 32_768 - len(HEADER + parts) - 7 - 3
    padding = framed(field(13, b"x") * (filled // 3) + b"\x68\x00"[: filled % 3], 1) + b"\0\0\0"
    parsed = parse_whole(HEADER + parts + padding + framed(history(2)))

    assert times(parsed) == [(1, None, "none"), (2, 2.0, "derived_timestamps")]


def test_a_cut_end_waits_for_its_rest() -> None:
    data = HEADER + framed(history(1)) + framed(history(2))
    reader = LogReader(kind="wandb")
    reader.feed(data[:-5])
    before = [row.step for row in reader.take().steps]
    reader.feed(data[-5:])

    assert (before, [row.step for row in reader.take().steps]) == ([1], [2])
