"""What is known of the fleet: numbers for nodes, GPUs, jobs, launches and leases, and a batch resolved to them."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flopwatch.accelerators import Accelerator
from flopwatch.wire import Batch, JobSighting, Phase
from flopwatch_collector.ingest import declared, rows
from flopwatch_collector.ingest.declared import DeclaredFacts, DeclaredJob
from flopwatch_collector.ingest.identity import Identity
from flopwatch_collector.ingest.jobs import Jobs, part_of
from flopwatch_collector.ingest.launches import Launches
from flopwatch_collector.ingest.leases import Leases
from flopwatch_collector.ingest.nodes import Nodes
from flopwatch_collector.ingest.place import Place
from flopwatch_collector.ingest.rows import Taken
from flopwatch_collector.ingest.sightings import Seen
from flopwatch_collector.ingest.slots import Slots
from flopwatch_collector.ingest.steps import Claims, Steps
from flopwatch_collector.ingest.table import Table
from flopwatch_collector.ingest.turns import NOTHING, turns
from flopwatch_collector.model import (
    GPU_COLUMNS,
    SOURCE_KINDS,
    Columns,
    DeclaredFact,
    FleetState,
    Gpu,
    JobRecord,
    Launch,
    LeaseRecord,
    Node,
    RawRows,
    empty,
)
from flopwatch_collector.store.port import Control
from flopwatch_collector.store.sharing import Changes

_NUMBERED = ("node", "gpu", "job", "identity", "launch")
Documents = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """A batch in terms of the directory: what its rows are made of, and what to give back should they not be stored."""

    taken: Taken
    claims: Claims

    @property
    def rows(self) -> RawRows:
        """The rows of this batch alone."""
        return rows.together([self.taken]).rows


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tables:
    nodes: Table[int, Node]
    gpus: Table[int, Gpu]
    jobs: Table[int, JobRecord]
    identities: Table[int, Identity]
    launches: Table[int, Launch]
    leases: Table[str, LeaseRecord]

    def all(self) -> tuple[Table[Any, Any], ...]:
        return (self.nodes, self.gpus, self.jobs, self.identities, self.launches, self.leases)


class Directory:
    """The present state of the fleet. Safe for threads; ``resolve`` is called by one of them."""

    def __init__(
        self,
        control: Control,
        clock: Callable[[], float],
        *,
        simulated: bool = False,
        latest: Callable[[], Columns] | None = None,
        site_accelerators: tuple[Accelerator, ...] = (),
    ) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._simulated = simulated
        self._latest = latest
        self._site_accelerators = site_accelerators
        self._generation = 1
        self._state: FleetState | None = None
        self._control = control
        self._turns = turns(control)
        with self._turns.taken():
            self._read()
        self._declared = DeclaredFacts(
            control.load(declared.KIND, DeclaredJob),
            lambda jobs: control.save(declared.KIND, jobs),
            lambda keys: control.delete(declared.KIND, keys),
        )

    def _read(self) -> None:
        """Know what is kept, and nothing else."""
        self._tables = _load(self._control)
        self._nodes = Nodes(self._tables.nodes)
        self._slots = Slots(self._tables.gpus)
        self._jobs = Jobs(self._tables.jobs, self._tables.identities)
        self._launches = Launches(self._tables.launches)
        self._leases = Leases(self._tables.leases)
        self._steps = Steps(self._launches)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """The time in which this collector may change the fleet: what it saves is one transaction with it.

        Raises:
            Unavailable: the control state cannot be reached or written; what was changed is forgotten.
        """
        with self._turns.taken() as changes:
            self._take_in(changes)
            yield

    def learn(self) -> None:
        """Know what other collectors have changed.

        Raises:
            Unavailable: the control state cannot be reached.
        """
        with self.turn():
            pass

    def _take_in(self, changes: Changes | None) -> None:
        if changes is NOTHING:
            return
        with self._lock:
            fleet = () if changes is None else changes.deleted.keys() - {declared.KIND}
            if changes is None or fleet:
                self._read()
                kept = self._control.load(declared.KIND, DeclaredJob)
                self._declared.learn(kept, {str(number) for number in self._declared.all()} - kept.keys())
            else:
                self._learn(changes)
            if changes is None or changes.saved or changes.deleted:
                self._generation += 1

    def _learn(self, changes: Changes) -> None:
        saved = {kind: _by_number(changes.saved.get(kind, {})) for kind in _NUMBERED}
        self._nodes.learn(saved["node"])
        self._slots.learn(saved["gpu"])
        self._jobs.learn(saved["job"], saved["identity"])
        self._launches.learn(saved["launch"])
        self._leases.learn(changes.saved.get("lease", {}))
        self._declared.learn(changes.saved.get(declared.KIND, {}), changes.deleted.get(declared.KIND, ()))

    @property
    def simulated(self) -> bool:
        """Whether the fleet is a simulated one."""
        return self._simulated

    def state(self) -> FleetState:
        """Everything that is known now."""
        with self._lock:
            if self._state is None or self._state.generation != self._generation:
                self._jobs.settle()
                self._state = FleetState(
                    generation=self._generation,
                    nodes=self._tables.nodes.view(),
                    gpus=self._tables.gpus.view(),
                    jobs=declared.laid_over(self._tables.jobs.view(), self._declared.all()),
                    launches=self._tables.launches.view(),
                    leases=self._tables.leases.view(),
                    latest=self._latest() if self._latest is not None else empty(GPU_COLUMNS),
                    simulated=self._simulated,
                    site_accelerators=self._site_accelerators,
                )
            return self._state

    def advance(self) -> None:
        """Batches have become readable: the next state is a new one."""
        with self._lock:
            self._generation += 1

    def found(self, job_id: str) -> JobRecord | None:
        """A job as nodes and sources told of it, without what was declared; None when there is no such job."""
        with self._lock:
            self._jobs.settle()
            return next((job for job in self._tables.jobs.records.values() if job.job_id == job_id), None)

    def declared_of(self, number: int) -> Mapping[str, DeclaredFact]:
        """The declared facts of a job, by name."""
        job = self._declared.all().get(number)
        return {} if job is None else job.facts

    def declare(self, number: int, facts: Mapping[str, DeclaredFact]) -> None:
        """Set facts of a job; they are durable and count from the next state on.

        Raises:
            Unavailable: the control state cannot be written.
        """
        self._declared.declare(number, facts)
        self.advance()

    def withdraw(self, number: int, fact: str) -> bool:
        """Forget a declared fact; whether it was declared.

        Raises:
            Unavailable: the control state cannot be written.
        """
        withdrawn = self._declared.withdraw(number, fact)
        self.advance()
        return withdrawn

    def warm_steps(self, stored: Columns) -> None:
        """Know the steps that are stored already, so that another node's report of them is not stored again."""
        with self._lock:
            self._steps.warm(stored)

    def take_documents(self) -> Documents:
        """What has changed and is not saved; it counts as saved from now on."""
        with self._lock:
            taken = {table.kind: table.take_unsaved() for table in self._tables.all()}
        return {kind: documents for kind, documents in taken.items() if documents}

    def not_saved(self) -> None:
        """The documents taken last could not be saved: all are to be saved again."""
        with self._lock:
            for table in self._tables.all():
                table.keep_unsaved()

    def give_back(self, resolved: Resolved) -> None:
        """The batch was not stored: its steps may come again."""
        with self._lock:
            self._steps.give_back(resolved.claims)

    def resolve(
        self, batch: Batch, received_at_seconds: float, sent_at_seconds: float | None = None
    ) -> Resolved:
        """A batch with every name in it a number; what it tells of the fleet is taken in."""
        with self._lock:
            self._generation += 1
            return self._resolve(batch, received_at_seconds, sent_at_seconds)

    def _resolve(self, batch: Batch, received_at: float, sent_at: float | None) -> Resolved:
        place = self._nodes.place(batch, received_at, sent_at)
        if batch.gpus is not None:
            self._slots.inventory(place, batch.gpus)
        if batch.node_facts is not None:
            self._slots.expected(place, batch.node_facts)
        if place.told and batch.expected_gpu_count is not None:
            self._slots.told(place, batch.expected_gpu_count)
        gpus = self._slots.numbers(place, {sample.gpu for sample in batch.gpu_samples}, _named(batch))
        jobs = self._job_numbers(place, batch, gpus)
        claims = Claims()
        fresh = self._steps.fresh(batch.steps, jobs, claims)
        taken = Taken(
            batch=batch,
            place=place,
            gpus=gpus,
            jobs=jobs,
            steps=tuple(record for record, _ in fresh),
            step_launches=tuple(launch for _, launch in fresh),
            phase_launches=tuple(self._launch(phase, jobs) for phase in batch.phases),
        )
        self._note_sessions(place, batch, jobs)
        self._note_leases(place, batch, gpus, jobs)
        self._note_remarks(place, batch, jobs)
        return Resolved(taken=taken, claims=claims)

    def _job_numbers(self, place: Place, batch: Batch, gpus: Mapping[str, int | None]) -> dict[str, int]:
        """The number of every job that the batch names."""
        numbers = {
            job.ref: self._jobs.sight(
                place,
                Seen(
                    job=job,
                    gpus=_known(job.gpus, gpus),
                    leased_gpus=None if job.leased_gpus is None else _known(job.leased_gpus, gpus),
                    gpu_ranks=_ranked(job, gpus),
                ),
            )
            for job in batch.jobs
        }
        alive = {sample.job for sample in batch.gpu_samples} | {record.job for record in batch.steps}
        for ref in _refs(batch) - numbers.keys():
            numbers[ref] = self._jobs.of(place, ref)
            if ref in alive:
                self._jobs.touch(place, ref)
        return numbers

    def _launch(self, phase: Phase, jobs: Mapping[str, int]) -> int:
        return self._launches.number(
            jobs[phase.job], SOURCE_KINDS.index(phase.source), phase.source_id, phase.session
        )

    def _note_sessions(self, place: Place, batch: Batch, jobs: Mapping[str, int]) -> None:
        sources = {record.source_id: SOURCE_KINDS.index(record.source) for record in batch.steps}
        for mark in batch.sessions:
            self._launches.mark(place, jobs[mark.job], mark, sources.get(mark.source_id))

    def _note_leases(
        self, place: Place, batch: Batch, gpus: Mapping[str, int | None], jobs: Mapping[str, int]
    ) -> None:
        for lease in batch.leases:
            self._leases.told(place, jobs[lease.job], lease, _known(lease.gpus, gpus))
        stepping = {record.job for record in batch.steps}
        ended = [] if place.told else self._jobs.sweep(place)
        for ref, number in (*jobs.items(), *ended):
            job = self._tables.jobs.records[number]
            part = part_of(job, place.node, ref)
            if part is not None:
                instrumented = bool(job.runs) or ref in stepping
                self._leases.of_part(place, job, part, instrumented=instrumented)

    def _note_remarks(self, place: Place, batch: Batch, jobs: Mapping[str, int]) -> None:
        for finding in batch.findings:
            self._jobs.add_finding(jobs[finding.job], finding.code, finding.text, finding.values)
        for followed in batch.node_facts.logs if batch.node_facts is not None else ():
            self._jobs.log_state(place, followed.job, followed.problem)


