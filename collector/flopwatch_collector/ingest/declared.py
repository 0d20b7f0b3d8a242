"""Facts of jobs that operators declare: checked, kept in the control state, laid over what was found."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flopwatch import model_names
from flopwatch.blocks import ShapeError
from flopwatch.flops import ModelShape
from flopwatch.wire import RunFacts
from flopwatch_collector.model import DeclaredFact, JobRecord

KIND = "declared"
MODEL = "model"
OF_THE_JOB = {
    "name": "name", "kind": "kind", "mfu_target_ratio": "target_ratio", "declared_gpu_hours": "declared_gpu_hours",
    "tracker_url": "tracker_url",
}  # fmt: skip
"""Facts of the job as a whole, and the field of its record that each sets."""
OF_THE_RUN = (
    "parameter_count", "world_size", "global_batch_size", "sequence_length", "tokens_per_step", "dtype",
)  # fmt: skip
"""Facts of the training run, named as in ``RunFacts``."""
FACTS = (MODEL, *OF_THE_JOB, *OF_THE_RUN)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredJob:
    """All that is declared of one job."""

    number: int
    facts: dict[str, DeclaredFact]


class DeclaredFacts:
    """What is declared, by job number. Safe for threads.

    ``save`` and ``delete`` write the control state; what they raise leaves everything as it was.
    """

    def __init__(
        self,
        kept: Mapping[str, DeclaredJob],
        save: Callable[[Mapping[str, DeclaredJob]], None],
        delete: Callable[[list[str]], None],
    ) -> None:
        self._lock = threading.Lock()
        self._save, self._delete = save, delete
        self._jobs: Mapping[int, DeclaredJob] = {job.number: job for job in kept.values()}

    def learn(self, saved: Mapping[str, DeclaredJob], deleted: Iterable[str]) -> None:
        """Take over what another collector saved and deleted."""
        gone = {int(key) for key in deleted}
        kept = {number: job for number, job in self._jobs.items() if number not in gone}
        self._jobs = {**kept, **{job.number: job for job in saved.values()}}

    def all(self) -> Mapping[int, DeclaredJob]:
        """Everything declared now; later changes leave the answer alone."""
        return self._jobs

    def declare(self, number: int, facts: Mapping[str, DeclaredFact]) -> None:
        """Set facts of a job, durably; facts that are not given stay as they are."""
        with self._lock:
            before = self._jobs.get(number)
            after = DeclaredJob(number=number, facts={**(before.facts if before else {}), **facts})
            self._save({str(number): after})
            self._jobs = {**self._jobs, number: after}

    def withdraw(self, number: int, fact: str) -> bool:
        """Forget a declared fact, durably; whether it was declared."""
        with self._lock:
            before = self._jobs.get(number)
            if before is None or fact not in before.facts:
                return False
            left = {name: value for name, value in before.facts.items() if name != fact}
            others = {key: job for key, job in self._jobs.items() if key != number}
            if left:
                others[number] = DeclaredJob(number=number, facts=left)
                self._save({str(number): others[number]})
            else:
                self._delete([str(number)])
            self._jobs = others
            return True


def laid_over(jobs: Mapping[int, JobRecord], declared: Mapping[int, DeclaredJob]) -> Mapping[int, JobRecord]:
    """The jobs as they count: what was declared before what was found."""
    if not declared:
        return jobs
    known = {number: with_declared(jobs[number], one) for number, one in declared.items() if number in jobs}
    return {**jobs, **known}


def with_declared(job: JobRecord, declared: DeclaredJob) -> JobRecord:
    """The job with its declared facts; those of its run come first among equals."""
    facts = declared.facts
    own: dict[str, Any] = {field: facts[name].value for name, field in OF_THE_JOB.items() if name in facts}
    return replace(
        job,
        runs=(run_facts(facts), *job.runs),
        declared_seconds=max(fact.seconds for fact in facts.values()),
        **own,
    )


def run_facts(facts: Mapping[str, DeclaredFact]) -> RunFacts:
    """The declared facts of the run, in the form of any other source's."""
    model = facts.get(MODEL)
    values: dict[str, Any] = {name: facts[name].value for name in OF_THE_RUN if name in facts}
    return RunFacts(
        source="declared",
        origin="declared" if model is None else model.origin,
        shape=None if model is None else model.value,
        dtype_basis="declared" if "dtype" in facts else None,
        **values,
    )


def shape_of(model: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """(shape, where it is from) of a well-known name, a Hugging Face configuration, or a shape's own keys.

    Raises:
        ShapeError: it is not understood; the field is named.
    """
    if isinstance(model, str):
        named = model_names.by_name(model)
        if named is None:
            known = ", ".join(model_names.DESCRIPTIONS)
            raise ShapeError(MODEL, model, f"a config.json's object, a shape's object, or one of {known}")
        return named.to_dict(), f"declared ({model.strip().lower()})"
    is_config = "model_type" in model
    shape = ModelShape.from_hf_config(model) if is_config else ModelShape.from_dict(model)
    return shape.to_dict(), "declared (config.json)" if is_config else "declared (shape)"
