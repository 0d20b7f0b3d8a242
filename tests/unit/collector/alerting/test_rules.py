from dataclasses import replace
from typing import Any

import pytest

from flopwatch.query import Cause, JobRow, MfuFigure, Target, Verdict
from flopwatch_collector.alerting.rules import read_all
from flopwatch_collector.alerting.state import Reading
from flopwatch_collector.config import ALERT_RULES, AlertSettings
from flopwatch_collector.facts import Facts, JobFacts, NodeFacts
from flopwatch_collector.watched import BudgetHealth, GpuHealth, NodeHealth, PortHealth

NOW = 100_000.0


def figure(value: float | None, **changes: Any) -> MfuFigure:
    made = MfuFigure(
        value_ratio=value,
        palm_ratio=None,
        convention="causal",
        basis="steps+shape" if value is not None else None,
        reason=None if value is not None else "no_steps",
        flops_per_token=None,
        palm_flops_per_token=None,
        tokens_per_second=None,
        gpus=8,
        gpus_basis="world_size",
        gpus_observed=8,
        gpu_model=None,
        peak_flops=None,
        peak_source=None,
        dtype=None,
        dtype_basis=None,
        shape_origin=None,
        steps=20,
        window_start_seconds=NOW - 200,
        window_end_seconds=NOW - 5,
    )
    return replace(made, **changes)


def row(mfu: float | None = 0.4, target: float | None = 0.45, **changes: Any) -> JobRow:
    made = JobRow(
        job_id="j1",
        name="llama",
        cluster="a",
        user="ann",
        account="nlp",
        kind="pretrain",
        state="running",
        scheduler="slurm",
        scheduler_job_id="17",
        waiting_for=None,
        gpus=8,
        gpus_basis="world_size",
        gpus_observed=8,
        nodes=1,
        gpu_model="NVIDIA H100 80GB HBM3",
        mfu=figure(mfu),
        wall_mfu_ratio=None,
        target=Target(ratio=target, source="job" if target else "none"),
        kernel_active_ratio=0.6,
        tensor_active_ratio=0.5,
        trend=(),
        start_seconds=NOW - 10_000,
        end_seconds=None,
        last_step=1_000,
        last_step_seconds=NOW - 5,
        waste_gpu_milliseconds=0,
        waste_money=None,
        waste_by_class={},
        cause=None,
        findings=0,
        trainer=None,
    )
    return replace(made, **changes)


def job(shown: JobRow | None = None, **changes: Any) -> JobFacts:
    made = JobFacts(
        row=shown or row(),
        bucket="STEP",
        bucket_since_seconds=NOW - 1_000,
        steps_since_start=1_000,
        report_gap_seconds=10.0,
        data_seconds=NOW - 3,
        nodes=frozenset(("n1",)),
    )
    return replace(made, **changes)


def readings(*jobs: JobFacts, nodes: tuple[NodeFacts, ...] = (), **changes: Any) -> dict[str, Reading]:
    settings = AlertSettings(**changes)
    facts = Facts(now=NOW, jobs=jobs, nodes=nodes, verdict=None, cluster="a")
    return {reading.rule: reading for reading in read_all(facts, settings)}


def node(**changes: Any) -> NodeFacts:
    made = NodeFacts(
        cluster="a", node="n1", last_seen_seconds=NOW - 8, interval_seconds=10.0, bucket="STEP", gpus=8
    )
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("mfu", "condition"), [(0.449, "bad"), (0.45, "between"), (0.494, "between"), (0.496, "good")]
)
def test_mfu_is_low_below_its_target_and_clear_only_above_target_times_the_factor(
    mfu: float, condition: str
) -> None:
    reading = readings(job(row(mfu)))["MfuLow"]

    assert reading.condition == condition
    assert reading.values["mfu"] == mfu
    assert reading.values["target"] == 0.45


