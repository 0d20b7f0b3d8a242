"""The control state does not grow for ever: what no report needs goes, and numbers are not given twice."""

import pytest

from flopwatch_collector.ingest.forgetting import Forgotten, Horizons, forget
from flopwatch_collector.ingest.launches import Launches
from flopwatch_collector.ingest.table import Table, next_number
from flopwatch_collector.model import JobRecord, Launch, LeaseRecord
from flopwatch_collector.store.control_sqlite import SqliteControl

DAY = 86_400.0
NOW = 1_800_000_000.0
HORIZONS = Horizons(detail_days=90, record_days=730)
KINDS = {
    "job": dict,
    "identity": dict,
    "launch": dict,
    "lease": dict,
    "declared": dict,
    "accounting_job": dict,
}


@pytest.fixture
def control(tmp_path):
    opened = SqliteControl(tmp_path / "control.sqlite")
    yield opened
    opened.close()


def add(control, number: int, ended_days_ago: float | None) -> None:
    """A job with everything that is kept of one; None: it runs."""
    end = None if ended_days_ago is None else NOW - ended_days_ago * DAY
    job = JobRecord(
        number=number, job_id=f"j{number}", key=f"k{number}", cluster="c", name="n", scheduler="slurm",
        end_seconds=end, last_seen_seconds=NOW if end is None else end,
    )  # fmt: skip
    lease = LeaseRecord(
        lease_id=f"part:{number}@1", job=number, gpus=(1,), source="slurm", start_seconds=1.0, end_seconds=end
    )
    launch = Launch(number=number, job=number, source=0, source_id="s", session=0)
    other = {"number": number}
    control.save_all({
        "job": {str(number): job}, "lease": {lease.lease_id: lease}, "launch": {str(number): launch},
        "identity": {str(number): other}, "declared": {str(number): other}, "accounting_job": {str(number): other},
    })  # fmt: skip


def kept(control) -> dict[str, list[str]]:
    return {kind: sorted(control.load(kind, type_)) for kind, type_ in KINDS.items()}


def test_old_jobs_go_whole_and_younger_ones_keep_what_reports_need(control) -> None:
    for number, ended in enumerate((800.0, 731.0, 100.0, 89.0, None), start=1):
        add(control, number, ended)

    assert forget(control, NOW, HORIZONS) == Forgotten(jobs=2, launches=3, leases=3)

    records = ["3", "4", "5"]
    assert kept(control) == {
        "job": records, "identity": records, "declared": records, "accounting_job": records,
        "launch": ["4", "5"], "lease": ["part:4@1", "part:5@1"],
    }  # fmt: skip


def test_the_highest_numbers_stay_so_that_none_is_given_twice(control) -> None:
    for number in (9, 10):
        add(control, number, 900.0)

    forget(control, NOW, HORIZONS)

    jobs = Table("job", {int(key): job for key, job in control.load("job", JobRecord).items()})
    launches = Table("launch", {int(key): one for key, one in control.load("launch", Launch).items()})
    assert next_number(jobs) == 11
    assert Launches(launches).number(10, 0, "another", 0) == 11
    assert Launches(launches).number(10, 0, "a third", 0) == 12


def test_a_job_that_was_seen_lately_is_not_old_though_it_said_to_have_ended(control) -> None:
    add(control, 1, 800.0)
    job = control.load("job", dict)["1"]
    control.save("job", {"1": job | {"last_seen_seconds": NOW - DAY}})
    add(control, 2, None)

    assert forget(control, NOW, HORIZONS) == Forgotten(jobs=0, launches=0, leases=0)
