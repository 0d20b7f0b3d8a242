"""What diagnosis looks at: a run's signals over one window of five minutes, after warm-up. None is not known."""

from dataclasses import dataclass

from flopwatch_collector.compute.detection.change import Change
from flopwatch_collector.compute.detection.overdue import Silence
from flopwatch_collector.compute.detection.peers import GpuSignal, LinkSignal


@dataclass(frozen=True, kw_only=True, slots=True)
class Counters:
    """Means over the run's GPUs; rates are shares of the line rate."""

    kernel_active_ratio: float | None = None
    sm_active_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    nvlink_ratio: float | None = None
    nic_ratio: float | None = None
    pcie_receive_bytes_per_second: float | None = None
    power_limit_ratio: float | None = None
    """Power over its limit."""
    power_cap_share: float | None = None
    """Share of samples with only the software power cap among the clock reasons."""
    spread_ratio: float | None = None
    """Difference of kernel activity between the GPUs of one node, for 120 s."""
    kernel_p95_ratio: float | None = None
    memory_p95_ratio: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The hosts of the run."""

    cpu_busy_ratio: float | None = None
    cpu_p95_ratio: float | None = None
    main_thread_ratio: float | None = None
    """Of one core."""
    io_wait_ratio: float | None = None
    loader_ratio: float | None = None
    """CPU of the busiest data-loader process, of one core."""
    cpu_pressure_ratio: float | None = None
    memory_pressure_ratio: float | None = None
    io_pressure_ratio: float | None = None
    """Share of time in which some task of the run's cgroups waited for the resource, else of its nodes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shares:
    """Shares of the run's time, from its own records; ``recorded`` says which phases were told."""

    data_wait_ratio: float | None = None
    checkpoint_ratio: float | None = None
    evaluation_ratio: float | None = None
    checkpoint_recorded: bool = False
    periodic_dip_ratio: float | None = None
    """Share lost in dips that come back regularly and no phase explains; None where there are none."""
    dip_seconds: float | None = None
    dip_period_seconds: float | None = None
    dip_period_steps: float | None = None
    """None where they come by the clock."""
    write_io_high: bool | None = None
    """Whether the run writes to storage in these dips, and not between them."""
    spike_ratio: float | None = None
    spikes_on_random_ranks: bool | None = None
    exposed_communication_ratio: float | None = None
    """Where ranks told their communication phases."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline:
    """The pipeline schedule: stages, micro batches, interleaved chunks a stage."""

    stages: int
    micro_batches: int
    chunks: int = 1

    @property
    def bubble_ratio(self) -> float:
        """Share of the step in which stages wait: (p-1)/v over m + (p-1)/v (Narayanan et al. 2021, 1F1B)."""
        idle = (self.stages - 1) / self.chunks
        return idle / (self.micro_batches + idle)


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency:
    """The run's MFU and what it is held against."""

    mfu_ratio: float | None = None
    hfu_ratio: float | None = None
    norm_ratio: float | None = None
    """What runs of its class reach on this GPU."""
    target_ratio: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """How a run is laid out over its GPUs, and what that left."""

    data: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    context: int | None = None
    expert: int | None = None
    recompute: str | None = None
    memory_headroom_ratio: float | None = None

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """The parallel sizes, which make two layouts the same."""
        return self.data, self.tensor, self.pipeline, self.context, self.expert

    @property
    def name(self) -> str:
        """``DP 64 x TP 8``; sizes of 1 and unknown ones are left out."""
        pairs = zip(("DP", "TP", "PP", "CP", "EP"), self.sizes, strict=True)
        return " x ".join(f"{word} {size}" for word, size in pairs if size is not None and size > 1) or "DP 1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sibling:
    """A run of the same model, batch, sequence length and number format on the same GPU model."""

    job_id: str
    mfu_ratio: float
    gpus: int
    layout: Layout
    nodes: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEvidence:
    """All that is known of a run over the window."""

    coverage_ratio: float = 1.0
    """Samples that came, of those expected."""
    silence: Silence | None = None
    counters: Counters = Counters()
    host: Host = Host()
    shares: Shares = Shares()
    efficiency: Efficiency = Efficiency()
    gpus: tuple[GpuSignal, ...] = ()
    links: tuple[LinkSignal, ...] = ()
    pipeline: Pipeline | None = None
    pipeline_stages: int | None = None
    """Known also where the number of micro batches is not."""
    rank_rotates: bool | None = None
    """Whether the slow rank changes from report to report."""
    change: Change | None = None
    this: Sibling | None = None
    """The run itself as others see it."""
    siblings: tuple[Sibling, ...] = ()
