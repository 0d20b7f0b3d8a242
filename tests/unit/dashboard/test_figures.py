import base64
import dataclasses
from typing import Any

import numpy as np
import pytest
from tests.fixtures import dashboard_cluster as cluster

from flopwatch.query import LEDGER_CLASSES, Range, Series
from flopwatch_dashboard.figures import daily, frame, gap, lines, strip, waterfall
from flopwatch_dashboard.theme import DARK, LIGHT
from flopwatch_dashboard.view import View

ASKED = Range()
ENGLISH, DARK_VIEW = View(), View(theme="dark")


def decoded(array: dict[str, str]) -> list[float | None]:
    numbers = np.frombuffer(base64.b64decode(array["bdata"]), dtype=array["dtype"])
    return [None if np.isnan(number) else float(number) for number in numbers]


def texts(figure: dict[str, Any]) -> list[str]:
    return [note["text"] for note in figure["layout"].get("annotations", [])]


def test_typed_arrays_keep_values_and_gaps() -> None:
    assert decoded(frame.array([0.5, None, 0.25])) == [0.5, None, 0.25]


def test_times_are_shifted_to_the_zone_that_is_shown() -> None:
    utc, shanghai = (decoded(frame.times([cluster.NOW], zone)) for zone in ("UTC", "Asia/Shanghai"))

    assert utc == [cluster.NOW * 1_000]
    assert shanghai == [(cluster.NOW + 8 * 3_600) * 1_000]


def test_thinning_keeps_the_dip_that_an_average_would_hide() -> None:
    values = [0.5] * 10_000
    values[4_321] = 0.01

    kept = frame.thin(values, 400)

    assert 4_321 in kept
    assert len(kept) <= 402
    assert kept == sorted(kept)


def test_thinning_leaves_short_series_and_gaps_alone() -> None:
    assert frame.thin([None, 0.1, None], 400) == [0, 1, 2]
    assert len(frame.thin([None] * 1_000, 100)) <= 102


def test_labels_that_would_overlap_are_moved_apart_inside_the_plot() -> None:
    places = frame.spread([0.40, 0.41, 0.99, 1.0], 0.1, 0.0, 1.0)

    assert places[1] - places[0] >= 0.1 - 1e-9
    assert places[3] - places[2] >= 0.1 - 1e-9
    assert max(places) <= 1.0


def test_the_daily_bars_are_the_days_and_a_day_without_data_is_hatched_not_zero() -> None:
    figure = daily.daily(cluster.fleet(ASKED, cluster.status()), ENGLISH)
    bars, shortfall, unknown = figure["data"]

    values = decoded(bars["y"])
    assert values[0] == pytest.approx(0.618, abs=1e-6)
    assert values[18] is None
    assert decoded(unknown["y"])[18] == pytest.approx(0.7, abs=1e-6)
    assert [i for i, v in enumerate(decoded(unknown["y"])) if v is not None] == [18]
    assert decoded(shortfall["y"])[0] == pytest.approx(0.082, abs=1e-6)
    assert decoded(shortfall["y"])[7] == 0


def test_days_at_the_line_are_in_the_good_colour_and_today_is_paler() -> None:
    marker = daily.daily(cluster.fleet(ASKED, cluster.status()), ENGLISH)["data"][0]["marker"]

    assert marker["color"][7] == LIGHT["good"]
    assert marker["color"][0] == LIGHT["under"]
    assert marker["opacity"][-1] < marker["opacity"][0] == 1.0


def test_the_daily_figure_names_the_line_and_the_mean_of_the_verdict() -> None:
    fleet = cluster.fleet(ASKED, cluster.status())

    assert texts(daily.daily(fleet, ENGLISH)) == ["breakeven<br><b>70%</b>", "30-day mean<br><b>62.5%</b>"]
    assert "below the 70% line on 24 days, unknown on 1 days" in daily.description(fleet, ENGLISH)


