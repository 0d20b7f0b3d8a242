"""Scenes for ledger tests: a few GPUs, what holds them, and what was measured."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flopwatch_collector.compute.buckets import BUCKETS, label
from flopwatch_collector.compute.gpu_state import STATE_SAMPLES
from flopwatch_collector.compute.hang import EVIDENCE_SAMPLES
from flopwatch_collector.compute.inputs import JobWork, LedgerInputs
from flopwatch_collector.compute.ledger import account
from flopwatch_collector.compute.timeline import JobTimeline, job_timeline
from flopwatch_collector.model import (
    EVENT_COLUMNS,
    PHASE_COLUMNS,
    PHASE_KINDS,
    STEP_COLUMNS,
    Columns,
    Gpu,
    JobRecord,
    Launch,
    LeaseRecord,
    Node,
)

SAMPLE_COLUMNS = tuple(dict.fromkeys((*STATE_SAMPLES, *EVIDENCE_SAMPLES)))


def table(names: tuple[str, ...], rows: list[dict[str, Any]], **defaults: Any) -> Columns:
    """Columns of these rows; what a row does not say is the default, else NaN."""
    return {
        name: np.array([row.get(name, defaults.get(name, np.nan)) for row in rows], dtype=np.float64)
        for name in names
    }


def steps(rows: list[dict[str, Any]]) -> Columns:
    """Step rows: job 1, node 1, launch 1, one step each, unless a row says otherwise."""
    return table(
        STEP_COLUMNS,
        rows,
        job=1,
        node=1,
        launch=1,
        source=2,
        rank=0,
        steps_covered=1,
        steady=1,
        skipped_steps=0,
    )


def step_run(first: int, last: int, start: float, seconds: float = 10.0, **more: Any) -> list[dict[str, Any]]:
    """Steps one after another from ``start``."""
    return [
        {"step": step, "ts": start + (index + 1) * seconds, "seconds": seconds, **more}
        for index, step in enumerate(range(first, last + 1))
    ]


def phases(rows: list[dict[str, Any]]) -> Columns:
    """Phase rows by the name of their kind."""
    coded = [{**row, "kind": PHASE_KINDS.index(row["kind"])} for row in rows]
    return table(PHASE_COLUMNS, coded, job=1, launch=1, step=-1, blocking=1)


def events(rows: list[dict[str, Any]]) -> Columns:
    """Events of nodes (gpu 0) or GPUs."""
    result: Columns = {
        name: np.array([row.get(name, 0.0) for row in rows], dtype=np.float64)
        for name in ("ts", "node", "gpu", "code")
    }
    for name in ("kind", "value", "text"):
        result[name] = np.array([row.get(name, "") for row in rows], dtype=object)
    return {name: result[name] for name in EVENT_COLUMNS}


def samples(
    gpu: int, start: float, end: float, *, node: int = 1, interval: float = 10.0, **values: float
) -> Columns:
    """Samples of one GPU at the end of every interval in ``start`` to ``end``."""
    ts = np.arange(start + interval, end + 1e-6, interval)
    given: dict[str, float] = {"gpu": gpu, "node": node, "job": 0, "interval_seconds": interval, **values}
    return {
        name: ts if name == "ts" else np.full(ts.size, given.get(name, np.nan)) for name in SAMPLE_COLUMNS
    }


def together(*parts: Columns) -> Columns:
    """Sample tables one below the other."""
    if not parts:
        return {name: np.empty(0) for name in SAMPLE_COLUMNS}
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def gpu(number: int, *, node: int = 1, **more: Any) -> Gpu:
    """A GPU that has always been in its slot."""
    given = {
        "cluster": "c",
        "slot": f"slot{number}",
        "uuid": f"GPU-{number}",
        "name": "H100",
        "from_seconds": 0.0,
    }
    return Gpu(number=number, node=node, **{**given, **more})


def lease(job: int, gpus: tuple[int, ...], start: float, end: float | None, **more: Any) -> LeaseRecord:
    """A scheduler's lease."""
    given = {"lease_id": f"{job}:{gpus}:{start}", "source": "slurm", **more}
    return LeaseRecord(job=job, gpus=gpus, start_seconds=start, end_seconds=end, **given)


def job(number: int = 1, **more: Any) -> JobRecord:
    """A job."""
    given = {"job_id": f"job-{number}", "key": str(number), "cluster": "c", "name": f"job {number}"}
    return JobRecord(number=number, **{**given, "scheduler": "slurm", **more})


def launch(number: int = 1, **more: Any) -> Launch:
    """A launch as a log counts it."""
    return Launch(**{"number": number, "job": 1, "source": 2, "source_id": "log", "session": number, **more})


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What is known of a cluster; ``rows`` accounts for it."""

    now: float
    gpus: tuple[Gpu, ...]
    leases: tuple[LeaseRecord, ...] = ()
    jobs: tuple[JobRecord, ...] = ()
    launches: tuple[Launch, ...] = ()
    steps: Columns = field(default_factory=lambda: steps([]))
    phases: Columns = field(default_factory=lambda: phases([]))
    samples: Columns = field(default_factory=together)
    events: Columns = field(default_factory=lambda: events([]))
    work: dict[int, JobWork] = field(default_factory=dict)
    queues: Columns = field(default_factory=dict)
    idle_watts: dict[int, float] = field(default_factory=dict)

    def timeline(self, number: int = 1) -> JobTimeline:
        """The timeline of one job."""
        record = next(record for record in self.jobs if record.number == number)
        return job_timeline(record, self.launches, self.steps, self.phases, self.now)

    def inputs(self) -> LedgerInputs:
        """The scene as the ledger takes it."""
        timelines = {record.number: self.timeline(record.number) for record in self.jobs}
        return LedgerInputs(
            now=self.now,
            nodes={
                number: Node(
                    number=number, cluster="c", name=f"n{number}", first_seen_seconds=0, last_seen_seconds=0
                )
                for number in {each.node for each in self.gpus}
            },
            gpus={each.number: each for each in self.gpus},
            jobs={record.number: record for record in self.jobs},
            leases=self.leases,
            timelines={number: line for number, line in timelines.items() if line.instrumented},
            samples=self.samples,
            events=self.events,
            work=self.work,
            queues=self.queues,
            idle_watts=self.idle_watts,
        )

    def rows(self, start: float = 0.0, end: float | None = None) -> Columns:
        """The ledger's rows."""
        return account(self.inputs(), start, self.now if end is None else end)

    def seconds(self, start: float = 0.0, end: float | None = None) -> dict[str, float]:
        """GPU-seconds by bucket and reason."""
        rows = self.rows(start, end)
        result: dict[str, float] = {}
        for bucket, reason, amount in zip(
            rows["bucket"], rows["reason"], rows["gpu_milliseconds"], strict=True
        ):
            key = label(int(bucket), int(reason))
            result[key] = result.get(key, 0.0) + amount / 1000.0
        return result

    def totals(self) -> dict[str, float]:
        """GPU-seconds by bucket, reasons added up."""
        result: dict[str, float] = {}
        for key, amount in self.seconds().items():
            name = key.split(":")[0]
            assert name in BUCKETS
            result[name] = result.get(name, 0.0) + amount
        return result

    def without(self, **more: Any) -> "Scene":
        """The scene with some of it replaced."""
        return replace(self, **more)
