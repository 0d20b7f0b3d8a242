import pytest
from tests.unit.collector.alerting.facts_of_runs import NOW, job, of_job

from flopwatch_collector.compute.detection.overdue import Silence
from flopwatch_collector.compute.detection.peers import Suspect
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.config_alerts import RuleSettings
from flopwatch_collector.watched import Frozen, Spending, StepHistory, WatchedRun

HUNG = Silence(overdue_seconds=100.0, gap_seconds=9.0, tensor_active_ratio=0.0005, power_ratio=0.12)


def course(newest: float, usual: float = 0.42, count: int = 100, config: str = "c") -> StepHistory:
    ratios = (usual,) * count + (newest,) * 20
    return StepHistory(config=config, seconds=(10.0,) * len(ratios), ratios=ratios, end_seconds=NOW - 5)


@pytest.mark.parametrize(
    ("newest", "condition"), [(0.37, "bad"), (0.385, "between"), (0.398, "between"), (0.3991, "good")]
)
def test_mfu_drops_below_nine_tenths_of_its_usual_and_clears_at_95_percent(
    newest: float, condition: str
) -> None:
    reading = of_job("MfuDrop", job(WatchedRun(steps=course(newest))))

    assert (reading.condition, reading.for_seconds, reading.severity) == (condition, 600.0, "warning")
    assert reading.values["baseline"] == 0.42


def test_a_drop_below_seven_tenths_is_critical() -> None:
    assert of_job("MfuDrop", job(WatchedRun(steps=course(0.29)))).severity == "critical"


def test_a_baseline_needs_fifty_steps() -> None:
    assert of_job("MfuDrop", job(WatchedRun(steps=course(0.2, count=49)))).condition == "missing"


def test_the_baseline_does_not_learn_the_fault_while_it_lasts() -> None:
    run = WatchedRun(steps=course(0.37, usual=0.37), frozen=Frozen(config="c", baseline_ratio=0.42))

    assert of_job("MfuDrop", job(run)).condition == "bad"


def test_another_shape_or_batch_has_a_baseline_of_its_own() -> None:
    run = WatchedRun(
        steps=course(0.37, usual=0.37, config="d"), frozen=Frozen(config="c", baseline_ratio=0.42)
    )

    assert of_job("MfuDrop", job(run)).condition == "good"


def test_a_slow_slide_is_held_against_the_beginning_of_the_day() -> None:
    trend = tuple(0.42 - 0.002 * hour for hour in range(24))
    run = WatchedRun(steps=course(0.37, usual=0.375), trend=trend)

    assert of_job("MfuDrop", job(run)).condition == "bad"


@pytest.mark.parametrize("bucket", ["STARTUP", "RECOVERY", "CKPT", "EVAL"])
def test_nothing_is_judged_in_phases(bucket: str) -> None:
    assert of_job("MfuDrop", job(WatchedRun(steps=course(0.2)), bucket=bucket)).condition == "paused"
    assert of_job("StepSpikes", job(WatchedRun(steps=course(0.2)), bucket=bucket)).condition == "paused"


def test_a_site_may_set_its_own_level() -> None:
    settings = AlertSettings(rules={"MfuDrop": RuleSettings(level=0.8)})

    assert of_job("MfuDrop", job(WatchedRun(steps=course(0.37))), settings).condition == "good"
    assert of_job("MfuDrop", job(WatchedRun(steps=course(0.33))), settings).condition == "bad"


@pytest.mark.parametrize(("mfu", "condition"), [(0.31, "bad"), (0.33, "between"), (0.36, "good")])
def test_a_run_slow_from_its_birth_is_below_the_norm_of_its_class(mfu: float, condition: str) -> None:
    reading = of_job("MfuBelowNorm", job(WatchedRun(norm_ratio=0.40), mfu=mfu))

    assert (reading.condition, reading.severity) == (condition, "info")


def test_without_a_norm_nothing_is_below_it() -> None:
    assert of_job("MfuBelowNorm", job(WatchedRun())).condition == "gone"


def test_two_signals_make_a_hang_before_the_ledger_does() -> None:
    reading = of_job("JobHang", job(WatchedRun(silence=HUNG)))

    assert (reading.condition, reading.severity) == ("bad", "critical")
    assert reading.since_seconds == NOW - 100.0
    assert reading.values["signals"] == "tensor_off, power_low"


