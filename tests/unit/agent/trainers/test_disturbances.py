"""What stands around and between the lines of a log must not change its rows."""

import itertools
import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flopwatch_agent.trainers.reader import LogReader, parse_whole
from flopwatch_agent.trainers.rows import Parsed, Row

FOLDER = Path(__file__).parents[3] / "fixtures" / "trainer_logs"
TIME = "2026-01-05T10:11:12.123456789Z"
CODES = ("\x1b[31m", "\x1b[0m", "\x1b[38;2;10;20;30m", "\x1b[39m", "\x1b[1A", "\x1b[2K")
NOISE = (
    "node1 systemd[1]: Started Session 5 of user root.",
    "NCCL INFO Channel 00/02 : 0 1 2 3",
    "a loss of connection at step 3 was seen",
    "Loading checkpoint shards: 100%|##########| 4/4 [00:05<00:00,  1.32s/it]",
)


def stdout_logs() -> dict[str, bytes]:
    found = {}
    for path in sorted(FOLDER.glob("*.expected.json")):
        answer = json.loads(path.read_text(encoding="utf-8"))
        if answer["input_kind"] == "stdout":
            data = (FOLDER / answer["file"]).read_bytes()
            found[answer["file"]] = data if data.endswith(b"\n") else data + b"\n"
    return found


LOGS = stdout_logs()


