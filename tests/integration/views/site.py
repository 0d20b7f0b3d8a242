"""A collector on its own data folder, fed over the wire's values, with its clock in the test's hand."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flopwatch.wire import Batch, Event, GpuDevice, GpuSample, JobSighting, NodeFacts, RunFacts, StepRecord
from flopwatch_collector import app
from flopwatch_collector.config import (
    AlertSettings,
    CollectorSettings,
    CostSettings,
    NotifySettings,
    Settings,
    TargetSettings,
)
from flopwatch_collector.facts import JobFacts

H100 = "NVIDIA H100 80GB HBM3"
PEAK = 989.4e12
PARAMETERS = 8_000_000_000
GPUS_A_NODE = 8
INTERVAL = 30.0
MIDNIGHT = 1_772_496_000.0
"""2026-03-03 00:00 UTC."""


def tokens_for(mfu: float, seconds: float, gpus: int = GPUS_A_NODE) -> int:
    """Tokens of a step of that length at that MFU: 6 N FLOPs a token."""
    return round(mfu * gpus * PEAK * seconds / (6 * PARAMETERS))


def gpu_name(node: str, index: int) -> str:
    return f"GPU-{node}-{index}"


def job_ref(**changes: Any) -> JobSighting:
    """A Slurm job on eight GPUs of node n1."""
    values: dict[str, Any] = {
        "ref": "slurm:17",
        "scheduler": "slurm",
        "scheduler_job_id": "17",
        "submit_time_seconds": MIDNIGHT,
        "name": "llama-8b",
        "user": "ann",
        "account": "nlp",
        "kind": "pretrain",
        "world_size": GPUS_A_NODE,
        "start_time_seconds": MIDNIGHT,
        "gpus": tuple(gpu_name("n1", index) for index in range(GPUS_A_NODE)),
        "leased_gpus": tuple(gpu_name("n1", index) for index in range(GPUS_A_NODE)),
        "waiting_for": "steps",
        "run": (
            RunFacts(
                source="log",
                origin="Megatron argument block",
                trainer="megatron",
                parameter_count=PARAMETERS,
                dtype="bf16",
                dtype_basis="log",
            ),
        ),
    }
    return JobSighting(**{**values, **changes})


class Site:
    """The collector, and agents that push what the test says."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        values: dict[str, Any] = {
            "collector": CollectorSettings(data_dir=folder / "collector"),
            "targets": TargetSettings(job={"llama-8b": 0.35}),
            "costs": CostSettings(price_per_gpu_hour=2.0),
            "alerts": AlertSettings(mfu_low_for_seconds=600.0, observe_days=0.0),
            **settings,
        }
        self.settings = Settings(**values)
        self.now = MIDNIGHT
        self._sequence: dict[str, int] = {}
        self._step = 0
        self.open()

    def open(self) -> None:
        self.running = app.build(self.settings, environ={}, clock=lambda: self.now)
        self.query = self.running.query
        self.engine = self.running.periodic.engine
        self.engine.start()

    def close(self) -> None:
        self.running.stop()

    def restart(self) -> None:
        """What the next process finds."""
        self.close()
        self.open()

    def push(
        self, node: str, start: float, seconds: float, *, job: JobSighting | None = None, **given: Any
    ) -> None:
        """One batch of a node: samples of all its GPUs, its job, and what else is given."""
        self._sequence[node] = self._sequence.get(node, 0) + 1
        self.now = max(self.now, start + seconds)
        samples = given.pop("samples", {"kernel_active_ratio": 0.0, "process_count": 0})
        batch = Batch(
            version=1,
            node=node,
            cluster="a",
            spool=f"spool-{node}",
            sequence=self._sequence[node],
            boot_id="b",
            sampled_at_seconds=start + seconds,
            monotonic_seconds=start + seconds - MIDNIGHT,
            interval_seconds=INTERVAL,
            agent_version="0",
            node_facts=NodeFacts(nvml="ok"),
            gpus=tuple(
                GpuDevice(
                    uuid=gpu_name(node, index),
                    slot=f"0000:{index:02x}:00.0",
                    name=given.get("gpu_model", H100),
                    memory_total_bytes=80 * 2**30,
                    **given.get("device", {}),
                )
                for index in range(GPUS_A_NODE)
            ),
            gpu_samples=tuple(_samples(node, start, seconds, samples, job)),
            jobs=(job,) if job is not None else (),
            steps=tuple(given.get("steps", ())),
            events=tuple(given.get("events", ())),
            port_samples=tuple(given.get("port_samples", ())),
            node_samples=tuple(given.get("node_samples", ())),
            job_samples=tuple(given.get("job_samples", ())),
            phases=tuple(given.get("phases", ())),
        )
        self.running.ingest.accept_batch(batch, sent_at_seconds=start + seconds).result(30)

    def train(
        self,
        seconds: float,
        *,
        mfu: float = 0.40,
        step_seconds: float = 10.0,
        tick: bool = True,
        **changes: Any,
    ) -> None:
        """Node n1 trains for a while; n2 is idle without a process. Ends at the new ``now``."""
        start = self.now
        job = job_ref(**changes)
        steps = [
            StepRecord(
                job=job.ref,
                source="log",
                source_id="log-17",
                step=self._step + number,
                end_time_seconds=start + number * step_seconds,
                seconds=step_seconds,
                tokens=tokens_for(mfu, step_seconds),
                rank=0,
            )
            for number in range(1, int(seconds / step_seconds) + 1)
        ]
        self._step += len(steps)
        busy = {
            "kernel_active_ratio": 0.95,
            "tensor_active_ratio": 0.5,
            "power_watts": 600.0,
            "process_count": 1,
            "memory_used_bytes": 40 * 2**30,
        }
        self.push("n1", start, seconds, job=job, steps=steps, samples=busy)
        self.push("n2", start, seconds)
        if tick:
            self.tick()

    def of_two_teams(self) -> None:
        """Two hours: nlp trains on n1, vision holds n3 without work, n2 is free."""
        gpus = tuple(gpu_name("n3", index) for index in range(GPUS_A_NODE))
        held = job_ref(
            ref="slurm:18", scheduler_job_id="18", name="vit", user="bob", account="vision", gpus=gpus,
            leased_gpus=gpus, run=(),
        )  # fmt: skip
        idle = {"kernel_active_ratio": 0.0, "process_count": 1, "power_watts": 90.0}
        for start in range(0, 7_200, 900):
            self.now = MIDNIGHT + start
            self.push("n3", self.now, 900.0, job=held, samples={**idle, "memory_used_bytes": 2**30})
            self.now = MIDNIGHT + start
            self.train(900.0)
        self.settle()

    def hang(self, seconds: float) -> None:
        """Node n1's job goes on without a step, its power falls."""
        start = self.now
        stuck = {
            "kernel_active_ratio": 1.0,
            "tensor_active_ratio": 0.0,
            "power_watts": 120.0,
            "process_count": 1,
        }
        self.push("n1", start, seconds, job=job_ref(), samples=stuck)
        self.push("n2", start, seconds)
        self.tick()

    def tick(self) -> None:
        """Accounting up to now, and one evaluation of the alerts."""
        self.running.accounting.tick(self.now)
        self.engine.evaluate(self.running.query.facts(self.now))

    def settle(self) -> None:
        """Tick until no final window is outstanding."""
        self.tick()
        while not self.running.accounting.settled():
            self.tick()

    def job_facts(self) -> JobFacts:
        (facts,) = self.running.query.facts(self.now).jobs
        return facts


@contextlib.contextmanager
def two_teams(folder: Path) -> Iterator[Site]:
    """A site after two hours of two teams."""
    site = Site(folder)
    site.of_two_teams()
    yield site
    site.close()


def _samples(
    node: str, start: float, seconds: float, values: dict[str, Any], job: JobSighting | None
) -> Iterable[GpuSample]:
    count = int(seconds / INTERVAL)
    for index in range(GPUS_A_NODE):
        uuid = gpu_name(node, index)
        held = job is not None and uuid in job.gpus
        for number in range(1, count + 1):
            yield GpuSample(
                time_seconds=start + number * INTERVAL,
                gpu=uuid,
                interval_seconds=INTERVAL,
                job=job.ref if held and job is not None else None,
                **{
                    name: value(start + number * INTERVAL) if callable(value) else value
                    for name, value in values.items()
                },
            )


def health(at: float, value: str) -> Event:
    return Event(time_seconds=at, kind="health", value=value)


def webhook(url: str) -> tuple[NotifySettings, ...]:
    return (NotifySettings(name="oncall", url=url),)