def test_silence_alone_is_a_suspect() -> None:
    silence = Silence(overdue_seconds=130.0, gap_seconds=9.0)
    run = WatchedRun(silence=silence)

    assert of_job("JobHang", job(run)).condition == "good"
    assert of_job("HangSuspect", job(run)).condition == "bad"
    assert of_job("HangSuspect", job(WatchedRun(silence=HUNG))).condition == "good"
    assert of_job("HangSuspect", job(WatchedRun())).condition == "missing"


SUSPECT = Suspect(kind="compute", node="n7", gpu="3", hardware="throttle", signal="sm_clock")


def test_the_same_suspect_in_three_reports_is_a_straggler() -> None:
    reading = of_job("Straggler", job(WatchedRun(suspects=(None, SUSPECT, SUSPECT, SUSPECT))))

    assert (reading.condition, reading.for_seconds) == ("bad", 0.0)
    assert reading.values == {"job": "llama", "node": "n7", "gpu": "3", "hardware": "throttle"}


def test_a_suspect_that_changes_is_no_straggler() -> None:
    other = Suspect(kind="compute", node="n2", gpu="0", signal="local_compute")

    assert of_job("Straggler", job(WatchedRun(suspects=(SUSPECT, other, SUSPECT)))).condition == "good"
    assert of_job("Straggler", job(WatchedRun(suspects=(SUSPECT, SUSPECT)))).condition == "good"


def test_imbalance_is_no_straggler() -> None:
    uneven = Suspect(kind="imbalance", node=None, signal="local_compute")

    assert of_job("Straggler", job(WatchedRun(suspects=(uneven,) * 3))).condition == "good"


def test_a_suspect_that_nobody_is_named_for_says_so() -> None:
    someone = Suspect(kind="compute", node=None, signal="tensor_active")

    reading = of_job("Straggler", job(WatchedRun(suspects=(someone,) * 3)))

    assert reading.values["node"] is None
    assert "not known which" in reading.summary


@pytest.mark.parametrize(("spiking", "condition"), [(11, "bad"), (8, "between"), (3, "good")])
def test_spikes_are_counted_over_the_newest_200_steps(spiking: int, condition: str) -> None:
    seconds = (10.0,) * (200 - spiking) + (30.0,) * spiking
    run = WatchedRun(steps=StepHistory(config="c", seconds=seconds, end_seconds=NOW))

    assert of_job("StepSpikes", job(run)).condition == condition


@pytest.mark.parametrize(("launches", "condition"), [(5, "bad"), (4, "between"), (1, "good")])
def test_five_launches_in_half_an_hour_are_a_storm(launches: int, condition: str) -> None:
    times = tuple(NOW - 100.0 * index for index in range(launches))

    assert of_job("RestartStorm", job(WatchedRun(launches=(NOW - 3_000.0, *times)))).condition == condition


@pytest.mark.parametrize(("count", "condition"), [(None, "missing"), (2, "good"), (3, "bad")])
def test_three_launches_without_a_newer_checkpoint_are_no_progress(count: int | None, condition: str) -> None:
    reading = of_job("NoProgress", job(WatchedRun(launches_without_progress=count)))

    assert (reading.condition, reading.severity) == (condition, "critical")


@pytest.mark.parametrize(
    ("saves", "share", "condition"),
    [
        ((10.0,) * 5 + (31.0,) * 3, 0.01, "bad"),
        ((10.0,) * 5 + (31.0, 31.0, 12.0), 0.01, "good"),
        ((10.0,) * 3, 0.06, "bad"),
        ((10.0,) * 2, 0.06, "missing"),
    ],
)
def test_saves_are_slow_three_times_in_a_row_or_by_their_share(
    saves: tuple[float, ...], share: float, condition: str
) -> None:
    run = WatchedRun(saves_seconds=saves, checkpoint_share=share)

    assert of_job("CkptSlow", job(run)).condition == condition


@pytest.mark.parametrize(
    ("used", "idle", "declared", "condition"),
    [
        (121.0, 0.0, 100.0, "bad"),
        (119.0, 0.0, 100.0, "good"),
        (50.0, 25.0, None, "bad"),
        (5e4, 1.0, None, "good"),
    ],
)
def test_a_job_beyond_what_was_declared_burns_its_budget(
    used: float, idle: float, declared: float | None, condition: str
) -> None:
    spending = Spending(used_gpu_hours=used, idle_gpu_hours=idle, declared_gpu_hours=declared)

    assert of_job("BudgetBurn", job(WatchedRun(spending=spending))).condition == condition
