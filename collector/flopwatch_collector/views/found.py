"""What was found of a run and where, for the Job page."""

from collections.abc import Sequence

from flopwatch.query import FoundFact
from flopwatch.wire import RunFacts
from flopwatch_collector.compute.runs import TRUST

NAMES = (
    "trainer", "shape", "parameter_count", "world_size", "global_batch_size", "sequence_length", "tokens_per_step",
    "dtype",
)  # fmt: skip


def found_facts(runs: Sequence[RunFacts]) -> tuple[FoundFact, ...]:
    """Each fact from its most trusted source; among equals the newest session's, then the first told."""
    ordered = sorted(runs, key=lambda one: (TRUST[one.source], -one.session))
    firsts = ((name, next((run for run in ordered if getattr(run, name)), None)) for name in NAMES)
    return tuple(
        FoundFact(
            name=name,
            value=None if name == "shape" else getattr(run, name),
            source=run.source,
            origin=run.origin,
        )
        for name, run in firsts
        if run is not None
    )
