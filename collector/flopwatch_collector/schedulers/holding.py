"""What holds of nodes now, from what is kept: what has been told, and windows that have opened since."""

from flopwatch_collector.schedulers.declared import Standing, Window, standing_of
from flopwatch_collector.schedulers.node_states import STANDING, WINDOWS
from flopwatch_collector.store.port import Control


def holding(control: Control, now: float) -> list[Standing]:
    """All that is said of nodes and GPUs now.

    Of one track there may be several: an operator's word stands beside that of a scheduler that spoke earlier.
    What is over holds until the ledger has been told, so that nobody takes its last minutes for a fault.

    Raises:
        Unavailable: the control state cannot be reached.
    """
    told = control.load(STANDING, Standing)
    opened = standing_of(control.load(WINDOWS, Window).values(), now)
    return [*(told[key] for key in sorted(told)), *opened]
