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
    """Field of ``flopwatch.wire.GpuSample``, or ``part:NAME`` for a summand."""
    field_id: int
    scope: int = 0
    scale: float = 1
    low: float = 0.0
    high: float = float("inf")
    since_branch: int = 0
    until_branch: int = 10_000


COUNTER_LIMIT = 2.0**63
FIELDS: tuple[Field, ...] = (
    Field(name="power_watts", field_id=186, scale=MILLI, high=2000.0),
    Field(name="power_average_watts", field_id=185, scale=MILLI, high=2000.0),
    Field(name="energy_joules", field_id=83, scale=MILLI, high=COUNTER_LIMIT),
    Field(name="memory_temperature_celsius", field_id=82, low=-40.0, high=150.0),
    Field(name="ecc_corrected", field_id=3, high=COUNTER_LIMIT),
    Field(name="ecc_uncorrected", field_id=4, high=COUNTER_LIMIT),
    Field(name="part:remapped_rows", field_id=142, high=1e6),
    Field(name="part:remapped_rows", field_id=143, high=1e6),
    Field(name="nvlink_transmit_bytes", field_id=138, scope=ALL_LINKS, scale=KIBI, high=COUNTER_LIMIT),
    Field(name="nvlink_receive_bytes", field_id=139, scope=ALL_LINKS, scale=KIBI, high=COUNTER_LIMIT),
    Field(name="recovery_action", field_id=230, high=100, since_branch=570),
    Field(name="part:throttle_seconds", field_id=251, scale=NANO, since_branch=575, until_branch=579),
    Field(name="part:throttle_seconds", field_id=252, scale=NANO, since_branch=575, until_branch=579),
    Field(name="part:throttle_seconds", field_id=253, scale=NANO, since_branch=575, until_branch=579),
    Field(name="part:throttle_seconds", field_id=269, scale=NANO, since_branch=580),
    Field(name="part:throttle_seconds", field_id=270, scale=NANO, since_branch=580),
    Field(name="part:throttle_seconds", field_id=271, scale=NANO, since_branch=580),
)
NEWEST_KNOWN_BRANCH = 615

GPM_METRICS: tuple[tuple[int, str], ...] = (
    (2, "sm_active_ratio"),
    (3, "sm_occupancy_ratio"),
    (5, "tensor_active_ratio"),
    (10, "dram_active_ratio"),
    (20, "pcie_transmit_bytes"),
    (21, "pcie_receive_bytes"),
    (60, "nvlink_receive_bytes"),
    (61, "nvlink_transmit_bytes"),
)


def branch_of(driver_version: str | None) -> int | None:
    """The driver's branch: 580 for ``580.126.09``; None when it cannot be told."""
    head = (driver_version or "").split(".", 1)[0]
    return int(head) if head.isdigit() else None


def fields_for(branch: int | None) -> tuple[Field, ...]:
    """The fields whose meaning is known on a driver branch; ids that moved are left out when it is unknown."""
    if branch is None:
        return tuple(item for item in FIELDS if item.since_branch == 0)
    return tuple(item for item in FIELDS if item.since_branch <= branch <= item.until_branch)
