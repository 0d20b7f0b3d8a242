"""The run beside others of the same model: did another layout, or the same one on other nodes, reach more?"""

from typing import Final

from flopwatch.answers.diagnosis import Diagnosis, Sign
from flopwatch_collector.compute.diagnosis.evidence import RunEvidence, Sibling
from flopwatch_collector.compute.diagnosis.signs import known, sign

NOTABLE: Final = 1.10
"""Less than a tenth better may be the day."""


def layouts(run: RunEvidence) -> Diagnosis | None:
    """The best other layout on as many GPUs, with the memory and the recompute that it took."""
    this = run.this
    if this is None:
        return None
    others = [
        each for each in run.siblings if each.gpus == this.gpus and each.layout.sizes != this.layout.sizes
    ]
    best = max(others, key=lambda each: each.mfu_ratio, default=None)
    if best is None or best.mfu_ratio < NOTABLE * this.mfu_ratio:
        return None
    return Diagnosis(
        code="slower_layout",
        confidence="medium",
        evidence=_compared(this, best),
        against=_room(this, best),
        lost_ratio=1.0 - this.mfu_ratio / best.mfu_ratio,
    )


def nodes(run: RunEvidence) -> Diagnosis | None:
    """The same layout on other nodes reached more."""
    this = run.this
    if this is None or not this.nodes:
        return None
    others = [
        each
        for each in run.siblings
        if each.gpus == this.gpus and each.layout.sizes == this.layout.sizes and not each.nodes & this.nodes
    ]
    best = max(others, key=lambda each: each.mfu_ratio, default=None)
    if best is None or best.mfu_ratio < NOTABLE * this.mfu_ratio:
        return None
    lost = 1.0 - this.mfu_ratio / best.mfu_ratio
    return Diagnosis(code="slower_nodes", confidence="low", evidence=_compared(this, best), lost_ratio=lost)


def _compared(this: Sibling, best: Sibling) -> tuple[Sign, ...]:
    return (
        Sign(code="other_layout", value=f"{best.layout.name} ({best.job_id})", unit="text"),
        sign("other_mfu", best.mfu_ratio),
        Sign(code="this_layout", value=this.layout.name, unit="text"),
        sign("mfu", this.mfu_ratio),
    )


def _room(this: Sibling, best: Sibling) -> tuple[Sign, ...]:
    """What the other layout cost in memory and recompute."""
    headroom = known(
        sign("other_headroom", best.layout.memory_headroom_ratio, this.layout.memory_headroom_ratio)
    )
    if best.layout.recompute == this.layout.recompute or best.layout.recompute is None:
        return headroom
    return (*headroom, Sign(code="other_recompute", value=best.layout.recompute, unit="text"))
