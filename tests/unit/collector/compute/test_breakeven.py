"""The state machine of *sustained*, and the verdict made from days."""

from dataclasses import replace

import pytest

from flopwatch.query import Day
from flopwatch_collector.compute.breakeven import Line, Sustained, SustainedRule, after, verdict

S1 = [*[0.72] * 13, 0.69, *[0.71] * 14]
S2 = [*S1, *[0.64] * 6, 0.66, *[0.64] * 7]


def states(values):
    state, result = Sustained(), []
    for value in values:
        state = after(state, value, SustainedRule())
        result.append(state.above)
    return result


def first(values, *, above):
    found = states(values)
    start = found.index(True) if not above else 0
    return found.index(above, start) + 1


def test_one_day_below_the_line_begins_the_run_anew():
    assert first(S1, above=True) == 28


def test_a_day_within_the_margin_begins_the_way_down_anew():
    assert first(S2, above=False) == 42


def test_one_invalid_day_neither_counts_nor_resets():
    assert first([*[0.75] * 10, None, *[0.75] * 4], above=True) == 15


def test_two_invalid_days_in_a_row_reset():
    assert first([*[0.75] * 10, None, None, *[0.75] * 14], above=True) == 26


def test_a_mean_above_the_line_alone_is_not_sustained():
    assert not any(states([*[0.95] * 7, *[0.50] * 7]))


def days(values):
    return [
        Day(
            day=f"2026-01-{number:02}",
            billable_ratio=value,
            unknown_ratio=0.0,
            capacity_gpu_milliseconds=86_400_000,
            complete=True,
            valid=value is not None,
        )
        for number, value in enumerate(values, start=1)
    ]


@pytest.mark.parametrize(
    ("values", "code", "is_sustained", "in_state"),
    [
        pytest.param([0.8] * 20, "above_sustained", True, 7, id="twenty-good-days"),
        pytest.param([0.8] * 10 + [0.6] + [0.8] * 9, "above_not_sustained", False, 9, id="a-bad-day-between"),
        pytest.param([0.5] * 20, "below_sustained", True, 20, id="twenty-bad-days"),
        pytest.param([0.5] * 17 + [0.72] * 3, "below", False, 3, id="getting-better"),
        pytest.param([0.8] * 13, "insufficient_data", False, 14, id="too-short"),
    ],
)
def test_the_verdict_names_the_state(values, code, is_sustained, in_state):
    found = verdict(days(values), line=Line())

    assert (found.code, found.sustained, found.days_in_state) == (code, is_sustained, in_state)


def test_money_is_the_price_of_a_capacity_hour_over_the_utilisation():
    found = verdict(days([0.5] * 14), line=Line(source="costs"), price=(2.8, 0.1))

    assert found.cost_at_mean == pytest.approx(5.7)
    assert found.cost_at_line == pytest.approx(4.1)
    assert (found.valid_days, found.days_above, found.days_total) == (14, 0, 14)


def test_a_day_still_running_is_left_out():
    running = [*days([0.8] * 14), *days([0.1])]
    running[-1] = Day(
        day="2026-01-15",
        billable_ratio=0.1,
        unknown_ratio=0.0,
        capacity_gpu_milliseconds=1,
        complete=False,
        valid=True,
    )

    assert verdict(running, line=Line()).days_total == 14


def test_a_line_that_is_never_reached_has_every_day_below_it():
    found = verdict(days([1.0] * 20), line=Line(ratio=None, source="costs"), price=(2.8, 0.1))

    assert (found.code, found.never, found.line_ratio) == ("below_sustained", True, 1.0)
    assert (found.days_above, found.cost_at_line) == (0, None)


def test_the_verdict_stands_also_without_barely_used_time():
    used = [replace(day, billable_without_barely_used_ratio=0.6) for day in days([0.8] * 20)]
    found = verdict(used, line=Line())

    assert (found.code, found.mean_30d_ratio) == ("above_sustained", pytest.approx(0.8))
    assert found.code_without_barely_used == "below_sustained"
    assert found.mean_30d_without_barely_used_ratio == pytest.approx(0.6)


def test_where_that_time_is_not_known_only_one_verdict_stands():
    found = verdict(days([0.8] * 20), line=Line())

    assert (found.code_without_barely_used, found.mean_30d_without_barely_used_ratio) == (None, None)
