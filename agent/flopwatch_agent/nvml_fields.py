"""Field ids for ``nvmlDeviceGetFieldValues``, the range of each gauge, and which ids a driver branch knows.

Some ids changed their meaning between driver branches (251 to 273), so the clock-event counters are asked for
only on a branch on which their meaning is known.
"""

from dataclasses import dataclass

ALL_LINKS = 0xFFFFFFFF
MILLI = 1e-3
KIBI = 1024
NANO = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One value of the batched call."""

    name: str
    """Field of ``flopwatch.wire.GpuSample`` or a detail's name; ``part:NAME`` for a summand."""
    field_id: int
    scope: int = 0
    scale: float = 1
    low: float = 0.0
    high: float = float("inf")
    since_branch: int = 0
    until_branch: int = 10_000


COUNTER_LIMIT = 2.0**63
MODULE = 1
"""Scope of power and energy: GPU, CPU and memory of a Grace superchip together."""
MODULE_WATTS = 6000.0
FIRST_MOVED_BRANCH, LAST_MOVED_BRANCH = 575, 579


def clock_event_times(prefix: str) -> tuple[Field, ...]:
    """Cumulative time of the three slowdowns by heat and by the power brake; 575 alone numbered them otherwise."""
    names = ("sw_thermal", "hw_thermal", "hw_power_brake")
    moved = tuple(
        Field(
            name=prefix.format(name), field_id=251 + place, scale=NANO, high=COUNTER_LIMIT,
            since_branch=FIRST_MOVED_BRANCH, until_branch=LAST_MOVED_BRANCH,
        )
        for place, name in enumerate(names)
    )  # fmt: skip
    return moved + tuple(
        Field(
            name=prefix.format(name), field_id=269 + place, scale=NANO, high=COUNTER_LIMIT, since_branch=580
        )
        for place, name in enumerate(names)
    )


FIELDS: tuple[Field, ...] = (
    Field(name="power_watts", field_id=186, scale=MILLI, high=2000.0),
    Field(name="power_average_watts", field_id=185, scale=MILLI, high=2000.0),
    Field(name="energy_joules", field_id=83, scale=MILLI, high=COUNTER_LIMIT),
    Field(name="memory_temperature_celsius", field_id=82, low=-40.0, high=150.0),
    Field(name="ecc_corrected", field_id=3, high=COUNTER_LIMIT),
    Field(name="ecc_uncorrected", field_id=4, high=COUNTER_LIMIT),
    Field(name="part:remapped_rows", field_id=142, high=1e6),
    Field(name="part:remapped_rows", field_id=143, high=1e6),
    Field(name="recovery_action", field_id=230, high=100, since_branch=570),
    *clock_event_times("part:throttle_seconds"),
)
NVLINK_FIELDS = (
    Field(name="nvlink_transmit_bytes", field_id=138, scope=ALL_LINKS, scale=KIBI, high=COUNTER_LIMIT),
    Field(name="nvlink_receive_bytes", field_id=139, scope=ALL_LINKS, scale=KIBI, high=COUNTER_LIMIT),
)
"""NVLink up to Hopper: KiB, one answer for all links."""
PCIE_FIELDS = (
    Field(name="pcie_transmit_bytes", field_id=197, high=COUNTER_LIMIT, since_branch=555),
    Field(name="pcie_receive_bytes", field_id=198, high=COUNTER_LIMIT, since_branch=555),
)
DETAIL_FIELDS: tuple[Field, ...] = (
    Field(name="clock_event_seconds/sw_power_cap", field_id=74, scale=NANO, high=COUNTER_LIMIT),
    Field(name="clock_event_seconds/sync_boost", field_id=76, scale=NANO, high=COUNTER_LIMIT),
    *clock_event_times("clock_event_seconds/{}"),
    Field(name="average_power_watts/gpu", field_id=185, scale=MILLI, high=2000.0),
    Field(name="average_power_watts/module", field_id=185, scope=MODULE, scale=MILLI, high=MODULE_WATTS),
    Field(name="module_power_watts", field_id=186, scope=MODULE, scale=MILLI, high=MODULE_WATTS),
    Field(name="row_remap_pending", field_id=144, high=2.0),
    Field(name="row_remap_failed", field_id=145, high=2.0),
    Field(name="pcie_errors/replay", field_id=94, high=COUNTER_LIMIT),
    Field(name="pcie_errors/correctable", field_id=173, high=COUNTER_LIMIT, since_branch=525),
    Field(name="pcie_errors/non_fatal", field_id=179, high=COUNTER_LIMIT, since_branch=525),
    Field(name="pcie_errors/fatal", field_id=180, high=COUNTER_LIMIT, since_branch=525),
)
NVLINK_ERROR_FIELDS = (
    ("replay", 161, 525), ("recovery", 162, 525), ("crc", 163, 525),
)  # fmt: skip
"""Up to Hopper, one answer for all links."""
BLACKWELL_NVLINK_ERROR_FIELDS = (
    ("malformed_packet", 206), ("buffer_overrun", 207), ("receive", 208), ("receive_remote", 209),
    ("local_link_integrity", 211), ("transmit_discard", 212), ("recovery_succeeded", 213), ("recovery_failed", 214),
    ("symbol", 221),
)  # fmt: skip
BLACKWELL_ARCHITECTURE = 10
BLACKWELL_LINK_BRANCH = 560
NEWEST_KNOWN_BRANCH = 615

