"""Batches as small as a test needs, and a control state in memory."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from flopwatch import wire

NOW = 1_800_000_000.0


class MemoryControl:
    """The ``Control`` port over a dict; documents go through JSON as in the real one."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, bytes]] = {}
        self.saves = 0

    def load(self, kind: str, type_: type) -> dict[str, Any]:
        return {
            key: msgspec.json.decode(body, type=type_) for key, body in self.documents.get(kind, {}).items()
        }

    def save(self, kind: str, documents: Mapping[str, Any]) -> None:
        self.save_all({kind: documents})

    def save_all(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        self.saves += 1
        for kind, documents in kinds.items():
            kept = self.documents.setdefault(kind, {})
            kept.update({key: msgspec.json.encode(document) for key, document in documents.items()})

    def delete(self, kind: str, keys: Iterable[str]) -> None:
        for key in keys:
            self.documents.get(kind, {}).pop(key, None)

    def close(self) -> None:
        pass


def batch(node: str = "node1", at: float = NOW, **fields: Any) -> wire.Batch:
    """A batch of one node, sampled ``at``."""
    known = {
        "version": 1,
        "cluster": "c1",
        "spool": f"spool-{node}",
        "sequence": int(at),
        "boot_id": "boot",
        "monotonic_seconds": 100.0,
        "interval_seconds": 10.0,
        "agent_version": "test",
    }
    return wire.Batch(node=node, sampled_at_seconds=at, **{**known, **fields})


def device(uuid: str, slot: str = "0000:1b:00.0", **fields: Any) -> wire.GpuDevice:
    return wire.GpuDevice(uuid=uuid, slot=slot, name="NVIDIA H100 80GB HBM3", **fields)


def sample(uuid: str, at: float = NOW, **fields: Any) -> wire.GpuSample:
    return wire.GpuSample(time_seconds=at, gpu=uuid, **fields)


def step(number: int, job: str = "j", at: float = NOW, **fields: Any) -> wire.StepRecord:
    known = {"source": "log", "source_id": "file:1", "seconds": 1.0}
    return wire.StepRecord(job=job, step=number, end_time_seconds=at, **{**known, **fields})


def slurm(job_id: str = "77", ref: str = "slurm:77", **fields: Any) -> wire.JobSighting:
    return wire.JobSighting(ref=ref, scheduler="slurm", scheduler_job_id=job_id, **fields)
