"""Courses that are hard to tell: weak and double stragglers, hangs in phases, restless runs, gaps, resizing."""

from collections.abc import Iterator
from dataclasses import replace

from tests.incidents.labelled import HANG, SLOW, SLOWED, computing, gpu_of, link, no_clocks, slower, stopped
from tests.incidents.world import CLOCK, NIC, POWER, WARM_SECONDS, Incident, Shown, changed

SPINNING = {"tensor": 0.0, "power_ratio": 0.2}
DROP = frozenset(("MfuDrop",))


def weak() -> Iterator[Incident]:
    """Stragglers near the bar, on both sides of it."""
    yield Incident(
        name="one GPU a tenth slower", kind="straggler, clock", expected=SLOW, allowed=SLOWED, step=slower(1.10),
        show=lambda s, _: changed(s, gpu_of(5), sm_clock_hertz=CLOCK * 0.905),
    )  # fmt: skip
    yield Incident(
        name="one rank computes 1.12 x", kind="straggler, compute", expected=SLOW, allowed=SLOWED, step=slower(1.12),
        show=lambda s, _: changed(computing(s), gpu_of(5), local_compute_seconds=8.96),
    )  # fmt: skip
    yield Incident(
        name="one rank computes 1.06 x", kind="straggler, compute", abstains=True, step=slower(1.05),
        show=lambda s, _: changed(computing(s), gpu_of(5), local_compute_seconds=8.48),
    )  # fmt: skip
    yield Incident(
        name="link at 85% of its peers", kind="straggler, link", abstains=True, step=slower(1.05),
        show=lambda s, _: link(s, "n1", bytes_per_second=NIC * 0.85),
    )  # fmt: skip


def double() -> Iterator[Incident]:
    """Two slow parts in one run."""
    yield Incident(
        name="slow GPUs on two nodes", kind="straggler, clock", expected=SLOW, allowed=SLOWED, step=slower(1.4),
        show=lambda s, _: changed(s, lambda gpu: gpu.rank in (5, 20), sm_clock_hertz=1.4e9),
    )  # fmt: skip
    yield Incident(
        name="slow GPUs on two nodes, one slower", kind="straggler, clock", expected=SLOW, allowed=SLOWED,
        step=slower(1.5),
        show=lambda s, _: changed(
            changed(s, gpu_of(5), sm_clock_hertz=1.3e9), gpu_of(20), sm_clock_hertz=1.6e9
        ),
    )  # fmt: skip
    yield Incident(
        name="slow GPUs on two nodes, by power", kind="straggler, power", expected=SLOW, allowed=SLOWED,
        step=slower(1.4),
        show=lambda s, _: changed(no_clocks(s), lambda gpu: gpu.rank in (5, 20), power_watts=POWER * 0.6),
    )  # fmt: skip
    yield Incident(
        name="two ranks on two nodes compute longer", kind="straggler, compute", expected=SLOW, allowed=SLOWED,
        step=slower(1.3),
        show=lambda s, _: changed(computing(s), lambda gpu: gpu.rank in (5, 20), local_compute_seconds=11.0),
    )  # fmt: skip
    yield Incident(
        name="two slow links with errors", kind="straggler, link", expected=SLOW, allowed=SLOWED, step=slower(1.3),
        nodes=8, show=lambda s, _: _links(s, ("n1", "n4"), errors=40),
    )  # fmt: skip
    yield Incident(
        name="two nodes send half, without errors", kind="straggler, link", abstains=True, allowed=SLOWED | DROP,
        step=slower(1.3), nodes=8, show=lambda s, _: _links(s, ("n1", "n4")),
    )  # fmt: skip


def _links(shown: Shown, nodes: tuple[str, ...], **values: int) -> Shown:
    for node in nodes:
        shown = link(shown, node, bytes_per_second=NIC * 0.5, **values)
    return shown


