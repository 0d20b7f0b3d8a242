"""A day of 16 GPUs whose every bucket was worked out by hand."""

import numpy as np
from tests.unit.collector.compute.ledger_scene import (
    Scene,
    events,
    gpu,
    job,
    launch,
    lease,
    phases,
    samples,
    step_run,
    steps,
    together,
)

from flopwatch_collector.compute.inputs import JobWork

DAY = 86_400.0
STEP_FLOPS = 3.16608e16
PEAK = 989.4e12
A = tuple(range(1, 9))
B = tuple(range(11, 19))


def _run_steps() -> list[dict[str, float]]:
    return [
        *step_run(1, 540, 600),
        *step_run(541, 1080, 6060),
        *step_run(1081, 1280, 11_520),
        *step_run(1081, 1480, 14_760, launch=2),
        *step_run(1481, 1680, 19_060, launch=2),
    ]


def _a(number: int) -> list[dict[str, np.ndarray]]:
    hot = {"kernel_active_ratio": 1.0, "process_count": 1, "power_watts": 650.0}
    cold = {**hot, "power_watts": 120.0}
    free = {"kernel_active_ratio": 0.0, "process_count": 0, "power_watts": 70.0}
    return [
        samples(number, 0, 13_520, **hot),
        samples(number, 13_520, 14_160, **cold),
        samples(number, 14_160, 21_120, **hot),
        samples(number, 21_120, DAY, **free),
    ]


def _b(number: int) -> list[dict[str, np.ndarray]]:
    busy = {"node": 2, "kernel_active_ratio": 0.7, "process_count": 1}
    idle = {"node": 2, "kernel_active_ratio": 0.0, "process_count": 1}
    empty = {"node": 2, "kernel_active_ratio": 0.0, "process_count": 0}
    held = 28_800 if number < 13 else 43_200
    if number == 11:
        parts = [samples(number, 0, 3600, **busy), samples(number, 3600, held, **idle)]
    elif number == 12:
        parts = [samples(number, 0, held, **empty)]
    else:
        parts = [samples(number, 0, held, **busy)]
    return [*parts, samples(number, held, 60_000, **empty), samples(number, 61_800, DAY, **empty)]


def worked_day() -> Scene:
    """Node 1 runs a job that hangs and restarts; node 2 has other leases, a silence, and maintenance."""
    run = steps(_run_steps())
    useful = np.full(run["ts"].size, STEP_FLOPS / (8 * PEAK))
    return Scene(
        now=DAY,
        gpus=(*(gpu(number) for number in A), *(gpu(number, node=2) for number in B)),
        jobs=(job(1, world_size=8), job(2), job(3), job(4)),
        launches=(
            launch(1, begin_seconds=0.0, end_seconds=14_160.0),
            launch(2, begin_seconds=14_160.0, resumed_from_step=1080),
        ),
        leases=(
            lease(1, A, 0.0, 21_120.0),
            lease(2, (11,), 0.0, 28_800.0),
            lease(3, (12,), 0.0, 28_800.0),
            lease(4, B[2:], 0.0, 43_200.0),
        ),
        steps=run,
        phases=phases(
            [
                {"ts": 6000, "end": 6060, "kind": "checkpoint", "step": 540},
                {"ts": 11_460, "end": 11_520, "kind": "checkpoint", "step": 1080},
                {"ts": 18_760, "end": 19_060, "kind": "eval", "launch": 2},
                {"ts": 21_060, "end": 21_120, "kind": "checkpoint", "step": 1680, "launch": 2},
            ]
        ),
        samples=together(*[part for n in A for part in _a(n)], *[part for n in B for part in _b(n)]),
        events=events(
            [
                {"ts": 43_200, "kind": "spare", "value": "begin", "gpu": 18, "node": 2},
                {"ts": 50_000, "kind": "health", "value": "faulty", "node": 1},
                {"ts": 57_200, "kind": "health", "value": "ok", "node": 1},
                {"ts": 79_200, "kind": "maintenance", "value": "begin", "node": 2},
            ]
        ),
        work={1: JobWork(useful_seconds=useful)},
    )
