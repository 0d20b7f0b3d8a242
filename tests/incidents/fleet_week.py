"""A week of a healthy fleet of 10,000 GPUs: every silence of every run, judged as the hang rule judges it.

Steps have published noise with a heavy tail; checkpoints and evaluations are told by most runs and not by others;
storage stutters for up to a minute.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from flopwatch_collector.compute.detection.overdue import Silence, standing

WEEK_SECONDS = 7 * 86_400.0
JOBS = 156
"""Of 64 GPUs each."""
MOST_STEPS = 20_000
Made = tuple[str, float, Silence]


@dataclass(frozen=True, kw_only=True)
class Week:
    """What a week came to."""

    silences: int
    """Longer than a minute."""
    steps: int
    hangs: tuple[tuple[int, str], ...]
    """(job, kind of silence) called a hang: all of them wrong."""
    suspects: int
    drops: int
    """Runs whose newest steps fell below the critical level of MfuDrop."""


def week(seed: int = 0) -> Week:
    """One healthy week."""
    random = np.random.default_rng(seed)
    hangs: list[tuple[int, str]] = []
    silences = suspects = steps = drops = 0
    for job in range(JOBS):
        usual = float(np.exp(random.uniform(0.0, np.log(60.0))))
        noise = float(random.choice([0.01, 0.02, 0.03, 0.05]))
        told, longest = bool(random.random() < 0.7), 0.0
        course = _steps(random, usual, noise)
        steps += course.size
        drops += _drops(course)
        gap = float(np.percentile(course, 99))
        for kind, lasts, silence in _silences(random, usual, float(course.max()), gap, told):
            judged = _judge(silence, lasts, longest)
            silences += lasts > 60.0
            suspects += judged == "suspect"
            if judged == "hang":
                hangs.append((job, kind))
            if kind != "step":
                longest = max(longest, lasts if silence.phase is None else 0.0)
    return Week(silences=silences, steps=steps, hangs=tuple(hangs), suspects=suspects, drops=drops)


def _steps(random: np.random.Generator, usual: float, noise: float) -> np.ndarray:
    count = min(MOST_STEPS, int(WEEK_SECONDS / usual))
    tail = 1.0 + 0.02 * random.pareto(3.0, count)
    return usual * np.exp(random.normal(0.0, noise, count)) * tail


def _drops(seconds: np.ndarray) -> int:
    windows = np.median(np.lib.stride_tricks.sliding_window_view(seconds, 20)[::20], axis=1)
    return int((float(np.median(seconds)) / windows < 0.70).any())


def _silences(
    random: np.random.Generator, usual: float, slowest: float, gap: float, told: bool
) -> list[Made]:
    storage = bool(random.random() < 0.7)
    save, evaluation = float(random.uniform(10.0, 240.0)), float(random.uniform(60.0, 1_200.0))
    silent = partial(Silence, gap_seconds=gap)
    made: list[Made] = [
        ("step", slowest, silent(tensor_active_ratio=0.45, power_ratio=1.0, nic_ratio=1.0)),
    ]
    for _ in range(int(WEEK_SECONDS / random.uniform(1_800.0, 7_200.0))):
        lasts = save * float(np.exp(random.normal(0.0, 0.15))) + usual
        moving = float(random.uniform(0.05, 0.4)) if storage else 0.0
        made.append(("checkpoint", lasts, silent(
            tensor_active_ratio=0.0, power_ratio=0.25, nic_ratio=moving, disk_writing=not storage,
            phase="CKPT" if told else None,
        )))  # fmt: skip
    for _ in range(int(WEEK_SECONDS / random.uniform(7_200.0, 21_600.0))):
        lasts = evaluation * float(np.exp(random.normal(0.0, 0.1))) + usual
        made.append(("evaluation", lasts, silent(
            tensor_active_ratio=0.35, power_ratio=0.85, nic_ratio=0.6, phase="CKPT" if told else None,
        )))  # fmt: skip
    for _ in range(int(random.poisson(6.0))):
        lasts = min(60.0, float(random.lognormal(np.log(25.0), 0.6))) + usual
        made.append(
            ("storage stutters", lasts, silent(tensor_active_ratio=0.0, power_ratio=0.3, nic_ratio=0.0))
        )
    random.shuffle(made)  # type: ignore[arg-type]
    return made


def _judge(silence: Silence, lasts: float, longest: float) -> str:
    """The worst that is said of a silence, looked at every 15 s; a suspicion must hold for a report."""
    worst, since = "progressing", 0.0
    for overdue in np.arange(15.0, lasts, 15.0).tolist():
        seen = standing(_at(silence, overdue, longest))
        if seen == "hang":
            return "hang"
        since = since + 15.0 if seen == "suspect" else 0.0
        if since >= max(30.0, min(120.0, silence.gap_seconds or 0.0)):
            worst = "suspect"
    return worst


def _at(silence: Silence, overdue: float, longest: float) -> Silence:
    return Silence(
        overdue_seconds=overdue,
        gap_seconds=silence.gap_seconds,
        longest_pause_seconds=longest or None,
        tensor_active_ratio=silence.tensor_active_ratio,
        power_ratio=silence.power_ratio,
        nic_ratio=silence.nic_ratio,
        disk_writing=silence.disk_writing,
        phase=silence.phase,
    )
