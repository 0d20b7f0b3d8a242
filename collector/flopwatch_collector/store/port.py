"""The ports of what is kept: ``Store`` for measurements, ``Control`` for small mutable state.

Names of questions, never SQL. Times are epoch seconds; intervals are half open, ``start <= ts < end``.
Numbers of raw tables come back as float64 with NaN for unknown, texts as objects with None; rollup columns
keep their type, and become float64 where a row lacks a number.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args

from flopwatch_collector.model import BatchId, Columns, RawRows

T = TypeVar("T")
RollupKind = Literal["job5m", "job1h", "ledger5m", "ledger1d"]
ROLLUP_KINDS: tuple[RollupKind, ...] = ("job5m", "job1h", "ledger5m", "ledger1d")

HostKind = Literal["node", "job"]
"""Whose host samples: those of whole nodes, or of jobs on them."""
Capability = Literal[
    "write", "latest_gpus", "gpu_samples", "job_series", "gpu_series", "node_series", "port_samples", "host_samples",
    "steps", "phases", "events", "windows",
    "retain", "check", "compact", "backup",
]  # fmt: skip
"""What an engine can do; the names are those of the questions (``submit`` and ``put_windows`` are "write")."""
CAPABILITIES: frozenset[Capability] = frozenset(get_args(Capability))

Progress = Callable[[str, float], None]
"""Told of long work: what is done at present, in words, and the share that is done, 0 to 1."""


def quiet(doing: str, done_ratio: float) -> None:
    """The ``Progress`` that tells nobody."""


class Overloaded(Exception):
    """The queue of unwritten batches is full: the sender should wait ``retry_after_seconds``."""

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(f"too many batches wait to be written; retry after {retry_after_seconds:g} s")
        self.retry_after_seconds = retry_after_seconds


class Unavailable(Exception):
    """Nothing can be made durable at present, for the reason given (a full disk)."""


class StoreLocked(Exception):
    """Another process holds the data folder."""


class TooSlow(Exception):
    """A question took longer than it may, and was interrupted; a shorter range may be answered."""


class NotSupported(Exception):
    """The engine cannot do what was asked, for the reason given; ``capabilities`` says so beforehand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something wrong with what is kept, as ``check`` finds it or a start survived it."""

    code: Literal["unreadable", "missing_file", "orphan", "set_aside"]
    text: str
    """In words, with the file or table it is about."""
    batches_missing: int | None = None
    """Batches that were acknowledged and are not there; None where that is not known or not the question."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """A consistent copy of the store as of one moment."""

    folder: Path
    taken_seconds: float
    """When: every batch acknowledged before is in it."""
    files: int
    bytes: int
    rows: Mapping[str, int]
    """By raw table and kind of rollup."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteResult:
    """What became of a batch: it is durable, now or since an earlier arrival."""

    duplicate: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreStats:
    """The store's size and health, for metrics and ``store stats``."""

    rows: dict[str, int]
    bytes_on_disk: int
    pending_batches: int
    commits: int
    last_commit_seconds: float | None
    reopened: int
    problems: tuple[str, ...] = ()
    """What went wrong and was survived, in words, oldest first."""
    batches_missing: int = 0
    """Batches that were acknowledged and could not be read again (a damaged log), as far as it is known."""


