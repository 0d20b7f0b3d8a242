"""Step records: each step of a launch is taken once, however many nodes report it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from flopwatch.wire import StepRecord
from flopwatch_collector.ingest.launches import Launches
from flopwatch_collector.ingest.spans import Spans
from flopwatch_collector.model import SOURCE_KINDS, STEP_BASES, Columns

_MEASURES = (
    "resolution_seconds", "tokens", "padded_tokens", "sum_squared_document_tokens", "reported_flops_per_gpu",
    "reported_mfu_ratio", "data_wait_seconds",
)  # fmt: skip
_LOSSES = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}


@dataclass(slots=True)
class Claims:
    """Steps taken for one batch: given back when the batch could not be made durable."""

    spans: list[tuple[int, int, int]] = field(default_factory=list)
    """(launch, first step, last step)."""


class Steps:
    """Knows which steps of each launch are taken. Not safe for threads."""

    def __init__(self, launches: Launches) -> None:
        self._launches = launches
        self._taken: dict[int, Spans] = {}

    def warm(self, rows: Columns) -> None:
        """Take the steps that are stored already, ``STEP_COLUMNS``."""
        if not rows:
            return
        for launch, step, covered in zip(
            rows["launch"].tolist(), rows["step"].tolist(), rows["steps_covered"].tolist(), strict=True
        ):
            self._spans(int(launch)).add(int(step) - int(covered) + 1, int(step))

    def fresh(
        self, records: Sequence[StepRecord], jobs: Mapping[str, int], claims: Claims
    ) -> list[tuple[StepRecord, int]]:
        """The records whose steps nobody has reported before, with their launches."""
        found: list[tuple[StepRecord, int]] = []
        for record in records:
            source = SOURCE_KINDS.index(record.source)
            launch = self._launches.number(jobs[record.job], source, record.source_id, record.session)
            if record.step in self._spans(launch):
                continue
            span = (record.step - record.steps_covered + 1, record.step)
            self._spans(launch).add(*span)
            claims.spans.append((launch, *span))
            found.append((record, launch))
        return found

    def give_back(self, claims: Claims) -> None:
        """Forget the steps of a batch that was not stored."""
        for launch, first, last in claims.spans:
            self._spans(launch).discard(first, last)

    def _spans(self, launch: int) -> Spans:
        return self._taken.setdefault(launch, Spans())


def step_columns(records: Sequence[StepRecord]) -> Columns:
    """What the records themselves say, as columns of ``STEP_COLUMNS``."""
    read = attrgetter(*_MEASURES)
    measures = np.array([read(record) for record in records], dtype=np.float64).T
    return {
        "source": np.array([SOURCE_KINDS.index(record.source) for record in records], dtype=np.int64),
        "rank": np.array([-1 if record.rank is None else record.rank for record in records], dtype=np.int64),
        "step": np.array([record.step for record in records], dtype=np.int64),
        "steps_covered": np.array([record.steps_covered for record in records], dtype=np.int64),
        "seconds": np.array([record.seconds for record in records], dtype=np.float64),
        "loss": np.array([_loss(record) for record in records], dtype=np.float64),
        "skipped_steps": np.array([record.skipped_steps for record in records], dtype=np.int64),
        "steady": np.array([float(record.steady) for record in records]),
        "basis": np.array([STEP_BASES.index(record.basis) for record in records], dtype=np.int64),
        **dict(zip(_MEASURES, measures, strict=True)),
    }


def _loss(record: StepRecord) -> float | None:
    return _LOSSES[record.loss] if isinstance(record.loss, str) else record.loss
