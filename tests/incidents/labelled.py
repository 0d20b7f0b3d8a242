"""The labelled set: incidents with what must be said of them, and healthy courses of which nothing may be said."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from tests.incidents.world import CLOCK, NIC, POWER, WARM_SECONDS, Incident, Shown, changed

from flopwatch_collector.compute.detection.peers import GpuSignal

HANG = frozenset(("JobHang",))
SLOW = frozenset(("Straggler",))
SLOWED = frozenset(("MfuDrop", "StepSpikes"))
"""What a slow part does to the run is true as well."""


def stopped(**values: Any) -> Callable[[Shown, float], Shown]:
    return lambda shown, since: replace(
        shown, **{"nic_ratio": 0.0 if shown.nic_ratio is not None else None, **values}
    )


def hangs() -> Iterator[Incident]:
    """Runs that stop, of all kinds and sizes."""
    spinning, idle = {"tensor": 0.0, "power_ratio": 0.2}, {"tensor": 0.0, "power_ratio": 0.15, "kernel": 0.0}
    for nodes, seconds in ((1, 1.0), (4, 2.0), (4, 10.0), (16, 10.0), (16, 30.0), (8, 45.0), (8, 60.0)):
        yield Incident(
            name=f"collective hang, {nodes} nodes, {seconds:g} s", kind="hang", expected=HANG, stops=True, nodes=nodes,
            step_seconds=seconds, show=stopped(**spinning),
        )  # fmt: skip
    yield Incident(name="host deadlock", kind="hang", expected=HANG, stops=True, show=stopped(**idle))
    yield Incident(
        name="data loader dead", kind="hang", expected=HANG, stops=True, show=stopped(**idle), nodes=2
    )
    yield Incident(
        name="hang, tensor activity only", kind="hang", expected=HANG, stops=True,
        show=stopped(tensor=0.0, power_ratio=None, nic_ratio=None),
    )  # fmt: skip
    yield Incident(
        name="hang, power only", kind="hang", expected=HANG, stops=True,
        show=stopped(tensor=None, power_ratio=0.15, nic_ratio=None),
    )  # fmt: skip
    yield Incident(
        name="hang with checkpoints told", kind="hang", expected=HANG, stops=True, show=stopped(**spinning),
        pause=(900.0, 25.0, 0.0),
    )  # fmt: skip
    yield Incident(
        name="hang with checkpoints not told", kind="hang", expected=HANG, stops=True, show=stopped(**spinning),
        pause=(600.0, 40.0, 0.0), pause_told=False,
    )  # fmt: skip
    yield Incident(
        name="hang, kernels at full power", kind="hang", expected=HANG, stops=True,
        show=stopped(tensor=0.0, power_ratio=0.8),
    )  # fmt: skip
    unknown = {"tensor": None, "power_ratio": None, "nic_ratio": None}
    yield Incident(
        name="silence without telemetry", kind="hang", expected=frozenset(("HangSuspect",)), stops=True,
        show=stopped(**unknown),
    )  # fmt: skip
    yield Incident(
        name="agent of the log's node dies", kind="hang", abstains=True, stops=True, source_alive=False,
        show=stopped(tensor=0.45, power_ratio=1.0, nic_ratio=1.0),
    )  # fmt: skip


def gpu_of(rank: int) -> Callable[[GpuSignal], bool]:
    return lambda gpu: gpu.rank == rank


def slower(ratio: float) -> Callable[[float, float, np.random.Generator], float]:
    return lambda since, usual, random: usual * ratio


def stragglers() -> Iterator[Incident]:
    """Slow GPUs, nodes and links with their causes, and what only looks like them."""
    for clock, factor in ((1.2e9, 1.6), (1.5e9, 1.3), (1.7e9, 1.16)):
        yield Incident(
            name=f"one GPU at {clock / 1e9:.1f} GHz", kind="straggler, clock", expected=SLOW, allowed=SLOWED,
            step=slower(factor), show=lambda s, _, c=clock: changed(s, gpu_of(5), sm_clock_hertz=c),
        )  # fmt: skip
    yield Incident(
        name="one node at 1.4 GHz", kind="straggler, clock", expected=SLOW, allowed=SLOWED, step=slower(1.4),
        show=lambda s, _: changed(s, lambda gpu: gpu.node == "n2", sm_clock_hertz=1.4e9),
    )  # fmt: skip
    for bits in (0x08, 0x40, 0x80):
        yield Incident(
            name=f"throttled, reason {bits:#x}", kind="throttle", expected=frozenset(("HwThrottle", "Straggler")),
            allowed=SLOWED, step=slower(1.4),
            show=lambda s, _, b=bits: replace(
                changed(s, gpu_of(9), sm_clock_hertz=1.4e9, throttle_share=1.0), clock_reasons=b
            ),
        )  # fmt: skip
    yield Incident(
        name="throttled by the driver for heat", kind="throttle", expected=frozenset(("ThermalThrottle", "Straggler")),
        allowed=SLOWED, step=slower(1.25),
        show=lambda s, _: replace(
            changed(s, gpu_of(9), sm_clock_hertz=1.6e9, throttle_share=1.0), clock_reasons=0x20
        ),
    )  # fmt: skip
    yield Incident(
        name="throttled for two minutes", kind="throttle", lasts_seconds=120.0, allowed=SLOWED,
        show=lambda s, _: replace(changed(s, gpu_of(9), throttle_share=1.0), clock_reasons=0x40),
    )  # fmt: skip
    yield Incident(
        name="at the power limit", kind="healthy", show=lambda s, _: replace(s, clock_reasons=0x04)
    )
    for rate in (0.3, 0.6):
        yield Incident(
            name=f"link at {rate:.0%} of its peers", kind="straggler, link", expected=SLOW, allowed=SLOWED,
            step=slower(1.25), show=lambda s, _, r=rate: _slow_link(s, "n1", r),
        )  # fmt: skip
    yield Incident(
        name="link down", kind="straggler, link", expected=SLOW, allowed=SLOWED, step=slower(1.3),
        show=lambda s, _: link(s, "n1", link_up=False),
    )  # fmt: skip
    yield Incident(
        name="one GPU at half power, clocks unknown", kind="straggler, power", expected=SLOW, allowed=SLOWED,
        step=slower(1.3), show=lambda s, _: changed(no_clocks(s), gpu_of(3), power_watts=POWER / 2),
    )  # fmt: skip
    yield Incident(
        name="one node at two thirds of its power, clocks unknown", kind="straggler, power", expected=SLOW,
        allowed=SLOWED, step=slower(1.2),
        show=lambda s, _: changed(no_clocks(s), lambda gpu: gpu.node == "n3", power_watts=POWER * 0.66),
    )  # fmt: skip
    yield Incident(
        name="one rank computes longer, hardware alike", kind="straggler, compute", expected=SLOW, allowed=SLOWED,
        step=slower(1.3),
        show=lambda s, _: changed(computing(s), gpu_of(5), local_compute_seconds=11.0),
    )  # fmt: skip
    yield Incident(
        name="one GPU five percent slower", kind="straggler, clock", abstains=True, step=slower(1.05),
        show=lambda s, _: changed(s, gpu_of(5), sm_clock_hertz=CLOCK * 0.95),
    )  # fmt: skip
    yield Incident(
        name="slow rank in turns", kind="imbalance", abstains=True, allowed=SLOWED, step=slower(1.2),
        show=lambda s, since: changed(
            computing(s), gpu_of(int(since // 300) % 32), local_compute_seconds=10.0
        ),
    )  # fmt: skip
    yield Incident(
        name="last pipeline stage longer", kind="imbalance", abstains=True, allowed=SLOWED, step=slower(1.2),
        show=lambda s, _: changed(_staged(computing(s)), lambda gpu: gpu.stage == 3, local_compute_seconds=10.0),
    )  # fmt: skip
    yield Incident(
        name="all ranks slower, nobody singled out", kind="straggler, compute", abstains=True,
        expected=frozenset(("MfuDrop",)), allowed=SLOWED, step=slower(1.3),
    )  # fmt: skip


def computing(shown: Shown) -> Shown:
    return changed(shown, lambda _: True, local_compute_seconds=8.0)


def _staged(shown: Shown) -> Shown:
    return replace(shown, gpus=tuple(replace(gpu, stage=(gpu.rank or 0) // 8) for gpu in shown.gpus))


def no_clocks(shown: Shown) -> Shown:
    return changed(shown, lambda _: True, sm_clock_hertz=None)


def link(shown: Shown, node: str, **values: Any) -> Shown:
    return replace(
        shown, links=tuple(replace(one, **values) if one.node == node else one for one in shown.links)
    )


def _slow_link(shown: Shown, node: str, ratio: float) -> Shown:
    return link(shown, node, bytes_per_second=NIC * ratio, errors=40)


def courses() -> Iterator[Incident]:
    """Step times that change: data, checkpoints, evaluations, ramps, drifts."""
    drop = frozenset(("MfuDrop",))
    for share in (0.2, 0.35):
        yield Incident(
            name=f"data wait {share:.0%}",
            kind="data stall",
            expected=drop,
            allowed=SLOWED,
            step=slower(1 / (1 - share)),
        )
    for rate in (0.10, 0.2):
        yield Incident(
            name=f"data wait in {rate:.0%} of the steps", kind="data stall", expected=frozenset(("StepSpikes",)),
            step=lambda s, u, r, p=rate: u * (3.0 if r.random() < p else 1.0), lasts_seconds=3_000.0, allowed=SLOWED,
            length_seconds=WARM_SECONDS + 3_900.0,
        )  # fmt: skip
    for every, lasts in ((300.0, 30.0), (600.0, 60.0)):
        yield Incident(
            name=f"checkpoint of {lasts:g} s every {every:g} s", kind="checkpoint storm",
            expected=frozenset(("CkptSlow",)), pause=(every, lasts, 0.0), onset_seconds=0.0,
            lasts_seconds=WARM_SECONDS + 3_600.0,
        )  # fmt: skip
    yield Incident(name="checkpoints of 20 s", kind="healthy", pause=(900.0, 20.0, 0.0))
    yield Incident(
        name="checkpoints of 60 s not told", kind="healthy", pause=(1_800.0, 60.0, 0.0), pause_told=False
    )
    yield Incident(
        name="checkpoints of 110 s not told", kind="healthy", pause=(1_800.0, 110.0, 0.0), pause_told=False
    )
    yield Incident(
        name="checkpoints of 240 s not told", kind="healthy", pause=(1_800.0, 240.0, 0.0), pause_told=False,
        allowed=frozenset(("HangSuspect",)),
    )  # fmt: skip
    for lasts in (60.0, 600.0):
        yield Incident(
            name=f"evaluations of {lasts:g} s",
            kind="evaluation",
            pause=(1_500.0, lasts, 0.4),
            pause_bucket="EVAL",
        )
    yield Incident(
        name="evaluations of 100 s not told", kind="evaluation", pause=(1_500.0, 100.0, 0.4), pause_told=False
    )
    yield Incident(
        name="evaluations of 300 s not told", kind="evaluation", pause=(1_500.0, 300.0, 0.4), pause_told=False,
        allowed=frozenset(("HangSuspect",)),
    )  # fmt: skip
    for factor in (1.5, 2.0):
        yield Incident(
            name=f"batch x {factor:g}", kind="batch ramp", step=slower(factor), lasts_seconds=1e9,
            config=lambda now: "large" if now >= WARM_SECONDS + 600.0 else "small",
        )  # fmt: skip
    yield Incident(
        name="batch ramp in four stages", kind="batch ramp", lasts_seconds=1e9,
        step=lambda s, u, r: u * (1.0 + 0.25 * min(4, int(s // 600))),
        config=lambda now: str(min(4, max(-1, int((now - WARM_SECONDS - 600.0) // 600)))),
    )  # fmt: skip
    for ratio in (1.2, 1.5):
        yield Incident(
            name=f"step time x {ratio:g} at once",
            kind="step change",
            expected=drop,
            allowed=SLOWED,
            step=slower(ratio),
        )
    yield Incident(
        name="slides to x 1.25 over 40 min", kind="drift", expected=drop, allowed=SLOWED, lasts_seconds=3_000.0,
        step=lambda s, u, r: u * (1.0 + 0.25 * min(1.0, s / 1_500.0)),
    )  # fmt: skip
    for burst in (5, 10):
        yield Incident(name=f"steps told {burst} at a time", kind="healthy", burst=burst)


def faults() -> Iterator[Incident]:
    """Healthy noise: the spreads that are published of step times, and swings of temperature."""
    for noise in (0.005, 0.01, 0.02, 0.03, 0.05):
        yield Incident(name=f"noise {noise:.1%}", kind="healthy", noise=noise)
    for swing in (0.01, 0.02):
        yield Incident(
            name=f"daily swing {swing:.0%}", kind="healthy", whole=True,
            step=lambda s, u, r, w=swing: u * (1.0 + w * float(np.sin(s / 3_000.0))),
        )  # fmt: skip
    yield Incident(
        name="garbage collection in 1% of steps", kind="healthy", whole=True,
        step=lambda s, u, r: u * (1.5 if r.random() < 0.01 else 1.0),
    )  # fmt: skip
    yield Incident(
        name="heavy tail", kind="healthy", whole=True,
        step=lambda s, u, r: u * (1.0 + 0.02 * float(r.pareto(3.0))),
    )  # fmt: skip
    yield Incident(
        name="clocks spread by 4%", kind="healthy",
        show=lambda s, _: replace(s, gpus=tuple(
            replace(g, sm_clock_hertz=CLOCK * (1.0 - 0.04 * ((g.rank or 0) % 7) / 6)) for g in s.gpus
        )),
    )  # fmt: skip
    yield Incident(name="steps of a second", kind="healthy", step_seconds=1.0)
    yield Incident(name="steps of a minute", kind="healthy", step_seconds=60.0)
    yield Incident(
        name="a stutter of one step", kind="healthy", lasts_seconds=10.0, step=lambda s, u, r: u * 6.0
    )


def all_incidents() -> tuple[Incident, ...]:
    """The whole set."""
    return (*hangs(), *stragglers(), *courses(), *faults())