def test_days_without_any_data_say_so() -> None:
    empty = tuple(dataclasses.replace(day, billable_ratio=None) for day in cluster.days())
    fleet = dataclasses.replace(cluster.fleet(ASKED, cluster.status()), days=empty)

    assert texts(daily.daily(fleet, ENGLISH)) == ["no data in this range"]


def test_the_waterfall_draws_all_eight_classes_and_ends_at_zero() -> None:
    bar = waterfall.waterfall(cluster.TODAY, "USD", ENGLISH)["data"][0]

    assert len(bar["x"]) == 1 + len(LEDGER_CLASSES)
    assert bar["x"][0] == cluster.CAPACITY
    assert bar["base"][-1] == 0
    assert all(bar["base"][i] + bar["x"][i] == bar["base"][i - 1] for i in range(2, len(bar["x"])))


def test_the_waterfall_says_hours_share_and_money() -> None:
    figure = waterfall.waterfall(cluster.TODAY, "USD", ENGLISH)

    assert texts(figure)[:3] == ["15,565 · 100%", "465 · 3% · $1,162", "3,000 · 19% · $7,500"]
    assert "unsold capacity" in figure["data"][0]["customdata"][2]
    assert figure["layout"]["yaxis"]["ticktext"][-2:] == ["Working, unmeasured", "Unknown"]


def test_the_waterfall_without_a_price_shows_no_money() -> None:
    classes = tuple(dataclasses.replace(amount, money=None) for amount in cluster.TODAY.classes)
    free = dataclasses.replace(cluster.TODAY, classes=classes, waste_money=None)

    assert not any("$" in text or "n/a" in text for text in texts(waterfall.waterfall(free, "USD", ENGLISH)))


def test_a_class_that_is_there_but_tiny_does_not_read_as_nothing() -> None:
    ledger = cluster.ledger({"down": 1}, 1_000 * cluster.HOUR)

    assert texts(waterfall.waterfall(ledger, "USD", ENGLISH))[1].startswith("1.0 · <1%")


def test_unknown_time_is_hatched() -> None:
    marker = waterfall.waterfall(cluster.TODAY, "USD", ENGLISH)["data"][0]["marker"]

    assert marker["pattern"]["shape"] == [""] * 8 + ["/"]


def test_activity_lines_keep_gaps_and_name_their_newest_values() -> None:
    fleet = cluster.fleet(ASKED, cluster.status())
    figure = lines.activity(fleet.series, 0.45, "UTC", ENGLISH)

    assert [trace["name"] for trace in figure["data"]] == ["Kernel active", "Tensor active", "MFU"]
    assert decoded(figure["data"][2]["y"])[240:246] == [None] * 6
    assert texts(figure)[0].startswith("Kernel active <b>88%")
    assert texts(figure)[-1] == "target 45%"


def test_without_a_target_no_line_is_drawn() -> None:
    figure = lines.activity(cluster.fleet_series(ASKED), None, "UTC", ENGLISH)

    assert figure["layout"]["shapes"] == []
    assert not any("target" in text for text in texts(figure))


def test_a_column_that_nobody_measured_is_left_out() -> None:
    series = cluster.fleet_series(ASKED)
    unmeasured = dataclasses.replace(series, columns={**series.columns, "tensor_active": (None,) * 288})

    assert len(lines.activity(unmeasured, None, "UTC", ENGLISH)["data"]) == 2


def test_an_mfu_above_one_is_shown_and_not_cut() -> None:
    series = Series(level="raw", step_seconds=60, time_seconds=(0.0, 60.0), columns={"mfu": (1.2, 1.3)})

    assert lines.mfu(series, None, "UTC", ENGLISH)["layout"]["yaxis"]["range"][1] > 1.3


