"""The jobs: sightings from many nodes joined into one record a job."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from flopwatch.wire import JobSighting, RunFacts
from flopwatch_collector.ingest.identity import Claim, Identity, Known, claim, fits, job_id
from flopwatch_collector.ingest.place import Place
from flopwatch_collector.ingest.run_facts import joined_runs
from flopwatch_collector.ingest.sightings import Seen, Sightings
from flopwatch_collector.ingest.table import TOUCH_SECONDS, Table, next_number
from flopwatch_collector.ingest.turns import lived
from flopwatch_collector.model import JobPart, JobRecord

SWEEP_SECONDS = 60.0
GONE_SECONDS = 300.0
"""A part whose node reports without it for so long has ended."""


@dataclass(slots=True)
class _Index:
    by_group: dict[str, list[int]] = field(default_factory=dict)
    bindings: dict[int, dict[str, int]] = field(default_factory=dict)
    """By node number: what its handles stand for."""
    swept_seconds: dict[int, float] = field(default_factory=dict)
    job_ids: set[str] = field(default_factory=set)
    saved_seconds: dict[int, float] = field(default_factory=dict)


class Jobs:
    """Finds and keeps the record of every job. Not safe for threads."""

    def __init__(self, records: Table[int, JobRecord], identities: Table[int, Identity]) -> None:
        self._records = records
        self._identities = identities
        self._index = _Index()
        self._sightings = Sightings()
        for identity in identities.records.values():
            self._index.by_group.setdefault(identity.group, []).append(identity.number)
        for job in records.records.values():
            self._index.job_ids.add(job.job_id)
            for part in job.parts:
                self._bind(part.node, part.ref, job)

    def learn(self, jobs: Mapping[int, JobRecord], identities: Mapping[int, Identity]) -> None:
        """Take over what another collector saved; signs of life that only this one has seen stay."""
        for number, identity in identities.items():
            before = self._identities.records.get(number)
            if before is None or before.group != identity.group:
                self._index.by_group.setdefault(identity.group, []).append(number)
            if before is not None and before.group != identity.group:
                self._index.by_group[before.group].remove(number)
        self._identities.learn(identities)
        self.settle()
        own = self._records.records
        self._records.learn(
            {number: lived(own[number], job) if number in own else job for number, job in jobs.items()}
        )
        for job in jobs.values():
            self._index.job_ids.add(job.job_id)
            for part in job.parts:
                self._bind(part.node, part.ref, job)
                self._sightings.forget(part.node, part.ref)

    def settle(self) -> None:
        """Bring every record up to date with the signs of life since."""
        for number in self._sightings.waiting():
            self._record(number)

    def _record(self, number: int) -> JobRecord:
        """A record that is up to date."""
        job = self._records.records[number]
        known = self._sightings.taken_in(job)
        if known is not job:
            self._put(job, known)
        return known

    def of(self, place: Place, ref: str) -> int:
        """The number of the job a node names so; a job without sighting stands for itself."""
        number = self._index.bindings.get(place.node, {}).get(ref)
        return self.sight(place, Seen(job=JobSighting(ref=ref))) if number is None else number

    def sight(self, place: Place, seen: Seen) -> int:
        """The number of the sighted job; its record knows what the sighting says."""
        bindings = self._index.bindings.setdefault(place.node, {})
        repeated = None if place.told else self._sightings.repeated(place, seen)
        if repeated is not None and bindings.get(seen.job.ref) == repeated:
            return repeated
        asked = claim(place.cluster, place.node_name, seen.job, place.shifted(seen.job.start_time_seconds))
        before = bindings.get(seen.job.ref)
        number = None if before is None else self._kept(place, before, asked)
        if number is None:
            number = self._joined(place, asked) or self._founded(place, seen.job, asked)
        bindings[seen.job.ref] = number
        self._strengthen(number, asked)
        old = self._record(number)
        self._put(old, with_sighting(old, place, seen))
        self._doubt(number, seen, asked)
        if not place.told:
            self._sightings.tell(place, seen, number)
        return number

    def _doubt(self, number: int, seen: Seen, asked: Claim) -> None:
        """Say so when a declared target is no ratio, or other nodes have parts that nothing joins with this one."""
        world, here = seen.job.world_size, max(len(seen.job.ranks), len(seen.gpus))
        if seen.job.mfu_target_ratio is not None and _target(seen.job) is None:
            text = f"The job declares an MFU target of {seen.job.mfu_target_ratio:g}; allowed: above 0, at most 1"
            self.add_finding(number, "wrong_target", text, {"value": seen.job.mfu_target_ratio})
        if asked.shared or world is None or not here < world or not here:
            return
        self.add_finding(
            number,
            "parts_not_joined",
            f"The run has {world} processes and {here} are known: nothing that this node reports "
            "(scheduler's job id, MASTER_ADDR) joins it with the parts on other nodes",
            {"world_size": world, "observed": here},
        )

    def touch(self, place: Place, ref: str) -> None:
        """The job still shows signs of life on the node: samples or steps name it."""
        job = self._record(self.of(place, ref))
        part = part_of(job, place.node, ref)
        if part is not None and place.time_seconds > part.last_seen_seconds:
            alive = replace(part, last_seen_seconds=place.time_seconds)
            if alive.exit_reason == "gone":
                alive = replace(alive, end_seconds=None, exit_reason=None)
            self._put(job, with_part(job, alive))

    def add_run_facts(self, number: int, runs: tuple[RunFacts, ...]) -> None:
        """Join what a source said of the run."""
        job = self._record(number)
        self._put(job, replace(job, runs=joined_runs(job.runs, runs)))

    def add_finding(self, number: int, code: str, text: str, values: Mapping[str, Any] | None = None) -> None:
        """Note a doubt; a newer one of the same code replaces it."""
        job = self._record(number)
        others = tuple(finding for finding in job.findings if finding[0] != code)
        self._put(job, replace(job, findings=(*others, (code, text, dict(values or {})))))

    def log_state(self, place: Place, ref: str, problem: str | None) -> None:
        """Note what is wrong with the log the node follows for the job."""
        job = self._record(self.of(place, ref))
        part = part_of(job, place.node, ref)
        if part is not None and part.log_problem != problem:
            self._put(job, with_part(job, replace(part, log_problem=problem)))

    def sweep(self, place: Place) -> list[tuple[str, int]]:
        """End the node's parts that it has not named for five minutes, though it reports; their handles."""
        if place.time_seconds - self._index.swept_seconds.get(place.node, 0.0) < SWEEP_SECONDS:
            return []
        self._index.swept_seconds[place.node] = place.time_seconds
        limit = max(GONE_SECONDS, 3.0 * place.interval_seconds)
        ended = []
        for ref, number in self._index.bindings.get(place.node, {}).items():
            job = self._record(number)
            part = part_of(job, place.node, ref)
            if part is None or part.end_seconds is not None:
                continue
            if place.time_seconds - part.last_seen_seconds > limit:
                gone = replace(part, end_seconds=part.last_seen_seconds, exit_reason="gone")
                self._put(job, with_part(job, gone))
                self._sightings.forget(place.node, ref)
                ended.append((ref, number))
        return ended

    def _bind(self, node: int, ref: str, job: JobRecord) -> None:
        """After a restart the newest job with a node's handle owns it."""
        bindings = self._index.bindings.setdefault(node, {})
        other = bindings.get(ref)
        if other is None or self._records.records[other].last_seen_seconds <= job.last_seen_seconds:
            bindings[ref] = job.number

    def _kept(self, place: Place, number: int, asked: Claim) -> int | None:
        """The job the node has used this handle for, unless the sighting is of another one."""
        identity = self._identities.records[number]
        if asked.group == identity.group:
            return number if fits(asked, self._known(number, place.node), place.time_seconds) else None
        if asked.group.startswith("node/"):
            weaker = replace(asked, by_start=True)
            return number if fits(weaker, self._known(number, place.node), place.time_seconds) else None
        if identity.owned and asked.group.startswith("kubernetes/") and not asked.owned:
            return number
        if identity.owned and asked.group.startswith("launch/"):
            return number if fits(asked, self._known(number, place.node), place.time_seconds) else None
        stronger = identity.group.startswith("node/") or (
            asked.owned and not identity.owned and identity.group.startswith(("launch/", "kubernetes/"))
        )
        if stronger and self._joined(place, asked) is None:
            return number
        return None

    def _joined(self, place: Place, asked: Claim) -> int | None:
        """The job of the same group that the sighting fits best: nearest in start, else the newest."""
        fitting = [
            known
            for number in self._index.by_group.get(asked.group, ())
            if fits(asked, known := self._known(number, place.node), place.time_seconds)
        ]
        if not fitting:
            return None
        return min(fitting, key=lambda known: _distance(asked, known)).identity.number

    def _known(self, number: int, node: int) -> Known:
        job = self._record(number)
        here = [part.last_seen_seconds for part in job.parts if part.node == node]
        return Known(
            identity=self._identities.records[number],
            last_seen_seconds=job.last_seen_seconds,
            end_seconds=job.end_seconds if job.exit_reason != "gone" else None,
            last_seen_here_seconds=max(here, default=None),
        )

    def _founded(self, place: Place, job: JobSighting, asked: Claim) -> int:
        number = next_number(self._records)
        name = job.name or job.scheduler_job_id or job.ref
        key = asked.key
        text = job_id(name, job.scheduler_job_id, key)
        if text in self._index.job_ids:
            key = f"{key}/{number}"
            text = job_id(name, job.scheduler_job_id, key)
        record = JobRecord(
            number=number,
            job_id=text,
            key=key,
            cluster=place.cluster,
            name=name,
            scheduler=job.scheduler,
            last_seen_seconds=place.time_seconds,
        )
        self._index.job_ids.add(text)
        self._records.put(number, record)
        self._identities.put(number, Identity(number=number, group="", shared=False))
        return number

    def _strengthen(self, number: int, asked: Claim) -> None:
        """Keep what a sighting adds to the job's identity: a better group, the submit time, the start."""
        old = self._identities.records[number]
        weaker = bool(old.group) and (asked.group.startswith("node/") or (old.owned and not asked.owned))
        starts = [start for start in (old.start_seconds, asked.start_seconds) if start is not None]
        new = Identity(
            number=number,
            group=old.group if weaker else asked.group,
            shared=old.shared if weaker else asked.shared,
            submit_seconds=old.submit_seconds if asked.submit_seconds is None else asked.submit_seconds,
            start_seconds=min(starts, default=None),
            owned=old.owned or asked.owned,
        )
        if new.group != old.group:
            self._index.by_group.setdefault(new.group, []).append(number)
        if new != old:
            self._identities.put(number, new)

    def _put(self, old: JobRecord, new: JobRecord) -> None:
        """Replace a record; one that only was seen again is saved once a minute."""
        if new == old:
            return
        saved = self._index.saved_seconds.get(new.number, 0.0)
        save = matters(old, new) or new.last_seen_seconds - saved >= TOUCH_SECONDS
        if save:
            self._index.saved_seconds[new.number] = new.last_seen_seconds
        self._records.put(new.number, new, save=save)


