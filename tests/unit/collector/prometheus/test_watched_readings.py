"""What the rules were evaluated on, as series: in base units, and none where nothing is known."""

from tests.unit.collector.alerting.facts_of_runs import NOW, job, row

from flopwatch import fleet_metrics as table
from flopwatch_collector.facts import Facts, JobFacts
from flopwatch_collector.prometheus.watched_readings import watched_readings
from flopwatch_collector.watched import BudgetHealth, Spending, StepHistory, WatchedRun


def series(*jobs: JobFacts, budgets: tuple[BudgetHealth, ...] = ()) -> dict[tuple[str, ...], float]:
    facts = Facts(now=NOW, jobs=jobs, nodes=(), verdict=None, cluster="a", budgets=budgets)
    return {(one.metric.name, *one.values): one.value for one in watched_readings(facts)}


def test_a_run_is_told_in_base_units() -> None:
    run = WatchedRun(
        steps=StepHistory(config="c", seconds=(*(10.0,) * 180, *(30.0,) * 20)),
        norm_ratio=0.42,
        launches=(NOW - 5_000.0, NOW - 1_800.0, NOW - 60.0),
        launches_without_progress=2,
        saves_seconds=(40.0, 50.0, 60.0, 130.0, 140.0, 150.0),
        checkpoint_share=0.03,
        spending=Spending(used_gpu_hours=10.0, idle_gpu_hours=0.5, declared_gpu_hours=20.0),
    )

    assert series(job(run)) == {
        ("flopwatch_job_norm_mfu_ratio", "a", "j1"): 0.42,
        ("flopwatch_job_recent_launches", "a", "j1"): 2.0,
        ("flopwatch_job_launches_without_checkpoint", "a", "j1"): 2.0,
        ("flopwatch_job_checkpoint_seconds", "a", "j1"): 130.0,
        ("flopwatch_job_checkpoint_usual_seconds", "a", "j1"): 50.0,
        ("flopwatch_job_checkpoint_ratio", "a", "j1"): 0.03,
        ("flopwatch_job_step_spike_ratio", "a", "j1"): 0.1,
        ("flopwatch_job_used_gpu_seconds", "a", "j1"): 36_000.0,
        ("flopwatch_job_idle_gpu_seconds", "a", "j1"): 1_800.0,
        ("flopwatch_job_declared_gpu_seconds", "a", "j1"): 72_000.0,
    }


def test_what_is_not_known_has_no_series_and_a_job_that_ended_none_at_all() -> None:
    over = job(WatchedRun(norm_ratio=0.4), row=row(state="ended"))

    assert series(job(WatchedRun()), over) == {}
    assert list(watched_readings(None)) == []


def test_a_budget_is_in_one_state() -> None:
    told = series(budgets=(BudgetHealth(name="nlp", state="critical", used_ratio=1.02),))

    assert told[table.BUDGET_USED.name, "nlp"] == 1.02
    assert {key[2]: value for key, value in told.items() if key[0] == table.BUDGET_STATE.name} == {
        "ok": 0.0, "warning": 0.0, "critical": 1.0, "unknown": 0.0,
    }  # fmt: skip
    assert (table.BUDGET_FORECAST.name, "nlp") not in told
