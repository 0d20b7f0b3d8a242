"""NVLink counters that stand still while the links are at work: their bytes are unknown then, and not none.

Two things tell that bytes go over the links of a GPU: its own GPM, and the other GPUs of its job, whose links are busy
while its own counters have stood at zero since the driver was loaded.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

FIELDS = ("nvlink_transmit_bytes", "nvlink_receive_bytes")
BUSY_MIB_PER_SECOND = 16.0
"""More than what the links say among themselves."""
BUSY_BYTES = 64 << 20
"""What the links of another GPU have to carry from one look to the next."""
AT_WORK = 0.05
LOOKS = 3
"""So often in a row, for a driver may renew a counter late."""
BY_GPM = "its NVLink counters stand still while GPM tells traffic on the links: bytes over NVLink are unknown"
BY_PEERS = (
    "its NVLink counters are at zero while it works and the links of its job's other GPUs are busy: bytes over NVLink "
    "are unknown"
)


@dataclass(slots=True)
class LinkCounts:
    """What one GPU tells of its links."""

    counted: int | None = None
    """Bytes both ways since the driver was loaded; None where it counts none."""
    at_work: bool = False
    doubt: str | None = None
    """Why the counters are not believed; None while they are."""
    seen_still: int = 0
    seen_alone: int = 0
    noted: int | None = None
    """``counted`` as of the last look at the job's GPUs."""
    is_new: bool = False
    """Whether a sample came since that look."""

    def judge(self, values: dict[str, Any], mib_per_second: float | None) -> None:
        """Take in a sample's counters and what GPM measured beside them; leave out those that are not believed."""
        told = [values[name] for name in FIELDS if values.get(name) is not None]
        before, self.counted = self.counted, sum(told) if told else None
        self.is_new = True
        self.at_work = (values.get("kernel_active_ratio") or 0.0) >= AT_WORK
        if self.counted != before:
            self.doubt, self.seen_still = None, 0
            return
        if self.counted is None:
            return
        still = mib_per_second is not None and mib_per_second >= BUSY_MIB_PER_SECOND
        self.seen_still = self.seen_still + 1 if still else 0
        if self.seen_still >= LOOKS:
            self.doubt = BY_GPM
        if self.doubt is not None:
            for name in FIELDS:
                values.pop(name, None)


def compare(of_one_job: Iterable[LinkCounts]) -> None:
    """One look at the GPUs of a job, once each has a new sample: doubt those at zero while all others are busy."""
    counts = [item for item in of_one_job if item.counted is not None]
    if not all(item.is_new for item in counts):
        return
    busy = [grown(item) >= BUSY_BYTES for item in counts]
    for place, item in enumerate(counts):
        alone = item.counted == 0 and item.at_work and len(counts) > 1
        alone = alone and all(busy[:place]) and all(busy[place + 1 :])
        item.seen_alone = item.seen_alone + 1 if alone else 0
        if item.seen_alone >= LOOKS:
            item.doubt = item.doubt or BY_PEERS
        item.noted, item.is_new = item.counted, False


def grown(item: LinkCounts) -> int:
    """Bytes since the last look; 0 at the first, and after a counter began anew."""
    if item.noted is None or item.counted is None:
        return 0
    return max(0, item.counted - item.noted)
