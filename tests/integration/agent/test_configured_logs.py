"""Whose a log is that the settings name, while jobs come and go; real files, jobs by hand."""

import os
from pathlib import Path

from flopwatch.wire import JobSighting
from flopwatch_agent.configured_logs import ConfiguredLogs
from flopwatch_agent.source import ObservedJob

START = 1_790_000_000.0


def job(ref: str) -> ObservedJob:
    return ObservedJob(sighting=JobSighting(ref=ref, uid=os.getuid()))


def written(log: Path, at: float) -> None:
    with log.open("a") as sink:
        sink.write("iter 1: loss 3.1\n")
    os.utime(log, (at, at))


def logs_of(logs: ConfiguredLogs, jobs: tuple[ObservedJob, ...], now: float) -> set[str]:
    return set(logs.assign(jobs, now).by_job)


def watch(tmp_path: Path, *, holders: frozenset[str] = frozenset(), with_steps: set[str]) -> ConfiguredLogs:
    return ConfiguredLogs(
        (f"{tmp_path}/*.log",), lambda item, _: item.sighting.ref in holders, with_steps.__contains__
    )


def test_a_log_that_is_a_job_of_its_own_goes_to_its_owners_only_job_until_it_has_steps(
    tmp_path: Path,
) -> None:
    written(tmp_path / "a.log", START)
    with_steps: set[str] = set()
    logs = watch(tmp_path, with_steps=with_steps)
    (alone,) = logs_of(logs, (), START)
    with_steps.add(alone)
    assert logs_of(logs, (job("process:1"),), START + 1) == {alone}
    with_steps.clear()
    assert logs_of(logs, (job("process:1"),), START + 2) == {"process:1"}


def test_a_log_stays_with_its_job_when_the_owner_starts_another(tmp_path: Path) -> None:
    written(tmp_path / "a.log", START)
    logs = watch(tmp_path, with_steps=set())
    assert logs_of(logs, (job("process:1"),), START) == {"process:1"}
    assert logs_of(logs, (job("process:1"), job("process:2")), START + 1) == {"process:1"}


def test_the_log_of_an_ended_job_is_nobodys_until_it_is_written_again(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    written(log, START)
    logs = watch(tmp_path, with_steps=set())
    assert logs_of(logs, (job("process:1"),), START) == {"process:1"}
    assert logs_of(logs, (), START + 20) == set()
    assert logs_of(logs, (job("process:2"),), START + 40) == set()
    written(log, START + 50)
    assert logs_of(logs, (job("process:2"),), START + 60) == {"process:2"}


def test_a_log_that_is_written_after_its_job_ended_is_a_job_of_its_own_where_its_owner_has_none(
    tmp_path: Path,
) -> None:
    log = tmp_path / "a.log"
    written(log, START)
    logs = watch(tmp_path, with_steps=set())
    logs_of(logs, (job("process:1"),), START)
    assert logs_of(logs, (), START + 20) == set()
    written(log, START + 50)
    (alone,) = logs_of(logs, (), START + 60)
    assert alone.startswith("log:")


def test_the_job_that_has_a_log_open_has_it(tmp_path: Path) -> None:
    written(tmp_path / "a.log", START)
    logs = watch(tmp_path, holders=frozenset({"process:2"}), with_steps=set())
    assert logs_of(logs, (job("process:1"),), START) == {"process:1"}
    assert logs_of(logs, (job("process:1"), job("process:2")), START + 1) == {"process:2"}
