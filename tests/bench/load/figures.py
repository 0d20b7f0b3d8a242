"""Figures of a run: what it cost, how long it took, whether everything is there."""

import statistics
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from tests.bench.load.checking import Stored
from tests.bench.load.scenario import Outcome

PERIODIC = "periodic (ledger, pages, alerts)"
GROUPS = {
    "MainThread": "event loop",
    "flopwatch-ingest": "ingest",
    "flopwatch-store-writer": "store writer",
    "flopwatch-store-upkeep": "closing",
    "ThreadPoolExecutor": PERIODIC,
    "native": "DuckDB's own threads",
    "bench-names": "the bench itself",
}
"""Threads by the beginning of their name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """One run in numbers; shares are of one core at the fleet's own pace."""

    gpus: int
    fleet_seconds: float
    """That were measured."""
    batches: int
    core_share: float
    cpu_milliseconds_a_batch: float
    cpu_seconds_a_million_samples: float
    by_thread_milliseconds_a_batch: dict[str, float]
    p50_milliseconds: float
    p99_milliseconds: float
    longest_milliseconds: float
    resident_bytes: int
    peak_resident_bytes: int
    files: int
    threads: int
    samples_a_batch: float
    json_bytes_a_batch: float
    sent_bytes_a_batch: float
    generator_core_share: float
    generator_behind_seconds: float


def figures(outcome: Outcome) -> Figures:
    """The figures of the measured part of a run."""
    load, generator = outcome.load, outcome.generator
    begin, end = outcome.watch.between(*outcome.wall)
    fleet = (end.at_seconds - begin.at_seconds) * load.speed
    waits = np.array([wait for at, wait in generator["waits"] if at >= load.warm_seconds])
    if load.speed != 1.0:
        fleet = load.seconds - load.warm_seconds
    batches = len(waits)
    samples = generator["samples"] / generator["acknowledged"]
    cpu = end.cpu_seconds - begin.cpu_seconds
    p50, p99, longest = np.percentile(waits, [50, 99, 100]) * 1e3
    peak = max(each.resident_bytes for each in outcome.watch.readings)
    return Figures(
        gpus=load.gpus,
        fleet_seconds=fleet,
        batches=batches,
        core_share=cpu / fleet,
        cpu_milliseconds_a_batch=cpu / batches * 1e3,
        cpu_seconds_a_million_samples=cpu / (batches * samples) * 1e6,
        by_thread_milliseconds_a_batch=_by_thread(outcome, batches),
        p50_milliseconds=float(p50),
        p99_milliseconds=float(p99),
        longest_milliseconds=float(longest),
        resident_bytes=end.resident_bytes,
        peak_resident_bytes=peak,
        files=end.files,
        threads=end.threads,
        samples_a_batch=samples,
        json_bytes_a_batch=generator["json_bytes"] / generator["acknowledged"],
        sent_bytes_a_batch=generator["sent_bytes"] / generator["acknowledged"],
        generator_core_share=generator["cpu_seconds"] / load.seconds,
        generator_behind_seconds=generator["behind_seconds"],
    )


def _by_thread(outcome: Outcome, batches: int) -> dict[str, float]:
    begin, end = outcome.watch.between(*outcome.wall)
    spent: dict[str, float] = {}
    for thread, seconds in end.by_thread.items():
        name = outcome.names.get(thread, "native")
        group = next((said for start, said in GROUPS.items() if name.startswith(start)), "others")
        spent[group] = spent.get(group, 0.0) + seconds - begin.by_thread.get(thread, 0.0)
    return {group: round(seconds / batches * 1e3, 4) for group, seconds in spent.items()}


def exactness(outcome: Outcome, stored: Stored) -> dict[str, Any]:
    """What was acknowledged beside what is stored; ``exact`` is whether they are the same, each row once."""
    sent = outcome.generator
    exact = (
        sent["gpu_rows"] == stored.gpu_rows == stored.distinct_gpu_rows
        and sent["step_rows"] == stored.step_rows
        and sent["repeats"] == sent["repeats_known"]
        and not sent["given_up"]
        and not sent["wrongly_duplicate"]
    )
    names = (
        "made",
        "acknowledged",
        "late",
        "repeats",
        "repeats_known",
        "given_up",
        "retries",
        "gpu_rows",
        "step_rows",
    )
    return {"exact": exact, **{name: sent[name] for name in names}, "stored": asdict(stored)}


def flatness(outcome: Outcome) -> dict[str, Any]:
    """Memory, files, threads and disk over the run: medians of its quarters, and how memory rose in the last two."""
    begin, end = outcome.wall
    rows = [each for each in outcome.watch.readings if begin <= each.at_seconds <= end]
    quarters = [rows[len(rows) * at // 4 : len(rows) * (at + 1) // 4] for at in range(4)]
    names = ("resident_bytes", "anonymous_bytes", "files", "threads", "disk_bytes")
    known = {
        name: [statistics.median(getattr(each, name) for each in quarter) for quarter in quarters]
        for name in names
    }
    _, _, third, fourth = known["anonymous_bytes"]
    return {"by_quarter": known, "anonymous_bytes_an_hour": (fourth - third) / ((end - begin) / 4.0) * 3600.0}
