"""What rules see of a real store: a run's history, its silence, its suspects, and the diagnosis on its page."""

from tests.integration.views.site import Site

from flopwatch.query import Range


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
    assert not silence.in_phase
    assert 0.0 <= (silence.overdue_seconds or 0.0) < 60.0
    assert job.run.suspects == (None,)
    assert page is not None
    assert 1 <= len(page.diagnosis) <= 3