def stops() -> Iterator[Incident]:
    """Hangs at bad moments, and stops that are none."""
    for bucket, lasts in (("CKPT", 3_000.0), ("EVAL", 9_000.0), ("RECOVERY", 9_000.0)):
        yield Incident(
            name=f"hang in {bucket}", kind="hang in a phase", expected=HANG, stops=True, show=stopped(**SPINNING),
            lasts_seconds=lasts, length_seconds=WARM_SECONDS + lasts + 600.0, phase=bucket,
        )  # fmt: skip
    yield Incident(
        name="checkpoint of forty minutes that writes", kind="long phase", stops=True, lasts_seconds=2_400.0,
        show=stopped(**SPINNING, nic_ratio=0.4, disk_writing=True), phase="CKPT",
        allowed=frozenset(("CkptSlow",)),
    )  # fmt: skip
    yield Incident(
        name="evaluation of an hour", kind="long phase", stops=True, lasts_seconds=3_600.0, phase="EVAL",
        show=lambda s, _: replace(s, tensor=0.4, power_ratio=0.9), length_seconds=WARM_SECONDS + 5_000.0,
    )  # fmt: skip
    yield Incident(
        name="hang while it writes a core dump, then silent", kind="hang behind writes", expected=HANG, stops=True,
        show=lambda s, since: replace(
            s, tensor=0.0, power_ratio=0.2, nic_ratio=0.0, disk_writing=since < 300.0
        ),
        allowed=frozenset(("HangSuspect",)),
    )  # fmt: skip
    yield Incident(
        name="untold checkpoint of three minutes to local disk", kind="healthy", pause=(1_800.0, 180.0, 0.0),
        pause_told=False, pause_nic=0.0, pause_disk=True, allowed=frozenset(("HangSuspect",)),
    )  # fmt: skip


def noises() -> Iterator[Incident]:
    """Healthy runs that look restless."""
    yield Incident(name="noise 10%", kind="healthy", noise=0.10, allowed=frozenset(("StepSpikes",)))
    yield Incident(
        name="heavy tail, shape 2", kind="healthy", whole=True,
        step=lambda s, u, r: u * (1.0 + 0.05 * float(r.pareto(2.0))),
        allowed=frozenset(("StepSpikes",)),
    )  # fmt: skip
    yield Incident(
        name="two modes of step time in turns", kind="healthy", whole=True,
        step=lambda s, u, r: u * (1.15 if int(s // 45) % 2 else 1.0), allowed=frozenset(("StepSpikes",)),
    )  # fmt: skip
    yield Incident(
        name="garbage collection at every hundredth step", kind="healthy", whole=True,
        step=lambda s, u, r: u * (2.0 if int(s / 10.0) % 100 == 0 else 1.0),
    )  # fmt: skip
    yield Incident(
        name="samples missing for ten minutes", kind="healthy", lasts_seconds=600.0,
        show=lambda s, _: replace(s, gpus=(), links=(), tensor=None, power_ratio=None, nic_ratio=None, kernel=None),
    )  # fmt: skip
    yield Incident(
        name="samples of one node missing", kind="healthy",
        show=lambda s, _: replace(
            s, gpus=tuple(g for g in s.gpus if g.node != "n2"), links=tuple(one for one in s.links if one.node != "n2")
        ),
    )  # fmt: skip
    yield Incident(
        name="an elastic run loses a node", kind="resized", step=slower(4 / 3), lasts_seconds=1e9,
        show=lambda s, _: replace(
            s, gpus=tuple(g for g in s.gpus if g.node != "n3"), links=tuple(one for one in s.links if one.node != "n3")
        ),
        config=lambda now: "24" if now >= WARM_SECONDS + 600.0 else "32",
    )  # fmt: skip
    yield Incident(
        name="batch ramps by two percent every three minutes", kind="batch ramp", lasts_seconds=1e9,
        step=lambda s, u, r: u * (1.0 + 0.02 * min(25, int(s // 180))),
        config=lambda now: str(min(25, max(-1, int((now - WARM_SECONDS - 600.0) // 180)))),
    )  # fmt: skip
    yield Incident(
        name="all clocks fall together", kind="step change", expected=DROP, allowed=SLOWED, step=slower(1.2),
        show=lambda s, _: replace(
            s, gpus=tuple(replace(g, sm_clock_hertz=(g.sm_clock_hertz or 0.0) * 0.83) for g in s.gpus)
        ),
    )  # fmt: skip


def harder() -> tuple[Incident, ...]:
    """All of them."""
    return (*weak(), *double(), *stops(), *noises())
