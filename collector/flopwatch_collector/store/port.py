"""The ports of what is kept: ``Store`` for measurements, ``Control`` for small mutable state.

Names of questions, never SQL. Times are epoch seconds; intervals are half open, ``start <= ts < end``.
Numbers of raw tables come back as float64 with NaN for unknown, texts as objects with None; rollup columns
keep their type, and become float64 where a row lacks a number.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from flopwatch_collector.model import BatchId, Columns, RawRows

T = TypeVar("T")
RollupKind = Literal["job5m", "job1h", "ledger5m", "ledger1d"]


class Overloaded(Exception):
    """The queue of unwritten batches is full: the sender should wait ``retry_after_seconds``."""

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(f"too many batches wait to be written; retry after {retry_after_seconds:g} s")
        self.retry_after_seconds = retry_after_seconds


class Unavailable(Exception):
    """Nothing can be made durable at present, for the reason given (a full disk)."""


class StoreLocked(Exception):
    """Another process holds the data folder."""


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


class Store(Protocol):
    """Measurements. One process writes; reads may come from any thread."""

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

    def node_series(self, start: float, end: float, step_seconds: float, nodes: Iterable[int]) -> Columns:
        """Network throughput of nodes in buckets, reset-safe.

        Columns ``ts``, ``node``, ``transmit_bytes_per_second``, ``receive_bytes_per_second`` over all RDMA
        ports (Ethernet where a node has none).
        """
        ...

    def steps(self, start: float, end: float, *, jobs: Iterable[int] | None = None) -> Columns:
        """Step rows that ended in the interval, ``STEP_COLUMNS``, sorted by (job, ts); as sent, not deduplicated."""
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

    def close(self) -> None:
        """Let the database go."""
        ...


DATA_FORMAT = 1
"""Version of the folder's layout, kept in it; another one is refused with a clear message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreSettings:
    """Where the embedded store is and how long it keeps what."""

    folder: Path
    raw_days: float = 14.0
    rollup_days: float = 90.0
    hourly_days: float = 730.0
    flush_seconds: float = 0.2
    queue_batches: int = 20_000
    memory_limit: str = "512MB"
    free_disk_ratio: float = 0.05