def test_a_clear_level_above_one_is_one() -> None:
    assert readings(job(row(1.0, 0.95)))["MfuLow"].condition == "good"


def test_without_a_target_there_is_no_absolute_rule() -> None:
    reading = readings(job(row(0.01, None)))["MfuLow"]

    assert (reading.condition, reading.gone_reason) == ("gone", "no_target")


@pytest.mark.parametrize("kind", ["rl", "eval", "inference", "interactive"])
def test_kinds_that_do_not_train_are_not_judged(kind: str) -> None:
    seen = readings(job(row(0.01, kind=kind)))

    assert seen["MfuLow"].condition == "gone"
    assert seen["HighUtilLowMfu"].condition == "gone"


@pytest.mark.parametrize("bucket", ["STARTUP", "RECOVERY", "CKPT", "EVAL"])
def test_start_up_recovery_checkpoint_and_evaluation_are_not_judged(bucket: str) -> None:
    assert readings(job(row(0.1), bucket=bucket))["MfuLow"].condition == "paused"


def test_the_first_steps_after_a_start_are_not_judged() -> None:
    assert readings(job(row(0.1), steps_since_start=4))["MfuLow"].condition == "paused"
    assert readings(job(row(0.1), steps_since_start=5))["MfuLow"].condition == "bad"
    assert readings(job(row(0.1), steps_since_start=4), warmup_steps=0)["MfuLow"].condition == "bad"


def test_an_estimate_an_unknown_figure_and_old_steps_are_no_evidence() -> None:
    estimate = replace(row(), mfu=figure(0.1, basis="hardware"))
    old = replace(row(), mfu=figure(0.1, window_end_seconds=NOW - 61))

    assert readings(job(estimate))["MfuLow"].condition == "missing"
    assert readings(job(row(None)))["MfuLow"].condition == "missing"
    assert readings(job(old))["MfuLow"].condition == "missing"
    assert readings(job(old, report_gap_seconds=30.0))["MfuLow"].condition == "bad"


def test_clearing_takes_as_long_as_firing_unless_it_is_set() -> None:
    assert readings(job(), mfu_low_for_seconds=90.0)["MfuLow"].keep_seconds == 90.0
    assert readings(job(), mfu_low_keep_seconds=30.0)["MfuLow"].keep_seconds == 30.0


def test_a_job_that_ended_has_no_alerts_any_more() -> None:
    seen = readings(job(row(state="ended"), bucket="HANG"))

    assert {reading.condition for rule, reading in seen.items() if rule != "BelowBreakeven"} == {"gone"}


def test_the_ledgers_hang_is_critical_and_fires_at_once() -> None:
    reading = readings(job(bucket="HANG"))["JobHang"]

    assert (reading.condition, reading.severity, reading.for_seconds) == ("bad", "critical", 0.0)
    assert reading.since_seconds == NOW - 1_000
    assert readings(job(bucket="UNKNOWN"))["JobHang"].condition == "missing"
    assert readings(job(bucket="STEP"))["JobHang"].condition == "good"


@pytest.mark.parametrize("bucket", ["HELD_IDLE", "HELD_EMPTY"])
def test_held_gpus_without_work_are_a_warning_and_after_an_hour_critical(bucket: str) -> None:
    early = readings(job(bucket=bucket, bucket_since_seconds=NOW - 1_900))["IdleHeld"]
    late = readings(job(bucket=bucket, bucket_since_seconds=NOW - 3_600))["IdleHeld"]

    assert (early.condition, early.severity, early.for_seconds) == ("bad", "warning", 1_800.0)
    assert late.severity == "critical"
    assert late.values["hours"] == 1.0


