"""A simulated training run: its steps with noise, and what its GPUs and links show, through one incident."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flopwatch_collector.compute.detection.peers import GpuSignal, LinkSignal

MFU = 0.42
CLOCK, POWER, TENSOR, NIC = 1.98e9, 650.0, 0.45, 20e9
WARM_SECONDS = 3_600.0
"""History before the incident."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What hardware shows at one moment."""

    gpus: tuple[GpuSignal, ...]
    links: tuple[LinkSignal, ...]
    tensor: float | None = TENSOR
    power_ratio: float | None = 1.0
    nic_ratio: float | None = 1.0
    disk_writing: bool | None = False
    kernel: float | None = 0.98
    clock_reasons: int = 0


@dataclass(frozen=True, kw_only=True)
class Incident:
    """One labelled course of an hour or so."""

    name: str
    kind: str
    expected: frozenset[str] = frozenset()
    """Rules that must fire after the onset."""
    allowed: frozenset[str] = frozenset()
    """Rules that may fire as well, because what they say is true."""
    abstains: bool = False
    """There is a fault, and the evidence does not reach the bar: nothing critical may be said."""
    nodes: int = 4
    step_seconds: float = 10.0
    noise: float = 0.02
    onset_seconds: float = WARM_SECONDS + 600.0
    lasts_seconds: float = 1_800.0
    length_seconds: float = WARM_SECONDS + 3_600.0
    step: Callable[[float, float, np.random.Generator], float] | None = None
    """(seconds since the onset, usual step seconds, random) → step seconds; the whole course where ``whole``."""
    whole: bool = False
    show: Callable[[Shown, float], Shown] | None = None
    """What hardware shows during the incident, by seconds since the onset."""
    pause: tuple[float, float, float] | None = None
    """(every, lasts, tensor activity meanwhile): pauses over the whole course."""
    pause_told: bool = True
    pause_bucket: str = "CKPT"
    pause_nic: float = 0.2
    pause_disk: bool = False
    phase: str | None = None
    """The bucket of the phase that is open during the incident."""
    stops: bool = False
    """No step ends during the incident."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Changes of the job's facts during the incident."""
    config: Callable[[float], str] | None = None
    source_alive: bool = True
    burst: int = 1
    """Steps that are reported together."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """Ends and lengths of the steps, and the pauses."""

    ends: np.ndarray
    seconds: np.ndarray
    pauses: tuple[tuple[float, float], ...]


def course(incident: Incident, seed: int) -> Course:
    """The steps of the whole course; none that would end within a stop."""
    random = np.random.default_rng(seed)
    ends, lengths, pauses = [], [], []
    now, next_pause = 0.0, incident.pause[0] if incident.pause else np.inf
    stop = incident.onset_seconds if incident.stops else np.inf
    while now < incident.length_seconds:
        since = now - incident.onset_seconds
        usual = incident.step_seconds * float(np.exp(random.normal(0.0, incident.noise)))
        active = incident.whole or 0.0 <= since < incident.lasts_seconds
        length = incident.step(since, usual, random) if incident.step is not None and active else usual
        if now + length > stop:
            now, stop = incident.onset_seconds + incident.lasts_seconds, np.inf
            continue
        now += length
        ends.append(now)
        lengths.append(length)
        if incident.pause is not None and now >= next_pause:
            pauses.append((now, now + incident.pause[1]))
            now += incident.pause[1]
            next_pause = now + incident.pause[0]
    return Course(ends=np.array(ends), seconds=np.array(lengths), pauses=tuple(pauses))


def healthy(incident: Incident, seed: int) -> Shown:
    """What a healthy run of this size shows, with the spread of real GPUs."""
    random = np.random.default_rng(seed)
    gpus = tuple(
        GpuSignal(
            node=f"n{node}",
            gpu=str(gpu),
            rank=node * 8 + gpu,
            sm_clock_hertz=CLOCK * float(1.0 - abs(random.normal(0.0, 0.007))),
            power_watts=POWER * float(np.exp(random.normal(0.0, 0.03))),
            throttle_share=0.0,
        )
        for node in range(incident.nodes)
        for gpu in range(8)
    )
    links = tuple(
        LinkSignal(
            node=f"n{node}", bytes_per_second=NIC * float(np.exp(random.normal(0.0, 0.02))), link_up=True
        )
        for node in range(incident.nodes)
    )
    return Shown(gpus=gpus, links=links, nic_ratio=1.0 if incident.nodes > 1 else None)


def changed(shown: Shown, chosen: Callable[[GpuSignal], bool], **values: Any) -> Shown:
    """The same with some GPUs changed."""
    return replace(shown, gpus=tuple(replace(gpu, **values) if chosen(gpu) else gpu for gpu in shown.gpus))
