"""The past of nodes, the fleet and budgets as facts for a rehearsal. Pure."""

from collections.abc import Iterator

import numpy as np

from flopwatch_collector.facts import Facts, NodeFacts
from flopwatch_collector.past import NodePast, NodeStretch, Past
from flopwatch_collector.watched import GpuHealth, NodeHealth

NODE_SECONDS = 300.0
XID_SECONDS = 600.0
"""So long an XID is news."""
HOUR_SECONDS = 3_600.0
GPU_SECONDS, MOST_LOOKS = 60.0, 2_000


def past_of_nodes(past: Past) -> Iterator[Facts]:
    """The nodes of which there is something to say, at the end of every window."""
    now = past.start_seconds + NODE_SECONDS
    while past.nodes and now <= past.end_seconds:
        nodes = tuple(_node(one, now) for one in past.nodes)
        yield Facts(now=now, jobs=(), nodes=nodes, verdict=None, cluster=past.cluster)
        now += NODE_SECONDS


def _node(past: NodePast, now: float) -> NodeFacts:
    stretch = next((one for one in past.stretches if one.start_seconds < now <= one.end_seconds), None)
    silent = stretch is not None and stretch.bucket == "UNKNOWN"
    return NodeFacts(
        cluster=past.cluster,
        node=past.node,
        last_seen_seconds=_seen(stretch, now),
        interval_seconds=10.0,
        bucket=None if stretch is None or silent else stretch.bucket,
        gpus=past.gpus,
        standing="out" if stretch is not None and stretch.out else None,
        health=NodeHealth(gpus=tuple(_gpus(past, now))),
    )


def _seen(stretch: NodeStretch | None, now: float) -> float:
    return stretch.start_seconds if stretch is not None and stretch.bucket == "UNKNOWN" else now


def past_of_gpus(past: Past) -> Iterator[Facts]:
    """The nodes whose GPUs were throttled or had errors, as often as a minute over the time of raw samples."""
    start = past.raw_start_seconds
    nodes = [one for one in past.nodes if one.throttles or one.errors]
    if start is None or not nodes:
        return
    step = max(GPU_SECONDS, (past.end_seconds - start) / MOST_LOOKS)
    for now in np.arange(start + step, past.end_seconds + 1.0, step).tolist():
        yield Facts(
            now=now, jobs=(), verdict=None, cluster=past.cluster, nodes=tuple(
                NodeFacts(
                    cluster=one.cluster, node=one.node, last_seen_seconds=now, interval_seconds=10.0, bucket=None,
                    gpus=one.gpus, health=NodeHealth(gpus=tuple(_seen_gpus(one, now, step))),
                )
                for one in nodes
            ),
        )  # fmt: skip


def _seen_gpus(past: NodePast, now: float, step: float) -> Iterator[GpuHealth]:
    """Every GPU that was ever throttled or had errors: its reasons then, and what its counters rose by in an hour."""
    for gpu, index in sorted(_named(past), key=str):
        held = [
            one.reasons
            for one in past.throttles
            if one.gpu == gpu and one.start_seconds <= now and one.end_seconds > now - step
        ]
        own = [one for one in past.errors if one.gpu == gpu and 0.0 <= now - one.time_seconds <= HOUR_SECONDS]
        yield GpuHealth(
            gpu=gpu, index=index, clock_event_reasons=held[-1] if held else 0,
            new_uncorrected_errors=sum(one.uncorrected for one in own),
            new_remapped_rows=sum(one.remapped for one in own),
        )  # fmt: skip


def _named(past: NodePast) -> set[tuple[str, int | None]]:
    return {(one.gpu, one.index) for one in past.throttles} | {(one.gpu, one.index) for one in past.errors}


def _gpus(past: NodePast, now: float) -> Iterator[GpuHealth]:
    """Every GPU that ever had an XID in this past, with those that are news now."""
    for gpu in sorted({one.gpu for one in past.events}):
        codes = tuple(
            one.code for one in past.events if one.gpu == gpu and 0.0 <= now - one.time_seconds <= XID_SECONDS
        )
        yield GpuHealth(gpu=gpu, fatal_xids=codes)


def past_of_fleet(past: Past) -> Iterator[Facts]:
    """Fleet and budgets every five minutes of the last hour before each time that they are known of, once a day."""
    for moment in past.moments:
        for step in range(int(HOUR_SECONDS / NODE_SECONDS) + 1):
            yield Facts(
                now=moment.time_seconds - HOUR_SECONDS + step * NODE_SECONDS,
                jobs=(),
                nodes=(),
                verdict=moment.verdict,
                cluster=past.cluster,
                budgets=moment.budgets,
            )
