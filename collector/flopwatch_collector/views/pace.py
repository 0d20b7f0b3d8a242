"""What breaks a run's pace: regular dips with what its hosts write in them, and what moves while a run is silent."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from flopwatch_collector.compute.detection.dips import Dips, periodic_dips
from flopwatch_collector.compute.detection.overdue import Silence
from flopwatch_collector.compute.detection.writes import writes_during, writes_since
from flopwatch_collector.compute.diagnosis.window import by_key
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns
from flopwatch_collector.store.port import Store
from flopwatch_collector.views.present import JobNow

NOTABLE_SHARE = 0.01
"""Dips that take less are nobody's cause; no host sample is read for them."""
LOOK_SECONDS = 7_200.0
OVERDUE_SECONDS = 60.0
USUAL_SECONDS = 900.0
AGAIN_SECONDS = 60.0
SETTLED_SECONDS, SILENT_SECONDS = 30.0, 120.0
"""Traffic of a silence is that from so long after its beginning on, and of so long at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Movement:
    """What moves while a run is silent; None is not known, or not asked yet."""

    nic_ratio: float | None = None
    """Network throughput over the run's usual; None for a run on one node."""
    disk_writing: bool | None = None

    def seen_in(self, silence: Silence | None) -> Silence | None:
        """The silence with it."""
        return (
            None if silence is None
            else replace(silence, nic_ratio=self.nic_ratio, disk_writing=self.disk_writing)
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Regular dips of a run, whether it writes to storage in them, and what moves while it is silent."""

    dips: Dips | None = None
    writes: bool | None = None
    movement: Movement = Movement()


def paces_of(store: Store, jobs: Mapping[int, JobNow], now: float) -> dict[int, Pace]:
    """By job; what hosts wrote is read of those only whose dips take a share of their time."""
    found = {number: dips for number, job in jobs.items() if (dips := _dips(job, now)) is not None}
    notable = sorted(number for number, dips in found.items() if dips.lost_ratio >= NOTABLE_SHARE)
    hosts: dict[int, Columns] = {}
    if notable:
        start = min(float(found[number].begins[0]) for number in notable)
        hosts = by_key(store.host_samples("job", start - USUAL_SECONDS, now, notable), "job")
    return {
        number: Pace(
            dips=found.get(number),
            writes=writes_during(hosts[number], found[number]) if number in hosts else None,
            movement=movement_of(store, job, now),
        )
        for number, job in jobs.items()
    }


def _dips(job: JobNow, now: float) -> Dips | None:
    """The dips of the newest two hours."""
    if job.timeline is None:
        return None
    return periodic_dips(
        take(job.timeline.steps, job.timeline.steps["ts"] > now - LOOK_SECONDS), job.timeline.phases
    )


def movement_of(store: Store, job: JobNow, now: float) -> Movement:
    """What the run's network and disks do since its newest step, once that is a minute ago."""
    since = None if job.timeline is None else job.timeline.last_progress_seconds
    if since is None or now - since <= OVERDUE_SECONDS:
        return Movement()
    hosts = store.host_samples("job", max(since, now - 2 * SILENT_SECONDS), now, [job.record.number])
    return Movement(
        nic_ratio=_traffic_ratio(store, job, since, now), disk_writing=writes_since(hosts, since, now)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Moved:
    since: float
    at: float
    movement: Movement


@dataclass(slots=True)
class Movements:
    """What moves in the silences of runs, read again once a minute while a silence lasts. One thread asks."""

    known: dict[int, _Moved] = field(default_factory=dict)

    def of(self, store: Store, job: JobNow, now: float) -> Movement:
        """Of one run that is silent."""
        since = job.timeline.last_progress_seconds if job.timeline is not None else None
        if since is None:
            return Movement()
        number = job.record.number
        found = self.known.get(number)
        if found is None or found.since != since or not 0.0 <= now - found.at < AGAIN_SECONDS:
            found = _Moved(since=since, at=now, movement=movement_of(store, job, now))
            self.known = {one: kept for one, kept in self.known.items() if now - kept.at < 2 * AGAIN_SECONDS}
            self.known[number] = found
        return found.movement


def _traffic_ratio(store: Store, job: JobNow, since: float, now: float) -> float | None:
    """The network throughput since the run fell silent over that of the quarter of an hour before it."""
    nodes = sorted({part.node for part in job.record.parts})
    if len(nodes) < 2:
        return None
    begin = max(since + SETTLED_SECONDS, now - SILENT_SECONDS)
    before = _mean_rate(store.node_series(since - USUAL_SECONDS, since, USUAL_SECONDS, nodes))
    meanwhile = _mean_rate(store.node_series(begin, now, SILENT_SECONDS, nodes))
    return meanwhile / before if meanwhile is not None and before else None


def _mean_rate(traffic: Columns) -> float | None:
    rate = traffic["transmit_bytes_per_second"] + traffic["receive_bytes_per_second"]
    known = rate[np.isfinite(rate)]
    return float(known.mean()) if known.size else None