class Store(Protocol):
    """Measurements. One process writes; reads may come from any thread.

    Every question may raise ``Unavailable`` (the engine cannot be reached) and ``TooSlow``.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this engine can do; all else raises ``NotSupported``."""
        ...

    def submit(self, batch: BatchId, rows: RawRows) -> "Future[WriteResult]":
        """Queue a batch; the future is done when it is durable.

        Raises:
            Overloaded: the queue is full.
            Unavailable: nothing can be made durable.
        """
        ...

    def latest_gpus(self) -> Columns:
        """The newest sample of every GPU, ``GPU_COLUMNS``."""
        ...

    def gpu_samples(
        self, start: float, end: float, columns: tuple[str, ...], *, gpus: Iterable[int] | None = None
    ) -> Columns:
        """Raw samples sorted by (gpu, ts), with ``ts``, ``gpu`` and the asked columns of ``GPU_COLUMNS``."""
        ...

    def job_series(
        self, start: float, end: float, step_seconds: float, *, jobs: Iterable[int] | None = None
    ) -> Columns:
        """Raw samples of jobs in buckets, sorted by (job, ts).

        Columns ``ts`` (bucket start), ``job``, ``samples`` (count), ``gpus`` (distinct) and means of
        ``kernel_active_ratio``, ``tensor_active_ratio``, ``sm_active_ratio``, ``power_watts``,
        ``memory_used_bytes``, ``sm_clock_hertz``; samples without a job are job 0.
        """
        ...

    def gpu_series(
        self, start: float, end: float, step_seconds: float, columns: tuple[str, ...], gpus: Iterable[int]
    ) -> Columns:
        """Raw samples of GPUs in buckets, sorted by (gpu, ts).

        Columns ``ts`` (bucket start), ``gpu``, and means of the asked columns of ``GPU_COLUMNS``.

        Raises:
            ValueError: an asked column is not of ``GPU_COLUMNS``.
        """
        ...

    def port_samples(self, start: float, end: float, nodes: Iterable[int]) -> Columns:
        """Raw samples of nodes' network ports, ``PORT_COLUMNS``, sorted by (node, port, ts)."""
        ...

    def host_samples(self, kind: HostKind, start: float, end: float, numbers: Iterable[int]) -> Columns:
        """Raw host samples: of nodes ``NODE_COLUMNS`` by (node, ts), of jobs ``HOST_COLUMNS`` by (job, ts)."""
        ...

    def node_series(self, start: float, end: float, step_seconds: float, nodes: Iterable[int]) -> Columns:
        """Network throughput of nodes in buckets, reset-safe.

        Columns ``ts``, ``node``, ``transmit_bytes_per_second``, ``receive_bytes_per_second`` over all RDMA
        ports (Ethernet where a node has none).
        """
        ...

    def steps(self, start: float, end: float, *, jobs: Iterable[int] | None = None) -> Columns:
        """Step rows that ended in the interval, ``STEP_COLUMNS``, sorted by (job, ts).

        Ingest takes a step of a launch once; of one that several collectors took the first is shown.
        """
        ...

    def phases(self, start: float, end: float, *, jobs: Iterable[int] | None = None) -> Columns:
        """Phases that overlap the interval, ``PHASE_COLUMNS``; of one phase sent twice the one with an end."""
        ...

    def events(self, start: float, end: float, kinds: Iterable[str] | None = None) -> Columns:
        """Events in the interval, ``EVENT_COLUMNS``, sorted by ts."""
        ...

    def put_windows(self, kind: RollupKind, windows: Iterable[float], rows: Columns) -> None:
        """Replace all rows of these windows (``rows["ts"]`` is the window's start) in one step, durably.

        A window may be put again (late data); readers see the newest only. A window with no rows is empty.
        """
        ...

    def windows(
        self, kind: RollupKind, start: float, end: float, *, jobs: Iterable[int] | None = None
    ) -> Columns:
        """Rollup rows whose window starts in the interval, all columns they were put with, sorted by ts."""
        ...

    def done_windows(self, kind: RollupKind, start: float, end: float) -> frozenset[float]:
        """Starts of the windows that have been put."""
        ...

    def first_sample_seconds(self) -> float | None:
        """Event time of the oldest raw GPU sample or rollup window."""
        ...

    def retain(self, now: float) -> int:
        """Drop what is older than the retention settings; returns bytes freed."""
        ...

    def stats(self) -> StoreStats:
        """Sizes and health."""
        ...

    def check(self, progress: Progress = quiet) -> tuple[Problem, ...]:
        """Read everything that is kept; what is unreadable or missing, none when all is well."""
        ...

    def compact(self, progress: Progress = quiet) -> int:
        """Merge small files and drop superseded rows now, as upkeep does in time; returns bytes freed."""
        ...

    def backup(
        self, destination: Path, beside: Callable[[Path], None] | None = None, progress: Progress = quiet
    ) -> Saved:
        """Copy everything as of one moment into a new folder, while writing and reading go on.

        ``beside`` copies into the folder what must be of the same moment (the control state).

        Raises:
            FileExistsError: the destination is there and not empty.
            Unavailable: it cannot be written (a full disk).
            NotSupported: the engine has its own way, which the message names.
        """
        ...

    def settle(self) -> None:
        """Return when upkeep that is due (closing hours, merging) is done."""
        ...

    def close(self) -> None:
        """Write what waits, and let the folder go."""
        ...


class Control(Protocol):
    """Small mutable state: documents by kind and key, each change durable and atomic."""

    def load(self, kind: str, type_: type[T]) -> dict[str, T]:
        """All documents of a kind, by key, as values of ``type_`` (a frozen dataclass)."""
        ...

    def save(self, kind: str, documents: Mapping[str, Any]) -> None:
        """Insert or replace documents in one transaction."""
        ...

    def save_all(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        """Insert or replace documents of several kinds in one transaction."""
        ...

    def delete(self, kind: str, keys: Iterable[str]) -> None:
        """Remove documents; keys that are not there are ignored."""
        ...

    def replace(self, kind: str, key: str, expected: Any | None, document: Any) -> bool:
        """Save a document if it is still the expected one (None: if there is none); whether it was saved."""
        ...

    def take_lease(self, name: str, holder: str, seconds: float) -> bool:
        """Become or stay the one holder of a lease until ``seconds`` from now; False while another holds it.

        Time is the database's own, where several processes share it.
        """
        ...

    def drop_lease(self, name: str, holder: str) -> None:
        """Let a lease go before its time; nothing happens where another holds it."""
        ...

    def close(self) -> None:
        """Let the database go."""
        ...


DATA_FORMAT = 1
"""Version of the folder's layout, kept in it; another one is refused with a clear message."""


HOURLY_DAYS = 730.0


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreSettings:
    """Where the embedded store is and how long it keeps what."""

    folder: Path
    raw_days: float = 14.0
    raw_bytes: float | None = None
    """Closed hours of raw rows beyond this go, oldest first, though they are younger; None: no such limit."""
    rollup_days: float = 90.0
    hourly_days: float = HOURLY_DAYS
    flush_seconds: float = 0.2
    queue_batches: int = 20_000
    memory_limit: str = "512MB"
    free_disk_ratio: float = 0.05
    statement_seconds: float = 60.0
    """A question that takes longer is interrupted."""
