"""What becomes of a batch when a part of its way fails."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.integration.collector.batches import NOW, MemoryControl, batch, device, sample, slurm, step

from flopwatch import wire
from flopwatch_collector.ingest.accept import Ingest, Written
from flopwatch_collector.ingest.decode import MalformedBatch
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.port import Overloaded, Unavailable, WriteResult


@dataclass
class Disk:
    """Takes batches as the store does; says no when told to."""

    refusal: Exception | None = None
    hold: bool = False
    held: list["Future[WriteResult]"] = field(default_factory=list)
    stored: dict[BatchId, RawRows] = field(default_factory=dict)

    def submit(self, key: BatchId, rows: RawRows) -> "Future[WriteResult]":
        if self.refusal is not None:
            raise self.refusal
        done: Future[WriteResult] = Future()
        duplicate = key in self.stored
        self.stored.setdefault(key, rows)
        if self.hold:
            self.held.append(done)
        else:
            done.set_result(WriteResult(duplicate=duplicate))
        return done


@dataclass
class FullControl(MemoryControl):
    """A control state that can be full."""

    full: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def save_all(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        if self.full:
            raise Unavailable("disk full")
        super().save_all(kinds)


@dataclass
class Parts:
    control: FullControl
    disk: Disk
    directory: Directory
    ingest: Ingest
    told: list[Written]


@pytest.fixture
def parts() -> Iterator[Parts]:
    control, disk, told = FullControl(), Disk(), list[Written]()
    directory = Directory(control, lambda: NOW)
    ingest = Ingest(directory, control, disk, clock=lambda: NOW, written=told.append)  # type: ignore[arg-type]
    yield Parts(control, disk, directory, ingest, told)
    ingest.close()


FULL = batch(
    at=NOW - 5,
    gpus=(device("A"),),
    gpu_samples=(sample("A", NOW - 9), sample("A", NOW - 5)),
    jobs=(slurm(),),
    steps=(step(1, "slurm:77", NOW - 7),),
)


def test_documents_are_saved_before_the_rows_that_name_their_numbers(parts: Parts) -> None:
    saves_at_submit = []
    submit = parts.disk.submit

    def noting(key: BatchId, rows: RawRows) -> "Future[WriteResult]":
        saves_at_submit.append(set(parts.control.documents))
        return submit(key, rows)

    parts.disk.submit = noting  # type: ignore[method-assign]

    parts.ingest.accept_batch(FULL).result(timeout=10)

    assert saves_at_submit[0] >= {"node", "gpu", "job", "identity", "launch"}


def test_when_documents_cannot_be_saved_no_row_is_stored_and_the_next_try_saves_them(parts: Parts) -> None:
    parts.control.full = True
    with pytest.raises(Unavailable, match="disk full"):
        parts.ingest.accept_batch(FULL).result(timeout=10)
    stored = dict(parts.disk.stored)
    parts.control.full = False

    accepted = parts.ingest.accept_batch(FULL).result(timeout=10)

    assert stored == {}
    assert not accepted.duplicate
    assert set(parts.control.documents) >= {"node", "gpu", "job", "identity", "launch"}
    (rows,) = parts.disk.stored.values()
    assert rows.step["step"].tolist() == [1]


@pytest.mark.parametrize("refusal", [Overloaded(2.0), Unavailable("full")], ids=["queue full", "disk full"])
def test_when_the_store_refuses_the_sender_hears_it_and_may_come_again(
    parts: Parts, refusal: Exception
) -> None:
    parts.disk.refusal = refusal
    with pytest.raises(type(refusal)):
        parts.ingest.accept_batch(FULL).result(timeout=10)
    parts.disk.refusal = None

    assert not parts.ingest.accept_batch(FULL).result(timeout=10).duplicate
    (rows,) = parts.disk.stored.values()
    assert rows.step["step"].tolist() == [1]


def test_a_value_the_store_cannot_keep_is_the_senders_error(parts: Parts) -> None:
    parts.disk.refusal = ValueError("gpu.power_watts is 1e300")

    with pytest.raises(MalformedBatch, match="power_watts"):
        parts.ingest.accept_batch(FULL).result(timeout=10)


def test_no_answer_is_given_before_the_batch_is_durable(parts: Parts) -> None:
    parts.disk.hold = True

    first, second = parts.ingest.accept_batch(FULL), parts.ingest.accept_batch(FULL)
    while not parts.disk.held:
        time.sleep(0.001)
    early = (first.done(), second.done())
    parts.disk.held[0].set_result(WriteResult(duplicate=False))

    assert early == (False, False)
    assert (first.result(timeout=10).duplicate, second.result(timeout=10).duplicate) == (False, True)
    assert len(parts.disk.held) == 1


def test_a_write_that_fails_later_is_heard_by_everyone_who_waits(parts: Parts) -> None:
    parts.disk.hold = True
    first, second = parts.ingest.accept_batch(FULL), parts.ingest.accept_batch(FULL)
    while not parts.disk.held:
        time.sleep(0.001)

    parts.disk.held[0].set_exception(Unavailable("disk full"))

    for waiting in (first, second):
        with pytest.raises(Unavailable):
            waiting.result(timeout=10)


def test_what_became_durable_is_told_with_its_stretch_of_time(parts: Parts) -> None:
    parts.ingest.accept_batch(FULL).result(timeout=10)

    assert parts.told == [Written(seconds=0.0, duplicate=False, first_seconds=NOW - 9, last_seconds=NOW - 5)]


def test_counts_follow(parts: Parts) -> None:
    parts.ingest.accept_batch(FULL).result(timeout=10)
    parts.ingest.accept_batch(FULL).result(timeout=10)

    stats = parts.ingest.stats()

    assert (stats.accepted, stats.duplicates, stats.rows, stats.waiting) == (1, 1, 3, 0)


def test_each_accepted_batch_makes_a_new_generation(parts: Parts) -> None:
    before = parts.directory.state().generation

    parts.ingest.accept_batch(FULL).result(timeout=10)

    assert parts.directory.state().generation > before


def test_a_state_that_was_handed_out_does_not_change(parts: Parts) -> None:
    parts.ingest.accept_batch(FULL).result(timeout=10)
    state = parts.directory.state()

    parts.ingest.accept_batch(batch("other", NOW)).result(timeout=10)

    assert len(state.nodes) == 1
    assert len(parts.directory.state().nodes) == 2


class Poisoned:
    """A directory that one node's batches break."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.simulated = False

    def resolve(self, sent: wire.Batch, *times: float | None) -> object:
        if sent.node == "poison":
            raise ZeroDivisionError("no batch should do this")
        return self._directory.resolve(sent, *times)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        return getattr(self._directory, name)


def test_a_batch_that_breaks_the_directory_fails_alone(parts: Parts) -> None:
    ingest = Ingest(Poisoned(parts.directory), parts.control, parts.disk)  # type: ignore[arg-type]
    ingest.gather_seconds = 0.2

    futures = [ingest.accept_batch(batch(node, NOW)) for node in ("a", "poison", "b")]

    assert not futures[0].result(timeout=10).duplicate
    with pytest.raises(ZeroDivisionError):
        futures[1].result(timeout=10)
    assert not futures[2].result(timeout=10).duplicate
    ingest.close()
