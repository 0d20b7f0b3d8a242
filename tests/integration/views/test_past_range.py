"""A range that ended before now: its own curves, ledger and jobs; what is of today stays of today."""

import pytest
from tests.integration.views.site import GPUS_A_NODE, MIDNIGHT, Site

from flopwatch.query import Range

HOUR = 3_600.0
HALF = 1_800.0


def past(site: Site, **changes: float) -> Range:
    """The half hour that ended an hour ago."""
    return Range(**{"seconds": HALF, "end_seconds": site.now - HOUR, **changes})  # type: ignore[arg-type]


def test_the_curves_of_the_fleet_end_there_and_its_day_is_still_today(trained: Site) -> None:
    page, now = trained.query.fleet(past(trained)), trained.query.fleet(Range())
    end = trained.now - HOUR

    times = page.series.time_seconds
    assert end - HALF <= times[0] < times[-1] < end
    assert [value for value in page.series.columns["mfu"] if value is not None] == [
        pytest.approx(0.40, rel=1e-3) for _ in times
    ]
    assert page.ledger_today == now.ledger_today
    assert page.utilisation.value == now.utilisation.value


def test_the_page_of_a_job_is_of_the_range_and_its_state_is_of_now(trained: Site) -> None:
    job_id = trained.query.jobs(Range()).rows[0].job_id
    page = trained.query.job(job_id, past(trained))
    end = trained.now - HOUR

    assert page is not None
    assert page.ledger.capacity_gpu_milliseconds == GPUS_A_NODE * round(HALF) * 1_000
    assert (page.ledger.start_seconds, page.ledger.end_seconds) == (end - HALF, end)
    assert end - HALF <= page.steps.time_seconds[0] <= page.steps.time_seconds[-1] <= end
    assert max(stretch.end_seconds for stretch in page.strip) <= end
    assert page.row.state == "running"
    assert [node.reporting for node in page.nodes] == [True]


def test_a_job_that_had_not_begun_is_in_no_table_of_before(trained: Site) -> None:
    before = past(trained, end_seconds=MIDNIGHT - HOUR)

    assert trained.query.jobs(before).rows == ()
    assert len(trained.query.jobs(past(trained)).rows) == 1


def test_a_range_that_ends_in_the_time_to_come_is_the_one_up_to_now(trained: Site) -> None:
    ahead = trained.query.jobs(past(trained, end_seconds=trained.now + HOUR)).rows

    assert ahead == trained.query.jobs(Range(seconds=HALF)).rows


def test_teams_are_the_accounts_of_the_jobs(trained: Site) -> None:
    accounts = {row.account for row in trained.query.jobs(Range()).rows}

    assert set(trained.query.status().teams) == {account for account in accounts if account}