def _distance(asked: Claim, known: Known) -> tuple[float, float]:
    if asked.start_seconds is None or known.identity.start_seconds is None:
        return (0.0, -known.last_seen_seconds)
    return (abs(asked.start_seconds - known.identity.start_seconds), -known.last_seen_seconds)


def matters(old: JobRecord, new: JobRecord) -> bool:
    """Whether more than the time of the last sight has changed."""
    if replace(old, last_seen_seconds=new.last_seen_seconds, parts=new.parts) != new:
        return True
    if len(old.parts) != len(new.parts):
        return True
    pairs = ((a, b) for a, b in zip(old.parts, new.parts, strict=True) if a is not b)
    return any(replace(a, last_seen_seconds=b.last_seen_seconds) != b for a, b in pairs)


def part_of(job: JobRecord, node: int, ref: str) -> JobPart | None:
    """The part of a job that a node knows under ``ref``."""
    return next((part for part in job.parts if part.node == node and part.ref == ref), None)


def with_part(job: JobRecord, part: JobPart) -> JobRecord:
    """The job with a part added or replaced, its own times following from its parts."""
    others = [other for other in job.parts if (other.node, other.ref) != (part.node, part.ref)]
    parts = tuple(sorted([*others, part], key=lambda each: (each.node, each.ref)))
    starts = [each.start_seconds for each in parts if each.start_seconds is not None]
    ends = [each.end_seconds for each in parts if each.end_seconds is not None]
    over = len(ends) == len(parts)
    return replace(
        job,
        parts=parts,
        start_seconds=min(
            [*starts, *([] if job.start_seconds is None else [job.start_seconds])], default=None
        ),
        end_seconds=max(ends) if over else None,
        exit_reason=_exit_reason(parts) if over else None,
        last_seen_seconds=max(job.last_seen_seconds, part.last_seen_seconds),
    )


