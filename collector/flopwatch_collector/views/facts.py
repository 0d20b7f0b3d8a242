"""What the alert rules look at, from the same figures as the pages."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from flopwatch.query import Cause, JobRow, Verdict
from flopwatch_collector.compute.buckets import BUCKETS
from flopwatch_collector.facts import Facts, JobFacts, NodeFacts
from flopwatch_collector.model import Columns, FleetState
from flopwatch_collector.schedulers.declared import Standing
from flopwatch_collector.views.present import JobNow
from flopwatch_collector.views.sources import Moment, Sources
from flopwatch_collector.views.standing import in_maintenance, standings
from flopwatch_collector.views.told_standing import STANDINGS
from flopwatch_collector.views.watch import Watch
from flopwatch_collector.watched import NodeHealth, WatchedRun

ENDED_LOOKBACK_SECONDS = 86_400.0
"""Jobs that ended this long ago still say so, in case the collector was not running when they did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What pages show of jobs: as they stand, their rows, and their rollups of today."""

    jobs: Mapping[int, JobNow]
    rows: list[JobRow]
    rollups: Mapping[int, Columns]
    causes: Mapping[int, Cause | None] = field(default_factory=dict)
    """What pages say of why a job loses time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Nodes:
    """What is known of nodes: their parts, what pushed events say, and what is declared."""

    health: Mapping[int, NodeHealth]
    told: Mapping[int, str]
    declared: tuple[Standing, ...]


def facts_of(sources: Sources, moment: Moment, shown: Shown, verdict: Verdict, watch: Watch) -> Facts:
    """The facts of one evaluation."""
    _, newest = sources.accounting.newest()
    state = moment.state
    pairs = list(zip(shown.jobs.items(), shown.rows, strict=True))
    found = {number: (job, row, shown.rollups.get(number)) for (number, job), row in pairs}
    runs = watch.runs(sources, state, found, moment.now)
    nodes = Nodes(
        health=watch.nodes(sources, state, moment.now),
        told=watch.told(sources, state, moment.now),
        declared=tuple(sources.declared(moment.now)),
    )
    return Facts(
        now=moment.now,
        jobs=tuple(
            replace(_job(state, job, row, runs.get(number)), likely_cause=shown.causes.get(number))
            for (number, job), row in pairs
        ),
        nodes=_nodes(state, newest.ledger, nodes),
        verdict=verdict,
        cluster=",".join(sorted({node.cluster for node in state.nodes.values()})),
        simulated=state.simulated,
    )


def _job(state: FleetState, job: JobNow, row: JobRow, run: WatchedRun | None) -> JobFacts:
    times = [part.last_seen_seconds for part in job.record.parts if part.last_seen_seconds > 0]
    return JobFacts(
        row=row,
        bucket=job.bucket,
        bucket_since_seconds=job.since_seconds,
        steps_since_start=job.steps_since_start,
        report_gap_seconds=job.timeline.report_gap_seconds if job.timeline is not None else None,
        data_seconds=max(times, default=None),
        nodes=frozenset(state.nodes[part.node].name for part in job.record.parts if part.node in state.nodes),
        owner_contact=job.record.owner_contact,
        run=run or WatchedRun(),
    )


def _nodes(state: FleetState, ledger: Columns, seen: Nodes) -> tuple[NodeFacts, ...]:
    """Every node, with the bucket that all its GPUs were in over its newest window.

    What operators, settings and schedulers declare counts before events that were pushed, which also repeat it.
    """
    declared = standings(seen.declared, state)
    maintained = in_maintenance(seen.declared, state)
    gpus: dict[int, int] = {}
    for gpu in state.gpus.values():
        if gpu.to_seconds is None:
            gpus[gpu.node] = gpus.get(gpu.node, 0) + 1
    buckets = _one_bucket(ledger)
    return tuple(
        NodeFacts(
            cluster=node.cluster,
            node=node.name,
            last_seen_seconds=node.last_seen_seconds,
            interval_seconds=node.interval_seconds,
            bucket=buckets.get(number),
            gpus=gpus.get(number, 0),
            reported=node.reported,
            standing=declared.get(number) or STANDINGS.get(seen.told.get(number, "")),
            maintenance=number in maintained or seen.told.get(number) == "maintenance",
            health=seen.health.get(number, NodeHealth()),
        )
        for number, node in state.nodes.items()
    )


def _one_bucket(ledger: Columns) -> dict[int, str]:
    """By node: the bucket that holds all time of the newest window, where one does."""
    if not ledger["ts"].size:
        return {}
    newest = ledger["ts"] == ledger["ts"].max()
    pairs = np.unique(ledger["node"][newest] * len(BUCKETS) + ledger["bucket"][newest])
    nodes, count = np.unique(pairs // len(BUCKETS), return_counts=True)
    single = set(nodes[count == 1].tolist())
    return {
        pair // len(BUCKETS): BUCKETS[pair % len(BUCKETS)]
        for pair in pairs.tolist()
        if pair // len(BUCKETS) in single
    }
