"""Steps once, sessions joined, lost work found."""

import numpy as np
import pytest
from tests.unit.collector.compute.ledger_scene import job, launch, phases, step_run, steps

from flopwatch_collector.compute.progress import hang_threshold_seconds, report_gap_seconds
from flopwatch_collector.compute.timeline import job_timeline

NOTHING = phases([])


def timeline(rows, launches, told=NOTHING, now=1e6):
    return job_timeline(job(1), launches, steps(rows), told, now)


def test_sixteen_agents_that_follow_one_file_give_the_steps_of_one():
    once = step_run(1, 20, 100.0)
    rows = [{**row, "node": node} for node in range(1, 17) for row in once]

    line = timeline(rows, [launch(1, begin_seconds=90.0)])

    assert line.steps["step"].tolist() == list(range(1, 21))
    assert line.steps["begin"].tolist() == [100.0 + 10 * n for n in range(20)]


def test_the_sdk_beats_the_log_of_the_same_session():
    told = step_run(1, 10, 100.0, source=0, launch=2, tokens=5)
    printed = step_run(1, 10, 100.3, source=2, launch=1, tokens=4)
    launches = [launch(1, begin_seconds=90.0), launch(2, source=0, source_id="sdk", begin_seconds=95.0)]

    line = timeline(told + printed, launches)

    assert len(line.sessions) == 1
    assert line.sessions[0].launches == (1, 2)
    assert line.steps["tokens"].tolist() == [5.0] * 10


def test_launches_of_two_sources_join_by_restart_number():
    launches = [
        launch(1, session=0, restart_number=0),
        launch(2, session=1, restart_number=1),
        launch(3, source=0, source_id="sdk", session=0, restart_number=1),
    ]

    line = timeline(step_run(1, 5, 100.0) + step_run(6, 9, 300.0, launch=2), launches)

    assert [session.launches for session in line.sessions] == [(1,), (2, 3)]


def test_a_new_session_rolls_back_what_lies_beyond_its_first_step():
    rows = step_run(1, 50, 100.0) + step_run(41, 60, 700.0, launch=2)
    launches = [launch(1, begin_seconds=0.0, end_seconds=620.0), launch(2, begin_seconds=620.0)]

    line = timeline(rows, launches)

    assert line.sessions[1].resumed_from_step == 40
    assert line.steps["step"][line.steps["lost"]].tolist() == list(range(41, 51))
    assert line.lost_steps(1) == 10
    assert line.kept()["step"].tolist() == [*range(1, 41), *range(41, 61)]


def test_before_its_first_step_a_session_is_taken_to_go_on_from_the_last_checkpoint():
    told = phases(
        [
            {"ts": 300.0, "end": 310.0, "kind": "checkpoint", "step": 20},
            {"ts": 500.0, "end": 505.0, "kind": "checkpoint", "step": 35, "blocking": 0, "committed": 0},
        ]
    )
    launches = [launch(1, begin_seconds=0.0, end_seconds=620.0), launch(2, begin_seconds=620.0)]

    line = timeline(step_run(1, 50, 100.0), launches, told, now=650.0)

    assert line.sessions[1].resumed_from_step == 20
    assert line.lost_steps(1) == 30


def test_the_order_of_the_rows_does_not_matter():
    rows = step_run(1, 40, 100.0, seconds=9.7) + step_run(31, 60, 700.0, launch=2)
    launches = [launch(1, begin_seconds=0.0), launch(2, begin_seconds=600.0)]
    shuffled = [rows[index] for index in np.random.default_rng(5).permutation(len(rows))]

    straight, mixed = timeline(rows, launches), timeline(shuffled, launches)

    assert {name: mixed.steps[name].tolist() for name in ("ts", "begin", "step", "lost")} == {
        name: straight.steps[name].tolist() for name in ("ts", "begin", "step", "lost")
    }


def test_a_step_of_unknown_length_lasts_since_the_one_before():
    rows = [{"step": n, "ts": 100.0 + 10 * n} for n in range(1, 6)]

    line = timeline(rows, [launch(1)])

    assert line.steps["begin"].tolist() == [110.0, 110.0, 120.0, 130.0, 140.0]


def test_a_job_of_which_nothing_was_said_is_not_instrumented():
    line = timeline([], [])

    assert not line.instrumented
    assert line.last_progress_seconds is None


@pytest.mark.parametrize(("gap", "threshold"), [(12.0, 120.0), (90.0, 450.0), (200.0, 600.0), (400.0, 800.0)])
def test_the_hang_threshold_follows_the_gap_between_reports(gap, threshold):
    assert hang_threshold_seconds(gap) == threshold


def test_the_learned_gap_is_that_of_reports_and_forgets_interruptions():
    ends = np.array([3000.0, 6000.0, 9000.0, 60_000.0, 63_000.0])

    assert report_gap_seconds(ends, np.ones(5, dtype=np.bool_)) == 3000.0
