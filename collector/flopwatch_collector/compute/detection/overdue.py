"""Whether a run that reports nothing hangs: how long it is silent, and what its hardware shows meanwhile."""

from dataclasses import dataclass
from typing import Final, Literal

from flopwatch_collector.compute.progress import STARTUP_CEILING_SECONDS, hang_threshold_seconds

TENSOR_RATIO: Final = 0.001
POWER_RATIO: Final = 0.5
NIC_RATIO: Final = 0.01
EARLY_SECONDS: Final = 90.0
EARLY_GAPS: Final = 2.0
STUTTER_SECONDS: Final = 65.0
"""Storage and networks stand still for up to a minute and go on: a silence is longer than a step and that."""
PAUSE_FACTOR: Final = 1.5
"""A silence is not judged early before it is so much longer than pauses the run had before."""
EARLY_SIGNALS: Final = 2
CHECKPOINT_CEILING_SECONDS: Final = 900.0
"""DLRover's ceiling of a checkpoint; other phases may last as long as a start-up."""
PHASE_FACTOR: Final = 3.0
MOVING_RATIO: Final = 0.02
"""Traffic beyond this is somebody's work: a checkpoint that is written, data that is fetched."""
Corroboration = Literal["tensor_off", "power_low", "nic_silent", "ledger"]
Standing = Literal["progressing", "suspect", "hang", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Silence:
    """How long a run has reported nothing, and what its GPUs and network show since."""

    overdue_seconds: float | None = None
    """Since its newest step or finished phase."""
    gap_seconds: float | None = None
    """The usual (99th percentile) time between reports."""
    longest_pause_seconds: float | None = None
    """Longest silence it had and went on from."""
    tensor_active_ratio: float | None = None
    power_ratio: float | None = None
    """Power over the run's usual."""
    nic_ratio: float | None = None
    """Network throughput over the run's usual; None for a run on one node."""
    disk_writing: bool | None = None
    """Its hosts write to their disks as they do for a checkpoint."""
    phase: str | None = None
    """The bucket of a phase that is open: a checkpoint, an evaluation, the start-up or a recovery."""
    longest_phase_seconds: float | None = None
    """Longest phase of its kind that it went on from."""
    source_alive: bool = True
    """Its agent reports and its log can be read."""
    ledger_hang: bool = False
    """The ledger took the silence for a hang."""


def corroboration(silence: Silence) -> tuple[Corroboration, ...]:
    """The hardware's signals that nothing is computed."""
    pairs: tuple[tuple[Corroboration, float | None, float], ...] = (
        ("tensor_off", silence.tensor_active_ratio, TENSOR_RATIO),
        ("power_low", silence.power_ratio, POWER_RATIO),
        ("nic_silent", silence.nic_ratio, NIC_RATIO),
    )
    found = [name for name, value, level in pairs if value is not None and value <= level]
    return tuple(found) or (("ledger",) if silence.ledger_hang else ())


def missing_signals(silence: Silence) -> tuple[str, ...]:
    """Signals that would decide and are not there."""
    pairs = (
        ("tensor_active", silence.tensor_active_ratio),
        ("power", silence.power_ratio),
        ("network", silence.nic_ratio),
    )
    return tuple(name for name, value in pairs if value is None)


def moves_data(silence: Silence) -> bool:
    """Whether its network or disks are at work: a hang moves nothing."""
    return (silence.nic_ratio or 0.0) > MOVING_RATIO or silence.disk_writing is True


def early_seconds(silence: Silence) -> float:
    """When two signals decide: after 90 s, two usual gaps, one gap and a stutter, and clearly beyond earlier pauses."""
    gap = silence.gap_seconds or 0.0
    return max(
        EARLY_SECONDS,
        EARLY_GAPS * gap,
        gap + STUTTER_SECONDS,
        PAUSE_FACTOR * (silence.longest_pause_seconds or 0.0),
    )


def may_decide(silence: Silence | None) -> bool:
    """Whether a silence is so long that what its hardware shows can make it a hang."""
    if silence is None or silence.overdue_seconds is None:
        return False
    return silence.overdue_seconds > min(early_seconds(silence), _threshold(silence))


def standing(silence: Silence) -> Standing:
    """Where the run stands. A source that is not alive is no hang, whatever the hardware does."""
    if silence.ledger_hang:
        return "hang"
    if silence.overdue_seconds is None or not silence.source_alive:
        return "unknown"
    if silence.phase is not None:
        return _in_phase(silence, silence.phase, silence.overdue_seconds)
    signals = () if moves_data(silence) else corroboration(silence)
    if silence.gap_seconds is not None and len(signals) >= EARLY_SIGNALS:
        threshold = min(early_seconds(silence), _threshold(silence))
        return "hang" if silence.overdue_seconds > threshold else "progressing"
    if silence.overdue_seconds <= _threshold(silence):
        return "progressing"
    return "hang" if signals else "suspect"


def _in_phase(silence: Silence, phase: str, overdue_seconds: float) -> Standing:
    """Phases may last: a run hangs in one only when it is far too long, two signals agree and nothing is moved."""
    ceiling = CHECKPOINT_CEILING_SECONDS if phase == "CKPT" else STARTUP_CEILING_SECONDS
    limit = max(ceiling, PHASE_FACTOR * (silence.longest_phase_seconds or 0.0))
    if overdue_seconds <= limit or moves_data(silence):
        return "progressing"
    signals = corroboration(silence)
    still = "nic_silent" in signals or silence.disk_writing is False
    if still and len(signals) >= EARLY_SIGNALS:
        return "hang"
    return "suspect" if signals else "progressing"


def _threshold(silence: Silence) -> float:
    return max(
        hang_threshold_seconds(silence.gap_seconds), PAUSE_FACTOR * (silence.longest_pause_seconds or 0.0)
    )
