"""What every page shows in its frame, and what series and ranges are."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterInfo:
    """One cluster's size: slots known, and how many have reported lately."""

    name: str
    nodes: int
    gpus: int
    gpus_reporting: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """What every page shows in its frame."""

    version: str
    now_seconds: float
    data_time_seconds: float | None
    """Event time of the newest sample; pages say *data is N s old* from it."""
    generation: int
    """Rises whenever an answer may have changed: the key for memoising."""
    simulated: bool
    time_zone: str
    currency: str
    price_per_gpu_hour: float | None
    price_is_example: bool
    clusters: tuple[ClusterInfo, ...]
    history_progress_ratio: float | None = None
    """Share of older history that is filled in; ``None`` when nothing is being filled in."""
    variable_per_gpu_hour: float | None = None
    """What a busy GPU-hour costs beside ``price_per_gpu_hour``; ``None`` without a price."""
    teams: tuple[str, ...] = ()
    """Accounts of the jobs that run or ended within 30 days, by name."""
    unavailable: tuple[str, ...] = ()
    """What this source of data cannot answer, as codes: ``steps``, ``mfu``, ``ledger``, ``money``, ``verdict``,
    ``alert_history``, ``tensor_activity``, ``gpus``. It is None, empty or of no capacity in every answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """What is asked: how far back, which cluster, how many points a graph can show."""

    seconds: float = 86_400.0
    cluster: str | None = None
    points: int = 600
    end_seconds: float | None = None
    """Where the range ends; ``None`` is now, and so is a time to come. What a page says of today stays of today."""
    team: str | None = None
    """Whose ledger the Fleet page shows beside the fleet's; nothing else looks at it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Values over time; every column is as long as ``time_seconds``, gaps are ``None``."""

    level: str
    """What it was read from: ``raw``, ``5m`` or ``1h``."""
    step_seconds: float
    time_seconds: tuple[float, ...]
    columns: dict[str, tuple[float | None, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """One number with its reference and its recent course."""

    value: float | None
    reference: float | None
    spark: tuple[float | None, ...]
