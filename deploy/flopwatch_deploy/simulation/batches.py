"""Batches of simulated nodes, as their agents would have pushed them."""

import hashlib
from dataclasses import dataclass

import numpy as np

from flopwatch.wire import (
    Batch,
    Event,
    FollowedLog,
    GpuDevice,
    GpuSample,
    JobSample,
    JobSighting,
    Lease,
    NodeFacts,
    PortSample,
)
from flopwatch_deploy.simulation import training
from flopwatch_deploy.simulation.cluster import HOUR, Cluster
from flopwatch_deploy.simulation.course import GIB, Array, Course, course, noisy
from flopwatch_deploy.simulation.host import host_course, job_samples, node_samples
from flopwatch_deploy.simulation.runs import GPU_MODEL, GPUS_PER_NODE, UNKNOWN_GPU_MODEL
from flopwatch_deploy.simulation.segments import Life

_BUSES = (0x1B, 0x3D, 0x4E, 0x5F, 0x9B, 0xBE, 0xCE, 0xDE)
LOST_GPU_INDEX = 5
FINE_INTERVAL_SECONDS = 60.0
"""Coarser history leaves NIC ports and the hosts' part of jobs out: nothing of old days is made from them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """What one batch covers: ``start < t <= end`` of one node, sampled every ``interval_seconds``."""

    node: int
    start_seconds: float
    end_seconds: float
    interval_seconds: float
    spool: str
    sequence: int


class Simulator:
    """Makes the batch of any node and span; keeps each node's course."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._courses: dict[int, Course] = {}
        self._hosts: dict[int, Course] = {}
        self._lost_node = cluster.nodes - 1
        self._lost_at = cluster.now_seconds - 26 * HOUR

    def silent(self, node: int, time_seconds: float) -> bool:
        """Whether a node's agent no longer reports."""
        return node == self.cluster.failed_node and time_seconds > self.cluster.failed_at_seconds

    def batch(self, span: Span) -> Batch | None:
        """The batch, or None when the node says nothing in the span."""
        if self.silent(span.node, span.start_seconds):
            return None
        last = min(span.end_seconds, self._speaks_until(span.node))
        times = self._times(span, last)
        lives = [
            item
            for item in self.cluster.lives_on(span.node)
            if item.run.start_seconds < last and item.segments[-1].end_seconds > span.start_seconds
        ]
        heads = [item for item in lives if item.run.nodes[0] == span.node and item.run.model is not None]
        fine = times if span.interval_seconds <= FINE_INTERVAL_SECONDS else times[:0]
        report_seconds = max(span.interval_seconds / 3.0, 10.0)
        return Batch(
            version=1, node=self.cluster.node_name(span.node), cluster=self.cluster.name, spool=span.spool,
            sequence=span.sequence, boot_id=f"boot-{span.node}", sampled_at_seconds=last,
            monotonic_seconds=last - self.cluster.start_seconds, interval_seconds=span.interval_seconds,
            agent_version="simulated", simulated=True, node_facts=self._node_facts(span.node, heads, last),
            gpus=self._inventory(span.node, last), gpu_samples=self._gpu_samples(span.node, times),
            node_samples=node_samples(self._host(span.node), times), port_samples=self._ports(span.node, fine),
            job_samples=self._job_samples(span, lives, fine),
            jobs=tuple(self._sighting(i, span.node, last) for i in lives),
            steps=tuple(r for i in heads for r in training.steps(i, span.start_seconds, last, report_seconds)),
            phases=tuple(p for i in heads for p in training.phases(i, span.start_seconds, last)),
            sessions=tuple(m for i in heads for m in training.launches(i, last)),
            leases=tuple(self._lease(i, span.node, last) for i in lives),
            events=self._events(span.node, span.start_seconds, last),
        )  # fmt: skip

    def uuid(self, node: int, gpu: int) -> str:
        """A GPU's UUID: by seed, node and place."""
        digest = hashlib.sha256(f"{self.cluster.seed}/{node}/{gpu}".encode()).hexdigest()
        return f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"

    def _speaks_until(self, node: int) -> float:
        return self.cluster.failed_at_seconds if node == self.cluster.failed_node else float("inf")

    def _times(self, span: Span, last: float) -> Array:
        first = np.floor(span.start_seconds / span.interval_seconds) + 1.0
        count = int(np.floor(last / span.interval_seconds) - first) + 1
        times: Array = (first + np.arange(max(0, count))) * span.interval_seconds
        return times

    def _course(self, node: int) -> Course:
        if node not in self._courses:
            self._courses[node] = course(self.cluster, node)
        return self._courses[node]

    def _host(self, node: int) -> Course:
        if node not in self._hosts:
            self._hosts[node] = host_course(self.cluster, node)
        return self._hosts[node]

    def _job_samples(self, span: Span, lives: list[Life], times: Array) -> tuple[JobSample, ...]:
        rng = np.random.default_rng((self.cluster.seed, span.node, int(span.end_seconds), 1))
        runs = {item.run.number: item.run for item in lives}
        return job_samples(self._host(span.node), runs, times, rng, span.interval_seconds)

    def _lost(self, node: int, gpu: int, time_seconds: float) -> bool:
        return node == self._lost_node and gpu == LOST_GPU_INDEX and time_seconds > self._lost_at

    def _inventory(self, node: int, now: float) -> tuple[GpuDevice, ...]:
        name = UNKNOWN_GPU_MODEL if node == self.cluster.unknown_gpu_node else GPU_MODEL
        return tuple(
            GpuDevice(
                uuid=self.uuid(node, gpu), slot=f"0000:{_BUSES[gpu]:02x}:00.0", name=name, index=gpu, minor=gpu,
                state="lost" if self._lost(node, gpu, now) else "ok",
                reason="GPU is lost" if self._lost(node, gpu, now) else None,
                memory_total_bytes=int(79.6 * GIB), power_limit_watts=700.0, pcie_width=16, pcie_width_maximum=16,
                pcie_generation=5, pcie_generation_maximum=5, sm_count=132, max_sm_clock_hertz=1.98e9,
            )
            for gpu in range(GPUS_PER_NODE)
        )  # fmt: skip

    def _gpu_samples(self, node: int, times: Array) -> tuple[GpuSample, ...]:
        track = self._course(node)
        carried = _pcie(track, self._host(node), times)
        rng = np.random.default_rng((self.cluster.seed, node, int(times[0]) if len(times) else 0))
        samples: list[GpuSample] = []
        for gpu in range(GPUS_PER_NODE):
            levels = track.at(times)
            shown = {
                "kernel": np.round(noisy(levels["kernel"], 0.02, rng, top=1.0), 2),
                "sm": np.round(noisy(levels["sm"], 0.03, rng, top=1.0), 4),
                "tensor": np.round(noisy(levels["tensor"], 0.04, rng, top=1.0), 4),
                "dram": np.round(noisy(levels["dram"], 0.05, rng, top=1.0), 4),
                "power": np.round(noisy(levels["power"], 0.015, rng), 1),
                "clock": levels["clock"],
                "memory": levels["memory"],
                "energy": np.round(track.integral("power", times), 1),
                "nvlink": np.floor(track.integral("nvlink", times) / GPUS_PER_NODE),
                "throttle": np.round(track.integral("throttled", times), 1),
                **carried,
            }
            samples += self._gpu_rows(node, gpu, times, {**levels, **shown})
        return tuple(samples)

    def _gpu_rows(self, node: int, gpu: int, times: Array, values: dict[str, Array]) -> list[GpuSample]:
        uuid = self.uuid(node, gpu)
        columns = [values[name].tolist() for name in _ROW]
        rows = []
        for time, *row in zip(times.tolist(), *columns, strict=True):
            if self._lost(node, gpu, time):
                break
            value = dict(zip(_ROW, row, strict=True))
            rows.append(_gpu_sample(uuid, gpu, time, value))
        return rows

    def _ports(self, node: int, times: Array) -> tuple[PortSample, ...]:
        moved = np.floor(self._course(node).integral("nic", times) / GPUS_PER_NODE)
        return tuple(
            PortSample(
                time_seconds=time, port=f"mlx5_{port}/1", role="rdma", transmit_bytes=int(total),
                receive_bytes=int(total * 0.99), errors=0, link_up=True, link_rate_bits_per_second=4e11,
            )
            for port in range(GPUS_PER_NODE)
            for time, total in zip(times.tolist(), moved.tolist(), strict=True)
        )  # fmt: skip

    def _sighting(self, item: Life, node: int, now: float) -> JobSighting:
        run = item.run
        uuids = tuple(self.uuid(node, gpu) for gpu in range(GPUS_PER_NODE))
        head = run.nodes[0] == node
        stepped = any(segment.steps_ended_by(now) for segment in item.segments)
        ended = run.end_seconds is not None and run.end_seconds <= now
        first = run.nodes.index(node) * GPUS_PER_NODE
        return JobSighting(
            ref=training.ref(run), scheduler="slurm", scheduler_job_id=str(run.number),
            submit_time_seconds=run.start_seconds - 60.0, uid=1000 + sum(map(ord, run.user)) % 500, user=run.user,
            account=run.account, name=run.name, kind=run.kind, master=f"{self.cluster.node_name(run.nodes[0])}:29500",
            world_size=run.gpus(), ranks=tuple(range(first, first + GPUS_PER_NODE)),
            start_time_seconds=run.start_seconds, end_time_seconds=run.end_seconds if ended else None,
            exit_reason="completed" if ended else None, gpus=uuids, leased_gpus=uuids,
            gpu_ranks=tuple(range(first, first + GPUS_PER_NODE)) if run.model is not None else (),
            waiting_for="steps" if run.model is not None and not stepped else None,
            log_path=f"/home/{run.user}/slurm-{run.number}.out" if head else None,
            mfu_target_ratio=run.target_ratio, run=training.facts(run) if head else (),
        )  # fmt: skip

    def _lease(self, item: Life, node: int, now: float) -> Lease:
        run = item.run
        ended = run.end_seconds is not None and run.end_seconds <= now
        return Lease(
            lease_id=f"{run.number}/{self.cluster.node_name(node)}", job=training.ref(run),
            gpus=tuple(self.uuid(node, gpu) for gpu in range(GPUS_PER_NODE)), source="slurm",
            start_seconds=run.start_seconds, end_seconds=run.end_seconds if ended else None, user=run.user,
            account=run.account,
        )  # fmt: skip

    def _node_facts(self, node: int, heads: list[Life], now: float) -> NodeFacts:
        return NodeFacts(
            machine_id=hashlib.sha256(f"{self.cluster.seed}/{node}".encode()).hexdigest()[:32],
            expected_gpus=tuple(f"0000:{bus:02x}:00.0" for bus in _BUSES), nvml="ok", driver_version="580.126.09",
            logs=tuple(
                FollowedLog(
                    job=training.ref(item.run), path=f"/home/{item.run.user}/slurm-{item.run.number}.out", alive=True,
                    lag_bytes=0, last_read_seconds=now,
                )
                for item in heads
                if item.segments[-1].end_seconds > now
            ),
        )  # fmt: skip

    def _events(self, node: int, start: float, end: float) -> tuple[Event, ...]:
        events = []
        failed = self.cluster.failed_at_seconds
        if node == self.cluster.failed_node and start < failed <= end:
            events.append(
                Event(time_seconds=failed, kind="health", value="faulty", text="PSU failure, node off")
            )
        if node == self._lost_node and start < self._lost_at <= end:
            uuid = self.uuid(node, LOST_GPU_INDEX)
            events.append(
                Event(time_seconds=self._lost_at, kind="xid", gpu=uuid, code=79, text="fell off the bus")
            )
            events.append(
                Event(time_seconds=self._lost_at, kind="health", gpu=uuid, value="faulty", text="XID 79")
            )
        return tuple(events)


