"""The trainer logs with right answers: every row, however the file is split."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from flopwatch_agent.trainers.derive import tokens_per_step, world_size
from flopwatch_agent.trainers.reader import LogReader, parse_whole
from flopwatch_agent.trainers.rows import Parsed, Row

FOLDER = Path(__file__).parents[3] / "fixtures" / "trainer_logs"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in FOLDER.glob("*.expected.json"))
OPTIONAL = {
    "mfu": "mfu",
    "tokens_per_s_per_gpu": "tokens_per_second_per_gpu",
    "hfu": "hfu",
    "samples": "samples",
}


def expected(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.expected.json").read_text(encoding="utf-8"))


def content(name: str) -> bytes:
    return (FOLDER / expected(name)["file"]).read_bytes()


def differences(parsed: Parsed, wanted: dict[str, Any]) -> list[str]:
    """What is not as it should be; empty when every row is right."""
    keys = [(row.get("session", 0), row["step"]) for row in wanted["steps"]]
    found = [(row.session, row.step) for row in parsed.steps]
    if keys != found:
        return [f"rows are {found}, not {keys}"]
    pairs = zip(parsed.steps, wanted["steps"], strict=True)
    return [
        f"step {row.step}: {problem}"
        for row, right in pairs
        for problem in _of_row(row, right, wanted["tolerance"])
    ]


def _of_row(row: Row, right: dict[str, Any], tolerance: dict[str, float]) -> list[str]:
    problems = []
    absolute = tolerance.get("step_time_abs_s", 0.0)
    if not near(row.step_seconds, right["step_time_s"], tolerance["step_time_rel"], absolute):
        problems.append(f"time {row.step_seconds} for {right['step_time_s']}")
    if not near(row.tokens, right["tokens"], 1e-6, 0.51):
        problems.append(f"tokens {row.tokens} for {right['tokens']}")
    if not near(row.tflops_per_gpu, right["tflops_per_gpu"], 1e-6):
        problems.append(f"tflops {row.tflops_per_gpu} for {right['tflops_per_gpu']}")
    if not near(row.loss, right["loss"], 1e-6):
        problems.append(f"loss {row.loss} for {right['loss']}")
    exact = {
        "basis": (row.basis, right.get("basis", "printed")),
        "steady": (row.steady, right.get("steady", True)),
        "superseded": (row.superseded, right.get("superseded", False)),
    }
    if "steps_covered" in right:
        exact["steps_covered"] = (row.steps_covered, right["steps_covered"])
    problems += [f"{name} {got!r} for {want!r}" for name, (got, want) in exact.items() if got != want]
    for key, attribute in OPTIONAL.items():
        if key in right and not near(getattr(row, attribute), right[key], 1e-6):
            problems.append(f"{key} {getattr(row, attribute)} for {right[key]}")
    extras = set(right) & {
        "trainable_tokens",
        "micro_iteration_time_s",
        "mfu_update_phase",
        "update_phase_s",
        "rollout",
    }
    return problems + [
        f"{key} {row.extras.get(key)}" for key in extras if not near(row.extras.get(key), right[key], 1e-6)
    ]


def near(got: object, want: object, relative: float, absolute: float = 1e-9) -> bool:
    if isinstance(got, int | float) and isinstance(want, int | float):
        return math.isclose(got, want, rel_tol=relative, abs_tol=max(absolute, 1e-9))
    return got == want


def in_pieces(data: bytes, sizes: list[int]) -> Parsed:
    reader = LogReader()
    place = 0
    for size in sizes:
        reader.feed(data[place : place + size], None)
        place += size
    reader.feed(data[place:], None)
    reader.finish()
    return reader.everything()


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_the_file_is_read_right(name: str) -> None:
    parsed = parse_whole(content(name))

    assert differences(parsed, expected(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_reading_byte_by_byte_gives_the_same_as_reading_at_once(name: str) -> None:
    data = content(name)

    assert in_pieces(data, [1] * len(data)) == parse_whole(data)


@pytest.mark.parametrize("name", NAMES)
def test_reading_in_random_pieces_gives_the_same_as_reading_at_once(name: str) -> None:
    data = content(name)
    chance = random.Random(7)  # noqa: S311 - not for secrets
    sizes = [chance.randint(1, 700) for _ in range(len(data) // 200)]

    assert in_pieces(data, sizes) == parse_whole(data)


@pytest.mark.parametrize("name", NAMES)
def test_world_size_and_tokens_are_those_of_the_answer_or_unknown(name: str) -> None:
    facts = parse_whole(content(name)).facts[0]
    run = expected(name)["run"]

    assert world_size(facts) in (run.get("world_size"), None)
    if run.get("tokens_per_step") is not None and tokens_per_step(facts) is not None:
        assert tokens_per_step(facts) == run["tokens_per_step"]


@pytest.mark.parametrize("name", NAMES)
def test_a_log_that_is_followed_while_it_grows_gives_the_rows_of_the_whole(name: str) -> None:
    data = content(name)
    chance = random.Random(11)  # noqa: S311 - not for secrets
    reader, place, rows = LogReader(), 0, []
    while place < len(data):
        size = chance.randint(1, 3_000)
        reader.feed(data[place : place + size], None)
        rows += reader.take().steps
        place += size
    reader.finish()
    rows += reader.take().steps
    whole = parse_whole(data).steps

    assert [(row.step, row.session, row.loss) for row in rows] == [
        (row.step, row.session, row.loss) for row in whole
    ]
    for live, right in zip(rows, whole, strict=True):
        told_later = live.seconds is None and live.step == whole[0].step
        assert told_later or (live.seconds, live.basis) == (right.seconds, right.basis)
