"""The pages' answers, each figure worked out from what was pushed."""

import pytest
from tests.integration.views.site import GPUS_A_NODE, MIDNIGHT, PEAK, Site, job_ref, tokens_for

from flopwatch.query import LEDGER_CLASSES, Range

HOUR = 3_600.0


def test_every_ledger_figure_of_the_fleet_page_is_of_one_ledger(trained: Site) -> None:
    page = trained.query.fleet(Range())

    ledger = page.ledger_today
    amounts = {amount.name: amount.gpu_milliseconds for amount in ledger.classes}
    assert tuple(amounts) == LEDGER_CLASSES
    assert sum(amounts.values()) == ledger.capacity_gpu_milliseconds
    billable = sum(amounts[name] for name in ("stalled", "in_job_loss", "productive", "unmeasured"))
    assert page.utilisation.value == billable / ledger.capacity_gpu_milliseconds
    assert page.utilisation.value == ledger.billable_ratio == page.days[-1].billable_ratio
    waste = sum(amounts[name] for name in ("allocated_idle", "stalled", "in_job_loss"))
    assert page.waste.value == waste / 3_600_000
    assert page.waste_money.value == pytest.approx(waste / 3_600_000 * 2.0)
    assert sum(job.waste_gpu_milliseconds for job in page.top_jobs) == waste
    assert sum(value or 0.0 for value in page.waste.spark) == pytest.approx(page.waste.value)


def test_half_of_two_nodes_is_billable(trained: Site) -> None:
    page = trained.query.fleet(Range())

    assert page.utilisation.value == pytest.approx(0.5, abs=0.002)
    assert page.utilisation.reference == 0.7
    assert page.verdict.code == "insufficient_data"
    assert len(page.days) == 30
    assert [day.billable_ratio for day in page.days[:-1]] == [None] * 29


def test_the_fleets_mfu_is_that_of_its_only_run_with_its_target_and_coverage(trained: Site) -> None:
    page = trained.query.fleet(Range())

    assert page.mfu.value == pytest.approx(0.40, rel=0.002)
    assert page.mfu.reference == 0.35
    assert page.mfu_target_ratio == 0.35
    assert page.mfu_coverage_ratio == 1.0
    assert page.series.level == "5m"
    assert page.series.columns["mfu"][5] == pytest.approx(0.40, rel=1e-6)
    assert page.series.columns["kernel_active"][5] == pytest.approx(0.95)
    assert page.series.columns["tensor_active"][5] == pytest.approx(0.50)


def test_an_hour_is_drawn_by_the_minute(trained: Site) -> None:
    fleet = trained.query.fleet(Range(seconds=HOUR)).series
    job = trained.query.job(trained.query.jobs(Range()).rows[0].job_id, Range(seconds=HOUR))

    assert job is not None
    for series in (fleet, job.series):
        assert (series.level, series.step_seconds, len(series.time_seconds)) == ("raw", 60.0, 60)
        assert series.time_seconds[-1] == trained.now - 60.0
        assert series.columns["mfu"][30] == pytest.approx(0.40, rel=1e-6)
        assert series.columns["kernel_active"][30] == pytest.approx(0.95)
    assert job.series.columns["memory_used_ratio"][30] == 0.5
    assert job.series.columns["power_watts"][30] == 600.0


def test_a_jobs_row_has_its_figure_and_where_it_is_from(trained: Site) -> None:
    (row,) = trained.query.jobs(Range()).rows

    assert (row.name, row.user, row.account, row.kind, row.state) == (
        "llama-8b",
        "ann",
        "nlp",
        "pretrain",
        "running",
    )
    assert row.mfu.value_ratio == pytest.approx(0.40, rel=1e-9)
    assert (row.mfu.basis, row.mfu.gpus, row.mfu.gpus_basis) == ("steps+params", 8, "world_size")
    assert (row.target.ratio, row.target.source) == (0.35, "job")
    assert row.kernel_active_ratio == pytest.approx(0.95)
    assert row.tensor_active_ratio == pytest.approx(0.50)
    assert row.wall_mfu_ratio == pytest.approx(0.40, rel=0.005)
    assert (row.last_step, row.last_step_seconds) == (720, trained.now)
    assert row.trainer == "megatron"
    assert row.nodes == 1
    assert len(row.trend) == 48


def test_the_arithmetic_of_a_jobs_mfu_gives_its_value(site: Site) -> None:
    site.train(900.0)

    job = site.query.job(site.query.jobs(Range()).rows[0].job_id, Range())

    assert job is not None
    terms = {term.symbol: term.value for term in job.arithmetic}
    assert terms["F"] == 48_000_000_000
    assert terms["T"] == pytest.approx(tokens_for(0.40, 10.0) / 10.0)
    assert (terms["G"], terms["P"]) == (GPUS_A_NODE, PEAK)
    assert terms["F"] * terms["T"] / (terms["G"] * terms["P"]) == pytest.approx(terms["MFU"])


def test_a_jobs_ledger_is_of_the_gpu_time_it_held(trained: Site) -> None:
    job = trained.query.job(trained.query.jobs(Range()).rows[0].job_id, Range())

    assert job is not None
    assert job.ledger.capacity_gpu_milliseconds == pytest.approx(7_200_000 * GPUS_A_NODE, rel=0.01)
    assert job.strip[-1].bucket == "STEP"
    assert job.step_percentiles == {"p50": 10.0, "p90": 10.0, "p99": 10.0}
    assert job.steps.columns["step_seconds"][0] == 10.0
    assert [(session.first_step, session.last_step, session.steps) for session in job.sessions] == [
        (1, 720, 720)
    ]
    assert [(node.node, node.gpus, node.reporting) for node in job.nodes] == [("n1", 8, True)]
    assert job.nodes[0].kernel_active_ratio == pytest.approx(0.95)