def _exit_reason(parts: tuple[JobPart, ...]) -> str | None:
    """Why the job ended: what a part says of itself counts more than that a part is gone."""
    reasons = [part.exit_reason for part in parts if part.exit_reason is not None]
    told = [reason for reason in reasons if reason != "gone"]
    return next(iter(told or reasons), None)


def with_sighting(job: JobRecord, place: Place, seen: Seen) -> JobRecord:
    """The job with what a sighting says; what it does not know stays."""
    new = seen.job
    described = replace(
        job,
        name=new.name if new.name and job.name in (new.ref, new.scheduler_job_id) else job.name,
        scheduler=job.scheduler if new.scheduler == "none" else new.scheduler,
        scheduler_job_id=new.scheduler_job_id if new.scheduler != "none" else job.scheduler_job_id,
        user=new.user or (str(new.uid) if new.uid is not None and job.user is None else job.user),
        account=new.account or job.account,
        kind=job.kind if new.kind == "unknown" else new.kind,
        master=new.master or job.master,
        world_size=new.world_size or job.world_size,
        target_ratio=_target(new) or job.target_ratio,
        owner_contact=new.owner_contact or job.owner_contact,
        runs=joined_runs(job.runs, new.run),
    )
    return with_part(described, _part(part_of(job, place.node, new.ref), place, seen))


