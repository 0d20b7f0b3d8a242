from typing import Any

import pytest

from flopwatch.query import Target
from flopwatch_collector.config import TargetSettings
from flopwatch_collector.model import JobRecord
from flopwatch_collector.views.targets import target_of

ALL = TargetSettings(
    default=0.30,
    job={"llama-70b": 0.50, "llama-*": 0.45, "*-70b": 0.44, "a.b*": 0.20},
    team={"nlp": 0.40},
    job_class={"pretrain": 0.35},
)


def job(name: str = "run", **changes: Any) -> JobRecord:
    return JobRecord(number=1, job_id="j", key="k", cluster="a", name=name, scheduler="slurm", **changes)


@pytest.mark.parametrize(
    ("made", "kind", "expected"),
    [
        (job("llama-70b", target_ratio=0.6, account="nlp"), "pretrain", Target(ratio=0.6, source="job")),
        (job("llama-70b", account="nlp"), "pretrain", Target(ratio=0.5, source="job")),
        (job("llama-8b", account="nlp"), "pretrain", Target(ratio=0.45, source="job")),
        (job("run", account="nlp"), "pretrain", Target(ratio=0.4, source="team")),
        (job("run", account="vision"), "pretrain", Target(ratio=0.35, source="class")),
        (job("run"), "finetune", Target(ratio=0.3, source="default")),
    ],
)
def test_the_jobs_own_target_beats_its_teams_beats_its_classs_beats_the_default(
    made: JobRecord, kind: str, expected: Target
) -> None:
    assert target_of(made, kind, ALL) == expected


def test_without_any_there_is_no_target() -> None:
    assert target_of(job(), "pretrain", TargetSettings()) == Target(ratio=None, source="none")


def test_the_longest_pattern_that_fits_decides() -> None:
    settings = TargetSettings(job={"*": 0.1, "llama-*": 0.2, "llama-*-sft": 0.3})

    assert target_of(job("llama-8b-sft"), "unknown", settings).ratio == 0.3
    assert target_of(job("llama-8b"), "unknown", settings).ratio == 0.2
    assert target_of(job("qwen"), "unknown", settings).ratio == 0.1


def test_only_the_star_is_special_in_a_pattern() -> None:
    assert target_of(job("a.bc"), "unknown", ALL).ratio == 0.20
    assert target_of(job("axbc"), "unknown", ALL).ratio == 0.30


@pytest.mark.parametrize("declared", [45.0, 0.0, -1.0])
def test_a_declared_target_that_is_no_ratio_is_not_taken(declared: float) -> None:
    assert target_of(job(target_ratio=declared), "unknown", ALL).source == "default"
