"""Rules over the past of jobs: launches that lead nowhere, saves that block, and what runs like it reach."""

from dataclasses import replace
from typing import Any

from tests.integration.collector.static_query import FIGURE, ROW, StaticQuery

from flopwatch.query import Job, Mark, Range, Series, SessionInfo, Stretch
from flopwatch_collector.alerting.rehearsal import Rehearsal, rehearse
from flopwatch_collector.config_alerts import AlertSettings

BEGIN = 1_000_020.0
MINUTE = 60.0


def job(name: str = "llama", mfu: float | None = 0.4, minutes: int = 120, **changes: Any) -> Job:
    """A run with a point a minute, all of it steps."""
    page = StaticQuery().job(ROW.job_id, Range())
    assert page is not None
    times = tuple(BEGIN + number * MINUTE for number in range(minutes))
    figure = replace(
        FIGURE,
        flops_per_token=5.1e10,
        gpu_model="H100",
        dtype="bf16",
        basis="steps+shape",
        window_end_seconds=None,
    )
    row = replace(
        ROW, job_id=name, name=name, cluster="a", mfu=figure, gpus=8, start_seconds=BEGIN, end_seconds=None,
        state="running",
    )  # fmt: skip
    whole = Stretch(
        start_seconds=BEGIN, end_seconds=BEGIN + minutes * MINUTE, bucket="STEP", ledger_class="productive"
    )
    columns = {
        "mfu": (mfu,) * minutes, "kernel_active": (0.9,) * minutes, "tensor_active": (0.4,) * minutes,
    }  # fmt: skip
    series = Series(level="raw", step_seconds=MINUTE, time_seconds=times, columns=columns)
    return replace(page, row=row, series=series, strip=(whole,), **changes)


def launch(number: int, minute: float, resumed: int | None = 1_000) -> SessionInfo:
    return SessionInfo(
        session_id=f"s{number}", start_seconds=BEGIN + minute * MINUTE, end_seconds=None, exit_reason=None,
        first_step=None, last_step=None, resumed_from_step=resumed, steps=0, lost_steps=0,
    )  # fmt: skip


def times(told: Rehearsal, rule: str) -> list[tuple[str, float, float | None]]:
    """Job, and minutes of begin and end, of the episodes of a rule."""
    return [
        (
            one.job,
            (one.start_seconds - BEGIN) / MINUTE,
            None if one.end_seconds is None else (one.end_seconds - BEGIN) / MINUTE,
        )
        for one in told.episodes
        if one.rule == rule
    ]


def test_launches_that_go_on_from_one_step_make_no_progress_until_a_checkpoint_is_saved() -> None:
    sessions = tuple(launch(number, 10.0 + 4.0 * number) for number in range(5))
    saved = Mark(
        time_seconds=BEGIN + 40 * MINUTE, end_seconds=BEGIN + 41 * MINUTE, kind="checkpoint", text=""
    )

    told = rehearse([job(sessions=sessions, marks=(saved,))], AlertSettings())

    # Launched at 10, 14, 18, 22 and 26: the third makes NoProgress, the fifth RestartStorm; the save ends at 41.
    assert times(told, "NoProgress") == [("llama", 18.0, 41.0)]
    ((name, begin, end),) = times(told, "RestartStorm")
    assert (name, begin) == ("llama", 26.0)
    # At 53 one launch is left within half an hour, and it must stay quiet for an hour.
    assert end is not None
    assert 110.0 <= end <= 118.0


def test_saves_that_block_a_twentieth_of_the_time_are_slow() -> None:
    def part(first: float, last: float, bucket: str) -> Stretch:
        kind: Any = "in_job_loss" if bucket == "CKPT" else "productive"
        return Stretch(
            start_seconds=BEGIN + first * MINUTE,
            end_seconds=BEGIN + last * MINUTE,
            bucket=bucket,
            ledger_class=kind,
        )

    strip = []
    for begin in range(0, 120, 20):
        strip += [part(begin, begin + 18, "STEP"), part(begin + 18, begin + 20, "CKPT")]

    told = rehearse([replace(job(), strip=tuple(strip))], AlertSettings())

    # Two minutes of every twenty, known from the third save on, which ends after an hour.
    assert [(name, begin) for name, begin, _ in times(told, "CkptSlow")] == [("llama", 60.0)]


def test_a_run_below_others_of_its_kind_is_told_and_they_are_not() -> None:
    others = [job(f"other-{number}", mfu=0.42) for number in range(3)]

    told = rehearse([job("slow", mfu=0.30), *others], AlertSettings())

    # 0.30 is below 0.80 of 0.42; half an hour of it.
    ((name, begin, end),) = times(told, "MfuBelowNorm")
    assert (name, end) == ("slow", None)
    assert 30.0 <= begin <= 32.0


def test_gpus_held_idle_for_a_day_of_gpu_hours_burn_the_budget() -> None:
    idle = Stretch(
        start_seconds=BEGIN,
        end_seconds=BEGIN + 400 * MINUTE,
        bucket="HELD_IDLE",
        ledger_class="allocated_idle",
    )

    told = rehearse([replace(job(mfu=None, minutes=400), strip=(idle,))], AlertSettings())

    # Eight GPUs reach 24 GPU-hours after three hours, and 15 minutes more are waited for.
    ((_, begin, _),) = times(told, "BudgetBurn")
    assert 195.0 <= begin <= 197.0
