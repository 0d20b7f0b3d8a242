"""What moves the line: the tornado, the table by capex and price, the size of the fleet."""

import pytest
from tests.unit.collector.economics.worked import first

from flopwatch_collector.economics import variations


def changes(parameter):
    rows = {row.parameter: row for row in variations.sensitivity(first())}
    return {each.change: (each.u_star, each.delta) for each in rows[parameter].variations}


@pytest.mark.parametrize(
    ("parameter", "change", "percent", "points"),
    [
        ("cloud_price_per_gpu_hour", "-20%", 81.6, 16.9), ("cloud_price_per_gpu_hour", "+20%", 53.6, -11.1),
        ("efficiency_ratio", "-20%", 81.6, 16.9), ("efficiency_ratio", "+20%", 53.6, -11.1),
        ("cost_of_capital", "=8%", 73.3, 8.6), ("cost_of_capital", "=13%", 79.0, 14.3),
        ("life_years", "-1", 76.5, 11.8), ("life_years", "+1", 57.6, -7.1), ("life_years", "+2", 52.8, -11.8),
        ("billed_per_used", "+15%", 56.0, -8.7),
        ("colo_per_kw_month", "-20%", 62.8, -1.8), ("colo_per_kw_month", "+33%", 67.7, 3.1),
        ("staff_fte", "x0.5", 58.5, -6.2), ("staff_fte", "x2", 77.0, 12.3),
        ("capex_per_gpu", "-20%", 56.3, -8.4), ("capex_per_gpu", "+20%", 73.0, 8.4),
        ("residual_ratio", "=0%", 68.6, 3.9), ("residual_ratio", "=30%", 56.8, -7.9),
        ("maintenance_ratio", "x0.5", 61.5, -3.2), ("maintenance_ratio", "x2", 71.0, 6.3),
        ("electricity_per_kwh", "x0.5", 62.9, -1.8), ("electricity_per_kwh", "x2", 68.5, 3.8),
        ("pue", "=1.1", 64.1, -0.6), ("pue", "=1.6", 65.5, 0.9),
    ],
)  # fmt: skip
def test_one_input_changed(parameter, change, percent, points):
    star, delta = changes(parameter)[change]

    assert round(star * 100, 1) == percent
    assert round(delta * 100, 1) == points


def test_the_strongest_input_comes_first():
    order = [row.parameter for row in variations.sensitivity(first())]

    assert order == [
        "cloud_price_per_gpu_hour", "efficiency_ratio", "cost_of_capital", "staff_fte", "life_years",
        "billed_per_used", "capex_per_gpu", "residual_ratio", "maintenance_ratio", "electricity_per_kwh",
        "colo_per_kw_month", "pue",
    ]  # fmt: skip


def test_a_change_to_never_has_no_difference_and_counts_by_how_far_it_goes():
    rows = {row.parameter: row for row in variations.sensitivity(first(2.05))}
    cheaper = rows["cloud_price_per_gpu_hour"].variations[0]

    assert (cheaper.u_star, cheaper.delta) == (None, None)
    # 1.872904 / (1.64 - 0.104) - 1.872904 / (2.05 - 0.104)
    assert rows["cloud_price_per_gpu_hour"].swing == pytest.approx(1.219339 - 0.962438, abs=1e-5)


@pytest.mark.parametrize(
    ("capex", "expected"),
    [
        (30_000, (98.4, 69.9, 58.2, 54.2, 41.0, 32.2, 23.2)),
        (40_000, (None, 83.4, 69.5, 64.7, 49.0, 38.4, 27.6)),
        (50_000, (None, 96.9, 80.7, 75.1, 56.9, 44.6, 32.1)),
    ],
)
def test_the_line_by_capex_and_cloud_price(capex, expected):
    table = variations.price_table(first(), prices=(1.70, 2.35, 2.80, 3.00, 3.93, 4.98, 6.88))

    row = table.u_star[table.rows.index(capex)]
    assert tuple(None if star is None else round(star * 100, 1) for star in row) == expected


@pytest.mark.parametrize(
    ("gpus", "staff", "fixed", "percent", "beyond"),
    [
        (16, 2.854, 4.370, None, 1.51), (32, 1.427, 2.943, None, 1.02), (64, 0.713, 2.230, 77.0, None),
        (100, 0.457, 1.973, 68.1, None), (128, 0.357, 1.873, 64.7, None), (256, 0.178, 1.695, 58.5, None),
        (1024, 0.045, 1.561, 53.9, None),
    ],
)  # fmt: skip
def test_the_same_team_over_fleets_of_other_sizes(gpus, staff, fixed, percent, beyond):
    row = next(row for row in variations.sizes(first()) if row.gpus == gpus)

    assert (round(row.staff_per_gpu_hour, 3), round(row.fixed_per_gpu_hour, 3)) == (staff, fixed)
    assert (None if row.u_star is None else round(row.u_star * 100, 1)) == percent
    assert beyond is None or round(row.threshold, 2) == beyond


def test_the_least_size_that_pays_at_a_utilisation():
    least = variations.least_gpus(first(), 0.7)

    smaller, enough = (first(gpus=float(gpus)).breakeven() for gpus in (least - 1, least))
    assert (smaller.owning_is_cheaper(0.7), enough.owning_is_cheaper(0.7)) == (False, True)


def test_no_size_helps_where_the_rest_is_too_dear():
    assert variations.least_gpus(first(1.70), 0.7) is None