def each_line(change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    return lambda data: "".join(change(line) + "\n" for line in data.decode().split("\n")[:-1]).encode()


def cut_by_container(data: bytes) -> bytes:
    out = []
    for line in data.split(b"\n")[:-1]:
        size = max(1, len(line) // 3)
        parts = [line[place : place + size] for place in range(0, len(line), size)] or [b""]
        out += [TIME.encode() + b" stdout P " + part for part in parts[:-1]]
        out += [
            TIME.encode() + b" stderr F a warning from elsewhere",
            TIME.encode() + b" stdout F " + parts[-1],
        ]
    return b"\n".join(out) + b"\n"


def cut_by_docker(data: bytes) -> bytes:
    out = []
    for line in data.decode().split("\n")[:-1]:
        ended = line + "\n"
        parts = (ended[place : place + 170] for place in range(0, len(ended), 170))
        out += [json.dumps({"log": part, "stream": "stderr", "time": TIME}) for part in parts]
    return ("\n".join(out) + "\n").encode()


def coloured(data: bytes) -> bytes:
    chance = random.Random(3)  # noqa: S311 - not for secrets
    out = ""
    for character in data.decode():
        inside = re.search(r"\x1b[^a-zA-Z]*$", out[-25:])
        if chance.random() < 0.02 and character not in "\n\r" and not inside:
            out += chance.choice(CODES)
        out += character
    return out.encode()


def two_ranks(data: bytes) -> bytes:
    lines = data.decode().split("\n")[:-1]
    return "".join(f"[rank{rank}]:{line}\n" for line in lines for rank in (0, 1)).encode()


def after_much_else(data: bytes) -> bytes:
    return ("\n".join(NOISE) + "\n").encode() * 300 + data


DISTURBANCES = {
    "torchrun": each_line(lambda line: "[default3]:" + line),
    "torchrun rank": each_line(lambda line: "[rank0]: " + line),
    "srun --label": each_line(lambda line: " 0: " + line),
    "mpirun": each_line(lambda line: "[1,0]<stdout>:" + line),
    "torch elastic role": each_line(lambda line: "[trainer2]:" + line),
    "mpirun with time": each_line(lambda line: "Mon Jan  5 10:11:12 2026[1,0]<stderr>:" + line),
    "mpirun of PRRTE": each_line(lambda line: "[prterun-node1-4242@1,0]<stdout>: " + line),
    "piped through ts": each_line(lambda line: "Jan  5 10:11:12 " + line),
    "NCCL between any two lines": each_line(
        lambda line: line + "\nnode1:4242:4299 [0] NCCL INFO Channel 03/0 : 0[0] -> 1[1] via P2P/CUMEM"
    ),
    "SageMaker": each_line(lambda line: "[1,mpirank:0,algo-1]<stdout>:" + line),
    "hydra": each_line(lambda line: "[0] " + line if line else line),
    "SkyPilot": each_line(lambda line: "\x1b[36m(head, rank=0, pid=4321)\x1b[0m " + line),
    "pdsh": each_line(lambda line: "10.0.0.17: " + line),
    "pdsh by name": each_line(lambda line: "gpu-node-017: " + line),
    "docker compose": each_line(lambda line: "trainer-1  | " + line),
    "journal": each_line(lambda line: "Jan  5 10:11:12 node17 train.sh[991]: " + line),
    "kubectl logs": each_line(lambda line: f"[pod/train-0/main] {TIME} {line}"),
    "nemo-run": each_line(lambda line: "run/0 [default0]:" + line),
    "Ray": each_line(lambda line: "\x1b[36m(Trainer pid=12, ip=10.0.0.1)\x1b[0m " + line),
    "CRI": each_line(lambda line: f"{TIME} stdout F {line}"),
    "CRI in parts": cut_by_container,
    "docker": each_line(lambda line: json.dumps({"log": line + "\n", "stream": "stdout", "time": TIME})),
    "docker in parts": cut_by_docker,
    "GCP": each_line(lambda line: json.dumps({"severity": "INFO", "message": line, "timestamp": TIME})),
    "loguru": each_line(lambda line: json.dumps({"text": line + "\n", "record": {"message": line}})),
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "colours": coloured,
    "two ranks": two_ranks,
    "much else before": after_much_else,
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "NUL bytes": lambda data: b"\0" * 4096 + data,
}


def essence(parsed: Parsed) -> list[tuple[Any, ...]]:
    return [what_matters(row) for row in parsed.steps]


@cache
def undisturbed(file: str) -> list[tuple[Any, ...]]:
    return essence(parse_whole(LOGS[file]))


def what_matters(row: Row) -> tuple[Any, ...]:
    seconds = None if row.step_seconds is None else round(row.step_seconds, 9)
    return (
        row.session,
        row.step,
        seconds,
        row.steps_covered,
        row.tokens,
        row.loss,
        row.basis,
        row.steady,
        row.mfu,
    )


@pytest.mark.parametrize("name", DISTURBANCES)
def test_rows_are_the_same_however_the_log_was_captured(name: str) -> None:
    changed = [
        file
        for file, data in LOGS.items()
        if essence(parse_whole(DISTURBANCES[name](data))) != undisturbed(file)
    ]

    assert changed == []


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    file=st.sampled_from(sorted(LOGS)),
    name=st.sampled_from(sorted(set(DISTURBANCES) - {"much else before", "NUL bytes"})),
    sizes=st.lists(st.integers(min_value=1, max_value=900), max_size=60),
)
def test_rows_are_the_same_however_a_disturbed_log_arrives(file: str, name: str, sizes: list[int]) -> None:
    data = DISTURBANCES[name](LOGS[file])
    reader = LogReader()
    place = 0
    for size in sizes:
        reader.feed(data[place : place + size], None)
        place += size
    reader.feed(data[place:], None)
    reader.finish()

    assert reader.everything() == parse_whole(data)


@pytest.mark.parametrize("file", sorted(set(LOGS) - {"easylm_pprint.log", "hf_trainer_v4_tqdm.log"}))
def test_other_programs_lines_in_between_change_nothing(file: str) -> None:
    chance = random.Random(5)  # noqa: S311 - not for secrets
    lines = LOGS[file].decode().split("\n")[:-1]
    mixed = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        mixed.append(line)
        if chance.random() < 0.3 and following[:1] not in (" ", "\t", "}", "{", "*") and "{" not in line[-2:]:
            mixed.append(chance.choice(NOISE[:3]))

    assert essence(parse_whole(("\n".join(mixed) + "\n").encode())) == undisturbed(file)


def interleaved(data: bytes, *, form: str, ranks: int, turns: list[int]) -> bytes:
    """Every rank prints the whole log; which one writes its next line is drawn, none is far ahead of the others."""
    lines = data.decode().split("\n")[:-1]
    written = [0] * ranks
    out = []
    for turn in itertools.chain(turns, itertools.cycle(range(ranks))):
        behind = min(written)
        if behind == len(lines):
            return "".join(out).encode()
        rank = turn % ranks
        if written[rank] < len(lines) and written[rank] - behind < 4:
            out.append(form.format(rank) + lines[written[rank]] + "\n")
            written[rank] += 1
    raise AssertionError("the turns never end")


LABELLED = sorted(name for name in LOGS if b"\r" not in LOGS[name])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    file=st.sampled_from(LABELLED),
    form=st.sampled_from(
        ("[rank{}]:", "[default{}]:", "{}: ", "[1,{}]<stdout>:", "(worker{0}, rank={0}, pid=7) ")
    ),
    ranks=st.integers(min_value=2, max_value=3),
    turns=st.lists(st.integers(min_value=0, max_value=5), max_size=400),
    sizes=st.lists(st.integers(min_value=1, max_value=900), max_size=20),
)
def test_ranks_that_print_the_same_log_in_any_order_give_its_rows_once(
    file: str, form: str, ranks: int, turns: list[int], sizes: list[int]
) -> None:
    data = interleaved(LOGS[file], form=form, ranks=ranks, turns=turns)
    reader = LogReader()
    place = 0
    for size in sizes:
        reader.feed(data[place : place + size], None)
        place += size
    reader.feed(data[place:], None)
    reader.finish()

    assert essence(reader.everything()) == undisturbed(file)


def test_a_block_goes_on_after_a_time_that_the_capture_put_before_each_line() -> None:
    block = ("[step=10/100,epoch=1,eta=1 hour]", "    train/CE loss=2.500", "    throughput/device/TPS=9,000")
    log = "".join(
        f"[2026-01-05 10:11:{second:02d}] {line}\n"
        for second, line in enumerate((*block, *(part.replace("=10/", "=11/") for part in block)))
    )

    rows = parse_whole(log.encode()).steps

    assert [(row.step, row.loss, row.tokens_per_second_per_gpu) for row in rows] == [
        (10, 2.5, 9_000.0),
        (11, 2.5, 9_000.0),
    ]