def test_a_single_spike_beyond_one_is_said_and_does_not_flatten_the_rest() -> None:
    values = (*([0.4] * 99), 2.9)
    times = tuple(60.0 * i for i in range(100))
    figure = lines.mfu(
        Series(level="raw", step_seconds=60, time_seconds=times, columns={"mfu": values}),
        None,
        "UTC",
        ENGLISH,
    )

    assert figure["layout"]["yaxis"]["range"] == [0, 1.0]
    assert texts(figure)[-1] == "▲ 1 points above, up to 290%"


@pytest.mark.parametrize("top", [0.25, 0.5, 0.75, 0.9, 1.0, 1.4, 3.2, 40.0])
def test_an_axis_has_at_most_six_marks(top: float) -> None:
    axis = frame.percent_axis(top)

    assert 2 <= len(axis["tickvals"]) <= 6
    assert axis["tickvals"][0] == 0


def test_the_axis_covers_the_asked_range_even_when_data_began_later() -> None:
    series = Series(
        level="raw",
        step_seconds=60,
        time_seconds=(cluster.NOW - 60, cluster.NOW),
        columns={"mfu": (0.4, 0.4)},
    )

    assert lines.mfu(series, None, "UTC", ENGLISH)["layout"]["xaxis"]["range"] == [
        "2026-11-29 15:12:00",
        "2026-11-30 15:12:00",
    ]


def test_the_gap_between_step_and_wall_mfu_is_itemised_by_the_ledger_and_adds_up() -> None:
    job = cluster.job(1, ASKED, cluster.status())

    found = gap.losses(job)

    assert found is not None
    # 842 of 256 GPUs x 24 h = 6,144 GPU-hours waited for data, at a step MFU of 31.2 %.
    assert found[0].bucket == "DATA_WAIT"
    assert found[0].ratio == pytest.approx(0.312 * 842 / 6_144)
    assert found[-1].bucket is None
    assert sum(loss.ratio for loss in found) == pytest.approx(0.312 - 0.312 * 0.82)


def test_lost_time_inside_the_steps_is_said_to_be_there() -> None:
    job = cluster.job(1, ASKED, cluster.status())
    row = dataclasses.replace(job.row, wall_mfu_ratio=0.31)

    found = gap.losses(dataclasses.replace(job, row=row))

    assert found is not None
    assert found[-1].ratio == pytest.approx(0.312 - 0.31 - 0.312 * 842 / 6_144)
    assert gap.name(found[-1], ENGLISH) == "Inside the steps"


def test_the_gap_is_not_made_up_when_a_figure_is_unknown() -> None:
    job = cluster.job(8, ASKED, cluster.status())

    assert gap.losses(job) is None
    assert texts(gap.gap(job, ENGLISH)) == ["Both figures are needed to itemise the gap; one is unknown."]


def test_the_gap_figure_ends_at_the_wall_mfu() -> None:
    bar = gap.gap(cluster.job(1, ASKED, cluster.status()), ENGLISH)["data"][0]

    assert bar["x"][0] == pytest.approx(0.312)
    assert bar["base"][-2] == pytest.approx(bar["x"][-1])


def test_the_strip_has_the_stretches_in_their_colours_and_the_events() -> None:
    job = cluster.job(1, ASKED, cluster.status())
    bars, marks = strip.strip(job, DARK_VIEW)["data"]

    assert bars["marker"]["color"] == [DARK["in_job_loss"], DARK["productive"]]
    assert decoded(bars["x"])[0] == pytest.approx(842 / 256 * 3_600_000)
    assert marks["customdata"] == ["restart: session s-2 from step 8,180", "checkpoint: step 10,000 · 3 min"]
    assert strip.description(job, ENGLISH) == "State over time: In-job loss 14%, Productive 86%."


def test_figures_carry_no_template_and_no_webgl() -> None:
    job = cluster.job(1, ASKED, cluster.status())
    figures = [gap.gap(job, ENGLISH), strip.strip(job, ENGLISH), lines.mfu(job.series, None, "UTC", ENGLISH)]

    assert not any("template" in figure["layout"] for figure in figures)
    assert not any(trace["type"].endswith("gl") for figure in figures for trace in figure["data"])