def test_a_job_without_steps_waits_and_has_no_figure(site: Site) -> None:
    site.push(
        "n1", MIDNIGHT, 60.0, job=job_ref(run=()), samples={"kernel_active_ratio": 0.5, "process_count": 1}
    )
    site.tick()

    (row,) = site.query.jobs(Range()).rows

    assert (row.state, row.waiting_for) == ("waiting", "steps")
    assert (row.mfu.value_ratio, row.wall_mfu_ratio, row.last_step) == (None, None, None)
    assert row.mfu.reason in ("no_steps", "waiting")


def test_a_job_appears_before_the_first_accounting(site: Site) -> None:
    site.push("n1", MIDNIGHT, 20.0, job=job_ref(), samples={"kernel_active_ratio": 0.5, "process_count": 1})

    (row,) = site.query.jobs(Range()).rows

    assert (row.name, row.state) == ("llama-8b", "waiting")


def test_an_unknown_gpu_has_no_mfu_and_says_why(site: Site) -> None:
    site.push(
        "n1",
        MIDNIGHT,
        60.0,
        job=job_ref(),
        gpu_model="NVIDIA H1000",
        samples={"kernel_active_ratio": 0.5, "process_count": 1},
    )
    site.tick()

    (row,) = site.query.jobs(Range()).rows

    assert row.mfu.value_ratio is None
    assert row.gpu_model == "NVIDIA H1000"


def test_a_run_that_hangs_is_stalled_and_its_fleet_is_not_flattered(site: Site) -> None:
    for _ in range(4):
        site.train(900.0)
    site.hang(900.0)

    (row,) = site.query.jobs(Range()).rows
    facts = site.job_facts()

    assert row.state == "stalled"
    assert (facts.bucket, facts.bucket_since_seconds) == ("HANG", MIDNIGHT + 3_600.0)
    assert row.cause is not None
    assert row.cause.code == "hang"
    assert [alert.rule for alert in site.engine.active()][:1] == ["JobHang"]
    assert site.query.fleet(Range()).alerts_by_severity["critical"] == 1


def test_gpus_held_without_work_are_idle_since_they_began_to_be(site: Site) -> None:
    held = job_ref(name="notebook", kind="interactive", run=(), waiting_for=None)
    for _ in range(2):
        site.push("n1", site.now, 1_200.0, job=held, samples={"kernel_active_ratio": 0.0, "process_count": 1})
        site.tick()

    facts = site.job_facts()
    (row,) = site.query.jobs(Range()).rows

    assert facts.bucket == "HELD_IDLE"
    assert facts.bucket_since_seconds == pytest.approx(MIDNIGHT, abs=300.0)
    assert [(alert.rule, alert.severity) for alert in site.engine.active()] == [("IdleHeld", "warning")]
    assert row.waste_by_class.keys() == {"allocated_idle"}
    assert row.cause is not None
    assert row.cause.code == "held_idle"


def test_the_frame_counts_what_reports(site: Site) -> None:
    site.train(60.0)
    site.push("n1", site.now, 120.0)
    site.tick()

    status = site.query.status()

    (cluster,) = status.clusters
    assert (cluster.name, cluster.nodes, cluster.gpus, cluster.gpus_reporting) == ("a", 2, 16, 8)
    assert status.data_time_seconds == site.now
    assert (status.currency, status.price_per_gpu_hour, status.simulated) == ("USD", 2.0, False)


def test_one_cluster_can_be_asked_for(site: Site) -> None:
    site.train(900.0)

    assert len(site.query.jobs(Range(cluster="a")).rows) == 1
    assert site.query.jobs(Range(cluster="b")).rows == ()
    assert site.query.fleet(Range(cluster="b")).ledger_today.capacity_gpu_milliseconds == 0
    assert site.query.fleet(Range(cluster="b")).utilisation.value is None


def test_an_empty_collector_answers_and_knows_nothing(site: Site) -> None:
    page = site.query.fleet(Range())

    assert page.utilisation.value is None
    assert page.mfu.value is None
    assert page.status.data_time_seconds is None
    assert page.top_jobs == ()
    assert site.query.jobs(Range()).rows == ()
    assert site.query.job("nothing", Range()) is None
    assert site.query.alerts(Range()).active == ()


@pytest.mark.parametrize("seconds", [HOUR, 6 * HOUR, 24 * HOUR, 7 * 24 * HOUR, 30 * 24 * HOUR])
def test_every_column_of_a_series_is_as_long_as_its_times(trained: Site, seconds: float) -> None:
    asked = Range(seconds=seconds, points=50)

    fleet = trained.query.fleet(asked)
    job = trained.query.job(trained.query.jobs(asked).rows[0].job_id, asked)

    assert job is not None
    for series in (fleet.series, job.series, job.steps):
        assert {len(column) for column in series.columns.values()} <= {len(series.time_seconds)}
        assert len(series.time_seconds) <= 52
        assert list(series.time_seconds) == sorted(series.time_seconds)


def test_an_ended_job_keeps_its_figure_and_its_last_step(site: Site) -> None:
    site.train(900.0)
    end = site.now
    site.push("n1", site.now, 60.0, job=job_ref(end_time_seconds=end, exit_reason="ok", gpus=()))
    site.tick()

    (row,) = site.query.jobs(Range()).rows

    assert (row.state, row.end_seconds) == ("ended", end)
    assert row.mfu.value_ratio == pytest.approx(0.40, rel=1e-9)
    assert (row.last_step, row.last_step_seconds) == (90, end)
    assert site.query.job(row.job_id, Range()) is not None
    assert site.engine.active() == ()
