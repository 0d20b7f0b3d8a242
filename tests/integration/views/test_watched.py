"""What rules see of a real store: a run's history, its silence, its suspects, and the diagnosis on its page."""

import pytest
from starlette.testclient import TestClient
from tests.integration.views.site import Site, gpu_name, job_ref

from flopwatch.query import Range
from flopwatch.wire import Event
from flopwatch_collector.alerting.rules_fleet import budget_burn
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.watched import Spending


def test_a_run_is_watched_by_its_steps_its_silence_and_its_reports_and_its_page_has_a_diagnosis(
    site: Site,
) -> None:
    for _ in range(7):
        site.train(40.0, mfu=0.40)

    (job,) = site.query.facts(site.now).jobs
    page = site.query.job(job.row.job_id, Range(seconds=3_600.0))

    steps, silence = job.run.steps, job.run.silence
    assert steps is not None
    assert silence is not None
    assert len(steps.seconds) == len(steps.ratios) > 20
    assert abs(steps.ratios[-1] - 0.40) < 0.01
    assert silence.source_alive
    assert silence.phase is None
    assert 0.0 <= (silence.overdue_seconds or 0.0) < 60.0
    assert job.run.suspects == (None,)
    assert page is not None
    assert 1 <= len(page.diagnosis) <= 3


def test_a_job_that_holds_its_gpus_empty_burns_the_gpu_hours_that_were_declared_for_it(site: Site) -> None:
    empty = {"kernel_active_ratio": 0.0, "process_count": 0}
    for _ in range(2):
        site.push("n1", site.now, 900.0, job=job_ref(run=(), waiting_for=None), samples=empty)
        site.tick()
    client = TestClient(site.running.app)
    path = f"/api/v1/jobs/{site.job_facts().row.job_id}/facts"
    assert client.put(path, json={"declared_gpu_hours": 3.0}).status_code == 200

    facts = site.query.facts(site.now)

    # Eight GPUs for half an hour, less the 30 s before the first sample: 3.93 is more than 1.2 of 3.
    held = 8 * 1_770 / 3_600
    (job,) = facts.jobs
    assert job.run.spending == Spending(
        used_gpu_hours=pytest.approx(held), idle_gpu_hours=pytest.approx(held), declared_gpu_hours=3.0
    )
    (burn,) = budget_burn(facts, AlertSettings())
    assert (burn.condition, burn.labels["job_id"]) == ("bad", job.row.job_id)


def test_a_drain_that_was_pushed_stands_on_its_node_until_it_ends(site: Site) -> None:
    def standing(node: str) -> tuple[str | None, bool]:
        facts = next(one for one in site.query.facts(site.now).nodes if one.node == node)
        return facts.standing, facts.maintenance

    site.train(300.0)
    for value, expected in (("begin", ("out", False)), ("end", (None, False))):
        site.push(
            "n2", site.now, 60.0, events=[Event(time_seconds=site.now + 30.0, kind="drain", value=value)]
        )
        assert standing("n2") == expected
    site.push(
        "n2", site.now, 60.0, events=[Event(time_seconds=site.now + 30.0, kind="maintenance", value="begin")]
    )

    assert standing("n2") == ("out", True)
    assert standing("n1") == (None, False)


def test_the_past_of_nodes_tells_silence_faults_xids_and_where_the_fleet_stood(site: Site) -> None:
    begin = site.now
    for _ in range(3):
        site.train(600.0)
    down = [Event(time_seconds=site.now, kind="health", value="faulty")]
    site.push("n2", site.now, 60.0, events=down)
    fault = site.now
    while site.now < fault + 1_800.0:
        site.train(600.0)
    site.push("n2", site.now, 10.0, events=[
        Event(time_seconds=site.now, kind="drain", value="begin"),
        Event(time_seconds=site.now, kind="xid", code=79, gpu=gpu_name("n2", 3)),
    ])  # fmt: skip
    drained = site.now
    while site.now < drained + 1_800.0:
        site.train(600.0)
    site.settle()

    past = site.running.reports.past(site.now - begin)

    (node,) = [one for one in past.nodes if one.node == "n2"]
    faulty = [one for one in node.stretches if one.bucket == "FAULT"]
    assert [one.out for one in faulty] == [False, True]
    assert faulty[0].start_seconds == pytest.approx(fault, abs=300.0)
    assert faulty[1].start_seconds == pytest.approx(drained, abs=300.0)
    assert [(one.code, one.gpu) for one in node.events] == [(79, gpu_name("n2", 3))]
    assert [one.node for one in past.nodes] == ["n2"]
    assert past.moments[-1].verdict is not None
    assert (past.known, past.cluster) == (True, "a")
