"""The share of a GPU's peak that becomes kept work: MFU x goodput."""


def goodput_of(
    step_mfu: float | None, wall_mfu: float | None, held_per_billable: float | None
) -> float | None:
    """Kept step time over billable time, from what a run's steps and its whole time reached; None where unknown.

    Step MFU x this = kept FLOPs over what the GPUs could have done while billable. Waiting for data inside of steps
    is in step MFU, so it is not taken off here again, as a count of the ledger's STEP would.
    """
    if not step_mfu or wall_mfu is None or held_per_billable is None:
        return None
    return min(1.0, wall_mfu * held_per_billable / step_mfu)