GPM_METRICS: tuple[tuple[int, str], ...] = (
    (2, "sm_active_ratio"),
    (3, "sm_occupancy_ratio"),
    (5, "tensor_active_ratio"),
    (10, "dram_active_ratio"),
    (20, "pcie_transmit_bytes"),
    (21, "pcie_receive_bytes"),
    (60, "link_receive_rate"),
    (61, "link_transmit_rate"),
)
LINK_RATES = ("link_receive_rate", "link_transmit_rate")
"""What all NVLinks carry, in MiB/s; only to tell whether their counters may be believed."""
GPM_CYCLES: tuple[tuple[int, str], ...] = (
    (248, "sm_cycles/elapsed"),
    (249, "sm_cycles/active"),
    (250, "sm_cycles/tensor"),
)
"""Cumulative since boot, so that no time lies between two pairs of samples."""
GPM_CYCLES_BRANCH = 595


def nvlink_fields(architecture: int | None, branch: int | None, links: int) -> tuple[Field, ...]:
    """How a GPU counts NVLink bytes: one sum up to Hopper, link by link from Blackwell on."""
    if not counts_by_link(architecture, branch):
        return NVLINK_FIELDS
    return tuple(
        Field(name=f"part:{name}", field_id=field_id, scope=link, high=COUNTER_LIMIT)
        for name, field_id in (("nvlink_transmit_bytes", 202), ("nvlink_receive_bytes", 204))
        for link in range(links)
    )


def nvlink_error_fields(architecture: int | None, branch: int | None, links: int) -> tuple[Field, ...]:
    """How a GPU counts NVLink errors."""
    if counts_by_link(architecture, branch):
        return tuple(
            Field(name=f"part:nvlink_errors/{kind}", field_id=field_id, scope=link, high=COUNTER_LIMIT)
            for kind, field_id in BLACKWELL_NVLINK_ERROR_FIELDS
            for link in range(links)
        )
    return tuple(
        Field(name=f"nvlink_errors/{kind}", field_id=field_id, scope=ALL_LINKS, high=COUNTER_LIMIT)
        for kind, field_id, since in NVLINK_ERROR_FIELDS
        if branch is None or branch >= since
    )


def counts_by_link(architecture: int | None, branch: int | None) -> bool:
    """Whether NVLink's counters are asked for link by link."""
    newest = branch is not None and branch >= BLACKWELL_LINK_BRANCH
    return newest and architecture is not None and architecture >= BLACKWELL_ARCHITECTURE


def branch_of(driver_version: str | None) -> int | None:
    """The driver's branch: 580 for ``580.126.09``; None when it cannot be told."""
    head = (driver_version or "").split(".", 1)[0]
    return int(head) if head.isdigit() else None


def known_on(fields: tuple[Field, ...], branch: int | None) -> tuple[Field, ...]:
    """The fields whose meaning is known on a driver branch; ids that moved are left out when it is unknown."""
    if branch is None:
        return tuple(item for item in fields if item.since_branch == 0)
    return tuple(item for item in fields if item.since_branch <= branch <= item.until_branch)