_ROW = (
    "kernel", "sm", "tensor", "dram", "power", "clock", "memory", "energy", "nvlink", "throttle", "processes", "job",
    "throttled", "pcie_sent", "pcie_received",
)  # fmt: skip


def _gpu_sample(uuid: str, gpu: int, time: float, value: dict[str, float]) -> GpuSample:
    power = value["power"]
    return GpuSample(
        time_seconds=time, gpu=uuid, kernel_active_ratio=value["kernel"], memory_busy_ratio=value["dram"],
        sm_active_ratio=value["sm"], tensor_active_ratio=value["tensor"], dram_active_ratio=value["dram"],
        memory_used_bytes=int(value["memory"]), power_watts=power, energy_joules=value["energy"],
        temperature_celsius=round(34.0 + power * 0.052 + gpu * 0.4 + value["throttled"] * 16.0, 1),
        sm_clock_hertz=value["clock"], memory_clock_hertz=2.619e9,
        clock_event_reasons=0x40 if value["throttled"] else (0x4 if power > 560.0 else 0x1 if power < 120.0 else 0),
        throttle_seconds=value["throttle"], pcie_transmit_bytes=int(value["pcie_sent"]),
        pcie_receive_bytes=int(value["pcie_received"]), nvlink_transmit_bytes=int(value["nvlink"]),
        nvlink_receive_bytes=int(value["nvlink"]), ecc_corrected=0, ecc_uncorrected=0, recovery_action=0,
        process_count=int(value["processes"]), job=f"slurm:{int(value['job'])}" if value["job"] else None,
    )  # fmt: skip


def _pcie(track: Course, host: Course, times: Array) -> dict[str, Array]:
    """Bytes over each GPU's PCIe link: its share of the network's traffic and of copies from and to the host."""
    network = track.integral("nic", times)
    return {
        "pcie_sent": np.floor((network + host.integral("write", times)) / GPUS_PER_NODE),
        "pcie_received": np.floor((network + host.integral("copied", times)) / GPUS_PER_NODE),
    }
