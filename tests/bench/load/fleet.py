"""A fleet of GPU nodes as their agents push it: samples, ports, jobs that change, steps, phases.

Values are noisy and rounded as sensors' are.

Batches are plain dictionaries in the wire's form, unknown keys left out as agents leave them out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

GPUS_PER_NODE = 8
PORTS = 8
NODES_PER_JOB = 16
REPEAT_SECONDS = 60.0
STEP_SECONDS = 4.0
MEMORY_BYTES = 85_520_809_984
_BUSES = (0x1B, 0x3D, 0x4E, 0x5F, 0x9B, 0xBE, 0xCE, 0xDE)
_COUNTERS = ("pcie_transmit_bytes", "pcie_receive_bytes", "nvlink_transmit_bytes", "nvlink_receive_bytes")
_STILL = ("throttle_seconds", "ecc_corrected", "ecc_uncorrected", "remapped_rows", "recovery_action")
GPU_METRICS = (
    "kernel_active_ratio", "memory_busy_ratio", "sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio",
    "dram_active_ratio", "memory_used_bytes", "power_watts", "energy_joules", "temperature_celsius",
    "memory_temperature_celsius", "sm_clock_hertz", "memory_clock_hertz", "clock_event_reasons",
    *_COUNTERS, *_STILL, "process_count",
)  # fmt: skip
PORT_METRICS = ("transmit_bytes", "receive_bytes", "errors", "waits", "link_up", "link_rate_bits_per_second")
NODE_METRICS = (
    "cpu_busy_ratio", "io_wait_ratio", "memory_available_bytes", "memory_total_bytes", "memory_pressure_ratio",
    "disk_read_bytes", "disk_write_bytes",
)  # fmt: skip
STEP_METRICS = ("seconds", "tokens", "loss", "data_wait_seconds")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What the fleet is like; times in seconds of the fleet."""

    gpus: int
    start_seconds: float
    interval_seconds: float = 10.0
    job_seconds: float = 1_800.0
    seed: int = 7

    @property
    def nodes(self) -> int:
        """Nodes of eight GPUs; the last one may have fewer."""
        return -(-self.gpus // GPUS_PER_NODE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """One batch of one node, encoded, and what it holds."""

    node: int
    sequence: int
    at_seconds: float
    body: bytes
    gpu_rows: int
    step_rows: int
    samples: int
    """Values of metrics: GPUs, ports, host and steps."""


@dataclass(slots=True)
class _NodeState:
    sequence: int = 0
    told_seconds: float = float("-inf")


class Fleet:
    """Makes every node's batch of every interval, in order of time."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._random = np.random.default_rng(options.seed)
        self._nodes = [_NodeState() for _ in range(options.nodes)]
        self._encode = msgspec.json.Encoder().encode
        order = self._random.permutation(options.nodes)
        phases = np.sort(self._random.uniform(0.0, options.interval_seconds, options.nodes))
        self._turns = list(zip(phases.tolist(), order.tolist(), strict=True))

    def batches(self) -> Iterator[Made]:
        """Batches without end; ``at_seconds`` rises."""
        start = self.options.start_seconds
        while True:
            for phase, node in self._turns:
                yield self._made(node, start + phase)
            start += self.options.interval_seconds

    def _made(self, node: int, at: float) -> Made:
        state = self._nodes[node]
        job = _Job.of(self.options, node, at)
        gpus = self._gpu_samples(node, at, job)
        steps = job.steps(at, self.options.interval_seconds) if job.is_head else []
        batch = {
            "version": 1,
            "node": node_name(node),
            "cluster": "bench",
            "spool": f"spool-{node:06d}",
            "sequence": state.sequence,
            "boot_id": f"boot-{node}",
            "sampled_at_seconds": at,
            "monotonic_seconds": at - self.options.start_seconds + 1000.0,
            "interval_seconds": self.options.interval_seconds,
            "agent_version": "0.1.0",
            **self._rarely(node, state, at, len(gpus)),
            "gpu_samples": gpus,
            "node_samples": [self._node_sample(at)],
            "port_samples": self._port_samples(node, at),
            "jobs": [*job.sightings(node, at, len(gpus)), *self._over(job, node, at, len(gpus))],
            **({"steps": steps} if steps else {}),
            **({"phases": phases} if (phases := job.phases(at)) else {}),
        }
        state.sequence += 1
        return Made(
            node=node,
            sequence=batch["sequence"],
            at_seconds=at,
            body=self._encode(batch),
            gpu_rows=len(gpus),
            step_rows=len(steps),
            samples=len(gpus) * len(GPU_METRICS)
            + PORTS * len(PORT_METRICS)
            + len(NODE_METRICS)
            + len(steps) * len(STEP_METRICS),
        )

    def _over(self, job: "_Job", node: int, at: float, gpus: int) -> list[dict[str, Any]]:
        """The job before, said to be over once."""
        options, end = self.options, job.start_seconds
        if end <= options.start_seconds or at - end >= options.interval_seconds:
            return []
        before = replace(job, number=job.number - 1, start_seconds=end - options.job_seconds)
        return [{**sighting, "end_time_seconds": end} for sighting in before.sightings(node, end, gpus)]

    def _rarely(self, node: int, state: _NodeState, at: float, gpus: int) -> dict[str, Any]:
        """Inventory and facts of the node, once a minute."""
        if at - state.told_seconds < REPEAT_SECONDS:
            return {}
        first = state.sequence == 0
        state.told_seconds = at - (self._random.uniform(0.0, REPEAT_SECONDS) if first else 0.0)
        devices = [
            {
                "uuid": gpu_uuid(node, index),
                "slot": f"0000:{_BUSES[index]:02x}:00.0",
                "name": "NVIDIA H100 80GB HBM3",
                "index": index,
                "minor": index,
                "memory_total_bytes": MEMORY_BYTES,
                "power_limit_watts": 700.0,
                "sm_count": 132,
                "max_sm_clock_hertz": 1.98e9,
            }
            for index in range(gpus)
        ]
        facts = {
            "machine_id": f"machine-{node}",
            "nvml": "ok",
            "driver_version": "550.54.15",
            "expected_gpus": [each["slot"] for each in devices],
        }
        return {"node_facts": facts, "gpus": devices}

    def _gpu_samples(self, node: int, at: float, job: "_Job") -> list[dict[str, Any]]:
        count = min(GPUS_PER_NODE, self.options.gpus - node * GPUS_PER_NODE)
        random, age = self._random, at - self.options.start_seconds
        noise = random.normal(size=(6, count))
        whole = random.integers(0, 2**26, size=(len(_COUNTERS) + 5, count))
        number = node * GPUS_PER_NODE + np.arange(count)
        columns: dict[str, list[Any]] = {
            "kernel_active_ratio": (whole[0] % 10 / 100 + 0.9).round(2).tolist(),
            "memory_busy_ratio": (whole[1] % 30 / 100 + 0.3).round(2).tolist(),
            "memory_used_bytes": (70_000_000_000 + number * 2**20).tolist(),
            "power_watts": (600 + 30 * noise[4]).round(1).tolist(),
            "energy_joules": (age * 600 + number * 1e5 + 25 * (1 + noise[5])).round(1).tolist(),
            "temperature_celsius": (whole[2] % 10 + 55.0).tolist(),
            "memory_temperature_celsius": (whole[3] % 15 + 60.0).tolist(),
            "sm_clock_hertz": (whole[4] % 14 * 15e6 + 1_770e6).tolist(),
            "memory_clock_hertz": [2_619e6] * count,
            "clock_event_reasons": (whole[4] % 2 * 4).tolist(),
            "process_count": [1] * count,
        }
        for name, values in zip(
            ("sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio"),
            noise,
            strict=False,
        ):
            columns[name] = np.clip(0.5 + 0.05 * values, 0.0, 1.0).round(3).tolist()
        for name, values in zip(_COUNTERS, whole[5:], strict=True):
            columns[name] = (int(age * 1e9) + number * 10**6 + values).tolist()
        still = dict.fromkeys(_STILL, 0)
        return [
            {
                "time_seconds": at,
                "gpu": gpu_uuid(node, index),
                **dict(zip(columns, row, strict=True)),
                **still,
                "job": job.ref,
            }
            for index, row in enumerate(zip(*columns.values(), strict=True))
        ]

    def _port_samples(self, node: int, at: float) -> list[dict[str, Any]]:
        moved = int((at - self.options.start_seconds) * 5e9)
        noise = self._random.integers(0, 2**26, size=(PORTS, 2)).tolist()
        return [
            {
                "time_seconds": at,
                "port": f"mlx5_{index}/1",
                "role": "rdma",
                "transmit_bytes": moved + sent,
                "receive_bytes": moved + taken,
                "errors": 0,
                "waits": 0,
                "link_up": True,
                "link_rate_bits_per_second": 4e11,
            }
            for index, (sent, taken) in enumerate(noise)
        ]

    def _node_sample(self, at: float) -> dict[str, Any]:
        busy, waiting, read, written = self._random.integers(0, 2**20, size=4).tolist()
        age = int(at - self.options.start_seconds)
        return {
            "time_seconds": at,
            "cpu_busy_ratio": busy % 1000 / 1000,
            "io_wait_ratio": waiting % 100 / 1000,
            "memory_available_bytes": 10**12 + busy * 4096,
            "memory_total_bytes": 2 * 10**12,
            "memory_pressure_ratio": 0.0,
            "disk_read_bytes": age * 10**7 + read,
            "disk_write_bytes": age * 10**6 + written,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    """The job that a group of nodes runs at a time; groups change their jobs at different times."""

    number: int
    start_seconds: float
    group: int
    is_head: bool

    @classmethod
    def of(cls, options: Options, node: int, at: float) -> "_Job":
        group = node // NODES_PER_JOB
        shift = group * 37.0 % options.job_seconds
        turn = int((at - options.start_seconds + shift) // options.job_seconds)
        return cls(
            number=group * 10_000 + turn,
            start_seconds=options.start_seconds + turn * options.job_seconds - shift,
            group=group,
            is_head=node % NODES_PER_JOB == 0,
        )

    @property
    def ref(self) -> str:
        return f"slurm:{self.number}"

    def sightings(self, node: int, at: float, gpus: int) -> list[dict[str, Any]]:
        uuids = [gpu_uuid(node, index) for index in range(gpus)]
        first = node % NODES_PER_JOB * GPUS_PER_NODE
        sighting = {
            "ref": self.ref,
            "scheduler": "slurm",
            "scheduler_job_id": str(self.number),
            "uid": 1000 + self.group % 50,
            "user": f"user{self.group % 50}",
            "account": f"team{self.group % 7}",
            "name": f"pretrain-{self.group}",
            "kind": "pretrain",
            "world_size": NODES_PER_JOB * GPUS_PER_NODE,
            "ranks": list(range(first, first + gpus)),
            "start_time_seconds": self.start_seconds,
            "gpus": uuids,
            "leased_gpus": uuids,
            "waiting_for": "steps",
        }
        return [{**sighting, "run": [_RUN]} if self.is_head else sighting]

    def steps(self, at: float, interval: float) -> list[dict[str, Any]]:
        """Steps of the job that ended in the interval before ``at``."""
        begin = max(self.start_seconds + 30.0, at - interval)
        first = int((begin - self.start_seconds) // STEP_SECONDS) + 1
        last = int((at - self.start_seconds) // STEP_SECONDS)
        return [
            {
                "job": self.ref,
                "source": "log",
                "source_id": f"file:{self.number}",
                "step": step,
                "end_time_seconds": self.start_seconds + step * STEP_SECONDS,
                "seconds": round(STEP_SECONDS - 0.1 + step * 7919 % 100 / 500, 3),
                "resolution_seconds": 0.001,
                "tokens": 4_194_304,
                "loss": round(2.0 + 1.0 / (1 + step), 4),
                "data_wait_seconds": 0.01,
            }
            for step in range(first, last + 1)
        ]

    def phases(self, at: float) -> list[dict[str, Any]]:
        """A checkpoint every ten minutes, told while it lasts and once when it is over."""
        age = at - self.start_seconds
        since = age % 600.0
        if not self.is_head or age < 600.0 or since > 40.0:
            return []
        begin = at - since
        ended = {"end_seconds": begin + 20.0} if since >= 20.0 else {}
        return [
            {
                "job": self.ref,
                "kind": "checkpoint",
                "begin_seconds": begin,
                **ended,
                "source_id": f"file:{self.number}",
            }
        ]


_RUN = {
    "source": "log",
    "origin": "Megatron argument block",
    "trainer": "megatron_lm",
    "shape": {
        "n_layers": 32, "hidden": 4096, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128, "ffn_hidden": 14336,
        "vocab": 128256, "gated_mlp": True, "tied_embeddings": False, "seq_len": 8192,
    },
    "world_size": NODES_PER_JOB * GPUS_PER_NODE,
    "global_batch_size": 512,
    "sequence_length": 8192,
    "dtype": "bf16",
    "dtype_basis": "log",
    "tensor_parallel": 4,
    "pipeline_parallel": 2,
    "kind": "pretrain",
}  # fmt: skip


def node_name(node: int) -> str:
    """Host name of a node."""
    return f"gpu-node-{node:05d}"


def gpu_uuid(node: int, index: int) -> str:
    """UUID of a GPU, of NVML's form."""
    return f"GPU-{node:08x}-5b1c-4d2e-9f3a-{index:012x}"