def _target(sighting: JobSighting) -> float | None:
    """The target the job declares; one that is no ratio is none."""
    ratio = sighting.mfu_target_ratio
    return ratio if ratio is not None and 0.0 < ratio <= 1.0 else None


def _part(old: JobPart | None, place: Place, seen: Seen) -> JobPart:
    """A node's part after a sighting; an older sighting that arrives late adds only the start."""
    new, start = seen.job, place.shifted(seen.job.start_time_seconds)
    if old is not None and place.told:
        return _told_part(old, place, seen)
    if old is not None:
        start = old.start_seconds if start is None else min(start, old.start_seconds or start)
        if place.time_seconds < old.last_seen_seconds:
            return replace(old, start_seconds=start)
    end = place.shifted(new.end_time_seconds)
    return JobPart(
        node=place.node,
        ref=new.ref,
        gpus=seen.gpus or (old.gpus if old is not None else ()),
        gpu_ranks=seen.gpu_ranks or (old.gpu_ranks if old is not None else ()),
        leased_gpus=seen.leased_gpus if seen.leased_gpus is not None else (old.leased_gpus if old else None),
        ranks=new.ranks or (old.ranks if old is not None else ()),
        start_seconds=start,
        end_seconds=end,
        exit_reason=new.exit_reason if end is not None else None,
        last_seen_seconds=place.time_seconds if end is None else min(end, place.time_seconds),
        waiting_for=new.waiting_for,
        log_path=new.log_path or (old.log_path if old is not None else None),
        log_problem=old.log_problem if old is not None else None,
    )


def _told_part(old: JobPart, place: Place, seen: Seen) -> JobPart:
    """A node's part after a scheduler's word: whether it lasts; what its processes do only the node knows."""
    end = place.shifted(seen.job.end_time_seconds)
    starts = [at for at in (old.start_seconds, place.shifted(seen.job.start_time_seconds)) if at is not None]
    return replace(
        old,
        leased_gpus=old.leased_gpus if seen.leased_gpus is None else seen.leased_gpus,
        start_seconds=min(starts, default=None),
        end_seconds=end,
        exit_reason=None if end is None else seen.job.exit_reason,
        last_seen_seconds=max(
            old.last_seen_seconds, place.time_seconds if end is None else old.last_seen_seconds
        ),
    )
