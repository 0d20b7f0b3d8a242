"""The simulated cluster of a seed: its nodes, the runs of the past days, and today's troubles."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from flopwatch_deploy.simulation.runs import (
    GPUS_PER_NODE,
    LLAMA_8B,
    LLAMA_70B,
    MIXTRAL_8X22B,
    QWEN_7B,
    Failure,
    Model,
    Run,
)
from flopwatch_deploy.simulation.segments import Life, life

HOUR = 3600.0
DAY = 86_400.0
HORIZON_SECONDS = 30 * DAY
"""How far beyond its start a demo goes on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Everything that the agents of the simulated nodes would report, as functions of time."""

    name: str
    seed: int
    nodes: int
    start_seconds: float
    now_seconds: float
    lives: tuple[Life, ...]
    unknown_gpu_node: int
    failed_node: int
    failed_at_seconds: float

    def node_name(self, node: int) -> str:
        """Host name of a node by index."""
        return f"gpu-n{node + 1:03d}"

    def lives_on(self, node: int) -> tuple[Life, ...]:
        """Runs that use a node, in order of time."""
        return tuple(item for item in self.lives if node in item.run.nodes)


def build(*, seed: int, gpus: int, days: int, now_seconds: float) -> Cluster:
    """The cluster of a seed at a time: deterministic in all four.

    Raises:
        ValueError: ``gpus`` or ``days`` out of range.
    """
    if gpus < 128 or gpus % GPUS_PER_NODE or gpus > 16_384:
        raise ValueError(f"--gpus is {gpus}; allowed: a multiple of 8 from 128 to 16384")
    if not 1 <= days <= 90:
        raise ValueError(f"--days is {days}; allowed: 1 to 90")
    nodes = gpus // GPUS_PER_NODE
    start = (now_seconds // DAY - days + 1) * DAY
    rng = np.random.default_rng(seed)
    parts = _parts(nodes)
    numbers = iter(range(41_000, 99_000))
    runs: list[Run] = []
    for name, members in parts.items():
        today = _today(name, members, now_seconds, next(numbers))
        until = today.start_seconds - HOUR if today else now_seconds - float(rng.uniform(3.2, 12.0)) * HOUR
        runs += _past(rng, members, (start, until), numbers)
        runs += [today] if today else []
    failed = parts["failed"][0]
    horizon = now_seconds + HORIZON_SECONDS
    return Cluster(
        name="train-a",
        seed=seed,
        nodes=nodes,
        start_seconds=start,
        now_seconds=now_seconds,
        lives=tuple(life(run, horizon) for run in sorted(runs, key=lambda run: run.start_seconds)),
        unknown_gpu_node=parts["unknown_gpu"][0],
        failed_node=failed,
        failed_at_seconds=now_seconds - 3 * HOUR,
    )


_SHARES = {
    "pretrain": 0.1875, "moe": 0.14, "data": 0.095, "straggler": 0.0625, "hang": 0.05, "sft": 0.05,
    "idle": 0.03, "opaque": 0.025, "unknown_gpu": 0.0, "waiting": 0.0, "failed": 0.0,
    "storm": 0.02,
}  # fmt: skip
_SMALL_PART_NODES = 8


def _parts(nodes: int) -> dict[str, tuple[int, ...]]:
    """Node indices by part; every part has one node at least, the rest is cut into small free parts."""
    result: dict[str, tuple[int, ...]] = {}
    first = 0
    for name, share in _SHARES.items():
        count = max(1, round(share * nodes))
        result[name] = tuple(range(first, first + count))
        first += count
    for begin in range(first, nodes, _SMALL_PART_NODES):
        result[f"free{begin}"] = tuple(range(begin, min(begin + _SMALL_PART_NODES, nodes)))
    return result


_TODAY: dict[str, tuple[float, dict[str, Any]]] = {
    "pretrain": (
        5.2 * DAY,
        {"name": "llama-70b-pretrain", "user": "mira", "account": "foundation", "model": LLAMA_70B,
         "mfu_ratio": 0.462, "target_ratio": 0.45, "evaluate_every_seconds": 6 * HOUR},
    ),
    "moe": (
        2.6 * DAY,
        {"name": "moe-8x22b", "user": "jonas", "account": "foundation", "model": MIXTRAL_8X22B,
         "mfu_ratio": 0.374, "target_ratio": 0.36},
    ),
    "data": (
        1.4 * DAY,
        {"name": "vlm-7b-pretrain", "user": "wei", "account": "vision", "model": QWEN_7B, "mfu_ratio": 0.243,
         "target_ratio": 0.40, "data_wait_ratio": 0.38},
    ),
    "straggler": (
        3.1 * DAY,
        {"name": "llama-8b-long", "user": "ana", "account": "foundation", "model": LLAMA_8B, "mfu_ratio": 0.315,
         "target_ratio": 0.40},
    ),
    "hang": (
        22 * HOUR,
        {"name": "qwen-7b-code", "user": "li", "account": "code", "model": QWEN_7B, "mfu_ratio": 0.41,
         "target_ratio": 0.40},
    ),
    "sft": (
        9 * HOUR,
        {"name": "llama-8b-sft", "user": "noor", "account": "assistant", "kind": "finetune", "model": LLAMA_8B,
         "mfu_ratio": 0.438, "target_ratio": 0.40, "evaluate_every_seconds": 2 * HOUR},
    ),
    "idle": (14 * HOUR, {"name": "notebook-eval", "user": "sam", "account": "vision", "kind": "interactive"}),
    "opaque": (1.2 * DAY, {"name": "asr-zh-b2", "user": "yan", "account": "speech", "kind": "unknown"}),
    "unknown_gpu": (
        7 * HOUR,
        {"name": "llama-8b-preview", "user": "ana", "account": "foundation", "model": LLAMA_8B, "mfu_ratio": 0.30},
    ),
    "storm": (
        19 * HOUR,
        {"name": "qwen-7b-rewards", "user": "tao", "account": "assistant", "model": QWEN_7B, "mfu_ratio": 0.42,
         "target_ratio": 0.40, "checkpoint_every_seconds": 600.0, "checkpoint_seconds": 80.0},
    ),
    "waiting": (
        120.0,
        {"name": "qwen-7b-math", "user": "li", "account": "code", "model": QWEN_7B, "mfu_ratio": 0.40,
         "target_ratio": 0.40, "startup_seconds": 1200.0},
    ),
}  # fmt: skip
"""By part: how long ago its present run began, and what it is."""


def _today(part: str, members: tuple[int, ...], now: float, number: int) -> Run | None:
    """The run that holds a part of the cluster at present, with today's trouble."""
    if part not in _TODAY:
        return None
    ago, fields = _TODAY[part]
    start = now - ago
    troubles: dict[str, dict[str, Any]] = {
        "pretrain": {"failures": (Failure(at_seconds=start + 1.9 * DAY, down_seconds=1500.0),)},
        "moe": {"failures": (Failure(at_seconds=start + 1.1 * DAY, down_seconds=2700.0),)},
        "straggler": {"slow_node": members[len(members) // 2]},
        "hang": {"hang_at_seconds": now - 1.6 * HOUR},
        "idle": {"idle_from_seconds": now - 6 * HOUR},
    }
    model = fields.get("model")
    return Run(
        number=number,
        nodes=members,
        start_seconds=start,
        end_seconds=None,
        **{**fields, "model": model.fitting(len(members) * GPUS_PER_NODE) if model else None},
        **troubles.get(part, {}),
    )


_PAST_NAMES = (
    ("llama-70b-abl", "mira", "foundation", LLAMA_70B), ("moe-8x22b-abl", "jonas", "foundation", MIXTRAL_8X22B),
    ("llama-8b-data", "ana", "foundation", LLAMA_8B), ("qwen-7b-code", "li", "code", QWEN_7B),
    ("vlm-7b", "wei", "vision", QWEN_7B), ("asr-zh", "yan", "speech", None), ("sweep", "noor", "assistant", LLAMA_8B),
)  # fmt: skip


def _past(
    rng: np.random.Generator, members: tuple[int, ...], between: tuple[float, float], numbers: Iterator[int]
) -> list[Run]:
    """Runs that held a part of the cluster before today's, with gaps, idle tails and failures."""
    runs = []
    now, until = between
    gpus = len(members) * GPUS_PER_NODE
    names = [each for each in _PAST_NAMES if each[3] is None or each[3].trains_on(gpus)]
    now += float(rng.uniform(0.0, 10.0)) * HOUR
    while now < until - 3 * HOUR:
        name, user, account, model = names[int(rng.integers(len(names)))]
        length = float(rng.uniform(6.0, 54.0)) * HOUR
        end = min(now + length, until)
        run = _past_run(rng, members, (now, end), next(numbers), (name, user, account, model))
        runs.append(run)
        now = end + float(rng.gamma(1.6, 13.0)) * HOUR
    return runs


def _past_run(
    rng: np.random.Generator,
    members: tuple[int, ...],
    between: tuple[float, float],
    number: int,
    who: tuple[str, str, str, Model | None],
) -> Run:
    start, end = between
    name, user, account, model = who
    failures: tuple[Failure, ...] = ()
    if end - start > 12 * HOUR and rng.random() < 0.5:
        at = start + float(rng.uniform(0.2, 0.8)) * (end - start)
        failures = (Failure(at_seconds=at, down_seconds=float(rng.uniform(600.0, 5400.0))),)
    idle = (
        end - float(rng.uniform(1.0, 4.0)) * HOUR if rng.random() < 0.3 and end - start > 8 * HOUR else None
    )
    return Run(
        number=number, name=f"{name}-{number % 1000:03d}", user=user, account=account, nodes=members,
        start_seconds=start, end_seconds=end,
        model=model.fitting(len(members) * GPUS_PER_NODE) if model else None, mfu_ratio=float(rng.uniform(0.29, 0.47)),
        kind="pretrain" if model else "unknown", failures=failures if idle is None else (), idle_from_seconds=idle,
    )  # fmt: skip
