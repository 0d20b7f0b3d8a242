"""A collector without its wire, over a scratch folder: recorded batches go in, its accounting is asked."""

from collections import deque
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from flopwatch_collector.accounting import Accounting, Terms
from flopwatch_collector.bookkeeping.prices import prices_of
from flopwatch_collector.config import Settings
from flopwatch_collector.ingest.accept import Accepted, Ingest
from flopwatch_collector.ingest.decode import MalformedBatch
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.replay.recording import Entry, Progress, Recording
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

IN_FLIGHT = 1_000
"""Batches on their way at once; the ingest refuses more than twice as many."""
FOREVER_DAYS = 36_500.0
MOST_TICKS = 10_000
PROGRESS_BATCHES = 20_000


class NotSettled(RuntimeError):
    """The accounting did not come to an end: a fault of the product, never of the data."""


@dataclass(slots=True)
class Fed:
    """What became of the batches."""

    accepted: int = 0
    duplicates: int = 0


class Scratch(AbstractContextManager["Scratch"]):
    """Ingest, store and accounting over a folder that nobody else uses, with ``now`` as given."""

    def __init__(self, folder: Path, settings: Settings, *, now: float, simulated: bool) -> None:
        self.now = now
        self._received = now
        self._simulated = simulated
        self._parts = ExitStack()
        try:
            self._open(folder, settings)
        except BaseException:
            self._parts.close()
            raise

    def _open(self, folder: Path, settings: Settings) -> None:
        self.control = SqliteControl(folder / "control.sqlite")
        self._parts.callback(self.control.close)
        kept = StoreSettings(folder=folder / "store", raw_days=FOREVER_DAYS, rollup_days=FOREVER_DAYS)
        self.store = EmbeddedStore(kept, lambda: self.now)
        self._parts.callback(self.store.close)
        self.directory = Directory(
            self.control,
            lambda: self.now,
            simulated=self._simulated,
            latest=self.store.latest_gpus,
            site_accelerators=settings.site_accelerators(),
        )
        self._terms = Terms(
            time_zone=settings.collector.time_zone,
            prices=prices_of(settings.costs),
            elastic_nodes=settings.collector.elastic_nodes,
        )
        self.ingest = Ingest(self.directory, self.control, self.store, clock=lambda: self._received)
        self._parts.callback(self.ingest.close)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parts.close()

    def feed(self, recording: Recording, progress: Progress) -> Fed:
        """Take all batches that were sampled up to ``now``, in order of time; what is refused is set aside."""
        fed = Fed()
        waiting: deque[tuple[Entry, Future[Accepted]]] = deque()
        entries = [entry for entry in recording.ordered() if entry.time_seconds <= self.now]
        for number, (entry, batch) in enumerate(
            zip(entries, recording.batches(entries), strict=True), start=1
        ):
            self._received = min(self.now, entry.received_at_seconds or self.now)
            own = replace(batch, simulated=self._simulated)
            try:
                while len(waiting) >= IN_FLIGHT:
                    _settle(*waiting.popleft(), recording, fed)
                accepted = self.ingest.accept_batch(own, sent_at_seconds=entry.sent_at_seconds)
                waiting.append((entry, accepted))
            except MalformedBatch as error:
                recording.note(f"{entry.node}/{entry.sequence}", 0, str(error))
            if number % PROGRESS_BATCHES == 0:
                progress(f"{number:,} of {len(entries):,} batches taken")
        while waiting:
            _settle(*waiting.popleft(), recording, fed)
        return fed

    def account(self, progress: Progress) -> Accounting:
        """The books, brought up to ``now``.

        Raises:
            NotSettled: the accounting finds no end.
        """
        gpus = self.directory.state().gpus.values()
        since = min((gpu.from_seconds for gpu in gpus), default=None)
        accounting = Accounting(
            self.store, self.control, self.directory, replace(self._terms, since_seconds=since)
        )
        learned = accounting.learned()
        for _ in range(MOST_TICKS):
            accounting.tick(self.now)
            share = accounting.progress()
            if share is not None:
                progress(f"{share:.0%} of the time is accounted for")
            if not accounting.settled():
                continue
            if accounting.learned() == learned or since is None:
                return accounting
            learned = accounting.learned()
            accounting.again(since, self.now)
        raise NotSettled(f"the accounting is not settled after {MOST_TICKS} rounds")


def _settle(entry: Entry, accepted: "Future[Accepted]", recording: Recording, fed: Fed) -> None:
    """Wait until a batch is durable."""
    try:
        duplicate = accepted.result().duplicate
    except MalformedBatch as error:
        recording.note(f"{entry.node}/{entry.sequence}", 0, str(error))
        return
    if duplicate:
        fed.duplicates += 1
    else:
        fed.accepted += 1