def _load(control: Control) -> _Tables:
    return _Tables(
        nodes=Table("node", _by_number(control.load("node", Node))),
        gpus=Table("gpu", _by_number(control.load("gpu", Gpu))),
        jobs=Table("job", _by_number(control.load("job", JobRecord))),
        identities=Table("identity", _by_number(control.load("identity", Identity))),
        launches=Table("launch", _by_number(control.load("launch", Launch))),
        leases=Table("lease", control.load("lease", LeaseRecord)),
    )


def _by_number(documents: Mapping[str, Any]) -> dict[int, Any]:
    return {int(key): document for key, document in documents.items()}


def _named(batch: Batch) -> set[str]:
    """Every GPU that jobs, leases and events of the batch name."""
    named = {event.gpu for event in batch.events if event.gpu}
    for job in batch.jobs:
        named.update(job.gpus, job.leased_gpus or ())
    for lease in batch.leases:
        named.update(lease.gpus)
    return named


def _refs(batch: Batch) -> set[str]:
    """Every handle of a job in the batch."""
    refs = {sample.job for sample in batch.gpu_samples if sample.job is not None}
    named: Iterable[Any]
    for named in (batch.steps, batch.phases, batch.sessions, batch.leases, batch.findings, batch.job_samples):
        refs.update(row.job for row in named)
    if batch.node_facts is not None:
        refs.update(log.job for log in batch.node_facts.logs)
    return refs


def _ranked(job: JobSighting, gpus: Mapping[str, int | None]) -> tuple[tuple[int, int], ...]:
    """(GPU's number, rank) of each GPU whose rank the node knows; none where the two lists do not fit."""
    if len(job.gpu_ranks) != len(job.gpus):
        return ()
    pairs = ((gpus.get(uuid), rank) for uuid, rank in zip(job.gpus, job.gpu_ranks, strict=True))
    return tuple(sorted((gpu, rank) for gpu, rank in pairs if gpu is not None and rank is not None))


def _known(uuids: Iterable[str], gpus: Mapping[str, int | None]) -> tuple[int, ...]:
    return tuple(sorted(number for uuid in uuids if (number := gpus.get(uuid)) is not None))
