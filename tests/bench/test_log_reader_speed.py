"""The log reader over a gigabyte of other programs' text, beside ``grep -F`` of the same literals."""

import importlib.util
import resource
import subprocess
import time
from pathlib import Path

import pytest

from flopwatch_agent.trainers.prefilter import SIGNS
from flopwatch_agent.trainers.reader import LogReader

FIXTURES = Path(__file__).parents[1] / "fixtures"
BLOCK_BYTES = 16 << 20
BLOCKS = 64
LEAST_BYTES_PER_SECOND = 60e6


def unrelated(size: int, seed: int) -> bytes:
    spec = importlib.util.spec_from_file_location("unrelated_text", FIXTURES / "unrelated_text.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: bytes = module.unrelated(size, seed=seed)
    return text


def grep_seconds(text: Path, literals: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(["grep", "-c", "-F", "-f", literals, text], check=False, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def test_a_gigabyte_of_unrelated_text_gives_no_row_at_sixty_megabytes_a_second(tmp_path: Path) -> None:
    block = unrelated(BLOCK_BYTES, seed=21)
    text, literals = tmp_path / "text", tmp_path / "literals"
    text.write_bytes(block)
    literals.write_bytes(b"\n".join(sign.literal for sign in SIGNS))
    reader = LogReader()

    begin = time.process_time()
    for _ in range(BLOCKS):
        for place in range(0, len(block), 1 << 20):
            reader.feed(block[place : place + (1 << 20)], None)
    reader.finish()
    seconds = time.process_time() - begin

    rate = len(block) * BLOCKS / seconds
    grep_rate = len(block) / max(grep_seconds(text, literals), 1e-3)
    print(f"reader {rate / 1e6:.0f} MB/s of CPU time, grep -F of its literals {grep_rate / 1e6:.0f} MB/s")
    assert reader.everything().steps == ()
    assert rate >= LEAST_BYTES_PER_SECOND


def test_lines_made_of_signs_cost_no_more_than_two_seconds_a_megabyte() -> None:
    signs = (
        b"loss: 1.0 ", b"{'loss': 1.0, 'a': ", b"[epoch=1][batch=1/2]", b"step 1: train loss 2.0 ", b" a .. b",
        b"Resuming training from ", b"x=1,Args(", b"device mesh with parallelism: pp=1, ", b"loading checkpoint from ",
    )  # fmt: skip
    row = "iter {}: loss 2.5, time 250.00ms, mfu 40.00%\n"
    for sign in signs:
        line = (sign * 120_000)[:120_000] + b"\n"
        reader = LogReader()

        begin = time.process_time()
        reader.feed(row.format(1).encode() + line * 8 + row.format(2).encode(), None)
        reader.finish()
        seconds = time.process_time() - begin

        assert [item.step for item in reader.everything().steps] == [1, 2]
        assert seconds <= 2.0, sign


ROW = "iter {}: loss 2.5, time 250.00ms, mfu 40.00%\n"
MEBIBYTE = 1 << 20
LINES: dict[str, str] = {
    "a dict that stays open": "{{'loss': 1.0, 'a': {{\n",
    "an open brace": "{{'a':\n",
    "a training bar": "Training: 10%|# | {n}/100000 [00:10<10:00, 1.00it/s, loss=2.0]\r",
    "a bar without a description": " 10%|# | {n}/100000 [00:10<10:00, 1.00it/s]\r",
    "an argument": "  num_layers_{n} .................... {n}\n",
    "the shortest argument": " a .. b\n",
    "an overflow": "OVERFLOW!\n",
    "a count of parameters": "parameters {n}\n",
    "a loss alone": "loss: 1.{n}\n",
    "half a row": "step: {n} loss: 1.0\n      grad_norm: 1.0\n",
    "a launch": "***** Running training *****\n  Num Epochs = {n}\n",
    "a step of JSON": '{{"step": {n}, "loss": 1.0}}\n',
    "a line that docker cut": '{{"log":"loss: 1.{n}","stream":"stdout","time":"2026-01-01T00:00:00Z"}}\n',
    "a step that goes back and forth": "iter {n}1: loss 2.5, time 250.00ms\niter {n}: loss 2.5, time 250.00ms\n",
    "a row of each step": ROW.replace("{}", "{n}"),
}


@pytest.mark.parametrize("name", LINES)
def test_short_lines_that_all_look_like_a_trainers_are_read_in_linear_time_and_rows_after_them_are_not_lost(
    name: str,
) -> None:
    """Twice as much text may not cost more than twice the time, give or take the clock."""
    costs = []
    for size in (MEBIBYTE // 4, MEBIBYTE // 2):
        text = "".join(
            LINES[name].format(n=n) for n in range(size // len(LINES[name].format(n=1000)))
        ).encode()
        reader = LogReader(kind="stdout")
        reader.feed("".join(ROW.format(n) for n in range(1, 4)).encode(), 0.0)

        begin = time.process_time()
        for place in range(0, len(text), 1 << 18):
            reader.feed(text[place : place + (1 << 18)], 0.0)
            reader.take()
        costs.append((time.process_time() - begin) / (len(text) / MEBIBYTE))
        after = range(900_000_001, 900_000_021)
        reader.feed(("\n" + "".join(ROW.format(n) for n in after)).encode(), 1.0)
        reader.finish()
        found = {row.step for row in reader.take().steps}
        assert len(found & set(after)) >= len(after) - 1

    print(f"\n{name}: {costs[-1]:.2f} s of CPU a MiB")
    assert costs[-1] < 4.0
    assert costs[-1] < 1.6 * costs[0] + 0.1
