"""The likely cause of a job: the same on the Fleet, Jobs and Job pages and in alerts, made anew every five minutes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.views.site import MIDNIGHT, Site, job_ref

from flopwatch.query import Cause, Range
from flopwatch_collector.views.causes import Causes
from flopwatch_collector.views.jobs import within
from flopwatch_collector.views.sources import Moment


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def moment(site: Site) -> Moment:
    return Moment(state=site.query.sources.fleet.state(), now=site.now, asked=Range())


def everywhere(site: Site) -> list[Cause | None]:
    """What Jobs, the Job page whatever its range, and the rules are told."""
    (row,) = site.query.jobs(Range()).rows
    pages = [site.query.job(row.job_id, Range(seconds=seconds)) for seconds in (3_600.0, 86_400.0)]
    assert all(page is not None for page in pages)
    return [row.cause, *(page.row.cause for page in pages if page), site.job_facts().likely_cause]


def test_a_hang_is_told_in_the_words_of_the_diagnosis_on_every_page(site: Site) -> None:
    for _ in range(4):
        site.train(900.0)
    site.hang(900.0)

    causes = everywhere(site)

    assert {(one.code, one.source, one.severity) for one in causes if one} == {
        ("hang", "diagnosis", "critical")
    }
    assert len(causes) == 4
    assert [job.cause for job in site.query.fleet(Range()).top_jobs] == causes[:1]


def test_where_the_diagnosis_finds_nothing_the_cause_is_where_the_time_went(site: Site) -> None:
    held = job_ref(name="notebook", kind="interactive", run=(), waiting_for=None)
    for _ in range(2):
        site.push("n1", site.now, 1_200.0, job=held, samples={"kernel_active_ratio": 0.0, "process_count": 1})
        site.tick()

    causes = everywhere(site)

    assert {(one.code, one.source) for one in causes if one} == {("held_idle", "ledger")}
    assert len({one.values["hours"] for one in causes if one}) == 1


def test_a_diagnosis_is_kept_for_five_minutes_unless_the_state_changes(site: Site) -> None:
    for _ in range(3):
        site.train(900.0)
    now = moment(site)
    found = site.query.present.jobs(now, within(now))
    (number,) = found
    causes = Causes()
    causes.advance(site.query.sources, now, found, 10)

    def made_after(seconds: float, **changes: str) -> float:
        later = replace(now, now=now.now + seconds)
        causes.advance(site.query.sources, later, {number: replace(found[number], **changes)}, 10)  # type: ignore[arg-type]
        return causes.known[number].made_seconds - now.now

    assert now.now == MIDNIGHT + 2_700.0
    assert made_after(299.0) == 0.0
    assert made_after(299.5, bucket="CKPT") == 299.5
    assert made_after(599.0, bucket="CKPT") == 299.5
    assert made_after(599.5, bucket="CKPT") == 599.5


def test_a_turn_is_bounded_and_jobs_that_are_gone_are_forgotten(site: Site) -> None:
    site.train(900.0)
    now = moment(site)
    found = site.query.present.jobs(now, within(now))
    causes = Causes()

    assert causes.advance(site.query.sources, now, found, 0) == {}
    assert set(causes.advance(site.query.sources, now, found, 1)) == set(found)
    empty = replace(now, state=replace(now.state, jobs={}))
    assert causes.advance(site.query.sources, empty, {}, 1) == {}