@pytest.mark.parametrize(
    ("kernel", "tensor", "mfu", "target", "condition"),
    [
        (0.95, 0.50, 0.29, None, "bad"),
        (0.95, 0.14, 0.35, None, "bad"),
        (0.95, 0.14, 0.35, 0.34, "good"),
        (0.95, 0.14, None, None, "bad"),
        (0.89, 0.14, 0.10, None, "good"),
        (0.95, 0.50, 0.31, None, "good"),
        (0.95, None, None, None, "missing"),
        (None, 0.10, 0.10, None, "missing"),
    ],
)
def test_busy_gpus_with_little_arithmetic_are_named(
    kernel: float | None, tensor: float | None, mfu: float | None, target: float | None, condition: str
) -> None:
    shown = row(mfu, target, kernel_active_ratio=kernel, tensor_active_ratio=tensor)

    assert readings(job(shown))["HighUtilLowMfu"].condition == condition


def test_a_straggler_alerts_only_where_diagnosis_names_one() -> None:
    named = row(cause=Cause(code="straggler", severity="warning", values={"node": "n7"}))

    assert readings(job(named))["Straggler"].values == {"job": "llama", "node": "n7"}
    assert readings(job())["Straggler"].condition == "good"


def test_a_silent_node_has_no_data_and_is_not_called_down() -> None:
    silent = readings(nodes=(node(last_seen_seconds=NOW - 26),))

    assert silent["NoData"].condition == "bad"
    assert silent["NodeDown"].condition == "missing"
    assert readings(nodes=(node(last_seen_seconds=NOW - 25),))["NoData"].condition == "good"


def test_a_node_whose_gpus_are_all_faulty_is_down() -> None:
    reading = readings(nodes=(node(bucket="FAULT"),))["NodeDown"]

    assert (reading.condition, reading.severity) == ("bad", "critical")
    assert reading.labels == {"cluster": "a", "node": "n1"}


def test_planned_maintenance_is_not_silence() -> None:
    assert readings(nodes=(node(bucket="MAINT", last_seen_seconds=NOW - 900),))["NoData"].condition == "good"


@pytest.mark.parametrize(
    ("code", "condition"),
    [
        ("below_sustained", "bad"),
        ("below", "between"),
        ("above_not_sustained", "between"),
        ("above_sustained", "good"),
        ("insufficient_data", "missing"),
    ],
)
def test_only_a_sustained_state_below_the_line_is_told(code: Any, condition: str) -> None:
    verdict = Verdict(
        code=code,
        line_ratio=0.7,
        line_source="default",
        mean_30d_ratio=0.55,
        valid_days=30,
        days_above=0,
        days_total=30,
        sustained=True,
        days_in_state=20,
        cost_at_mean=None,
        cost_at_line=None,
    )
    facts = Facts(now=NOW, jobs=(), nodes=(), verdict=verdict, cluster="a")

    (reading,) = read_all(facts, AlertSettings())

    assert (reading.rule, reading.severity, reading.condition) == ("BelowBreakeven", "info", condition)
    assert reading.values == {"mean": 0.55, "line": 0.7}


def test_the_settings_know_every_rule() -> None:
    facts = Facts(
        now=NOW,
        jobs=(job(),),
        nodes=(node(health=NodeHealth(gpus=(GpuHealth(gpu="g1"),), ports=(PortHealth(port="mlx5_0/1"),))),),
        budgets=(BudgetHealth(name="nlp", state="ok"),),
        verdict=Verdict(
            code="below",
            line_ratio=0.7,
            line_source="default",
            mean_30d_ratio=None,
            valid_days=0,
            days_above=0,
            days_total=0,
            sustained=False,
            days_in_state=0,
            cost_at_mean=None,
            cost_at_line=None,
        ),
        cluster="a",
    )

    assert {reading.rule for reading in read_all(facts, AlertSettings())} == set(ALERT_RULES)


def test_values_are_never_part_of_the_identity() -> None:
    seen = readings(job(), nodes=(node(),))

    assert {tuple(sorted(reading.labels)) for reading in seen.values()} == {
        ("cluster", "job_id"),
        ("cluster", "node"),
    }
