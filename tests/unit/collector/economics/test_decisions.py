"""Buy or renew at full cost, keep or retire at what can still be avoided; demand; gates; notes."""

from datetime import date

import pytest
from tests.unit.collector.economics.worked import first, second

from flopwatch.efficiency import goodput_of
from flopwatch_collector.config_costs import CloudCosts, EfficiencySettings, OwnCosts
from flopwatch_collector.economics.assessment import assess
from flopwatch_collector.economics.case import Case, fleet_threshold
from flopwatch_collector.economics.decisions import avoidable_per_gpu_hour
from flopwatch_collector.economics.demand import duration_curve
from flopwatch_collector.economics.efficiency import Measured
from flopwatch_collector.economics.observed import Observed

TODAY = date(2026, 11, 30)


def codes(case, seen=None):
    return {note.code: note.values for note in assess(case, seen or Observed(), TODAY).notes}


def test_who_keeps_a_machine_pays_its_running_cost_only():
    # (2,340 + 3,125 + 1,600) / 8760 + 0.039
    assert avoidable_per_gpu_hour(first()) == pytest.approx(0.845507, abs=1e-6)

    bought, kept = assess(first(), Observed(asked_ratio=0.5), TODAY).decisions

    assert (bought.verdict, bought.action, round(bought.u_star, 5)) == ("rent", "rent", 0.64672)
    assert (kept.verdict, kept.action) == ("own", "keep")
    assert kept.u_star == pytest.approx(0.845507 / 2.896, abs=1e-6)


def test_who_keeps_a_machine_forgoes_its_sale():
    sold = first(resale_per_gpu=16_000.0, remaining_years=2.0)

    # 16,000 today, 10 % of 40,000 in two years: 6,000 a year.
    assert avoidable_per_gpu_hour(sold) == pytest.approx(0.845507 + 6_000 / 8_760, abs=1e-6)


def test_moving_in_is_paid_once_and_not_again_by_who_stays():
    moved = first(migration_once=512_000.0)

    assert moved.cost().migration == 1_000.0
    assert avoidable_per_gpu_hour(moved) == pytest.approx(0.845507, abs=1e-6)


def test_without_a_utilisation_nothing_is_decided():
    found = assess(first(), Observed(), TODAY)

    assert (found.verdict, found.own_per_gpu_hour) == ("insufficient_data", None)
    assert [(each.verdict, each.action) for each in found.decisions] == [("insufficient_data", None)] * 2


def test_the_sustained_state_decides_where_days_are_known_and_not_their_mean():
    seen = Observed(
        mean_ratio=0.9, state_at=lambda line: "below" if line > 0.6 else "above_sustained", valid_days=40
    )

    found = assess(first(), seen, TODAY)

    assert found.verdict == "below"
    assert [(each.verdict, each.action) for each in found.decisions] == [
        ("below", None),
        ("above_sustained", "keep"),
    ]
    assert found.enough_for_purchase is False
    assert codes(first(), seen)["short_history"] == {"valid_days": 40, "needed_days": 90}


def test_an_average_above_the_line_hides_gpus_that_do_not_pay():
    curve = duration_curve([(128, 0.2), (96, 0.8)])

    found = assess(first(), Observed(asked_ratio=0.80, demand=curve), TODAY)

    assert curve.mean / 128 == pytest.approx(0.80)
    assert found.verdict == "own"
    assert (found.demand.ownable_gpus, found.demand.burst_gpus) == (96, 32)
    assert found.demand.marginal_time_ratio == pytest.approx(0.2)


def test_a_gpu_must_be_asked_for_during_more_than_the_line():
    curve = duration_curve([(8, 60), (4, 40)])

    assert curve.ownable(0.6) == 4
    assert curve.ownable(0.59) == 8
    assert curve.ownable(None) == 0
    assert duration_curve([]).ownable(0.5) is None


def test_levels_in_any_order_make_one_curve():
    curve = duration_curve([(4, 1.0), (0, 1.0), (8, 1.0), (4, 1.0), (2, 0.0)])

    assert (curve.gpus, curve.time_ratio) == ((8, 4, 0), (0.25, 0.75, 1.0))
    assert curve.mean == pytest.approx(4.0)


def test_an_on_demand_group_has_no_line():
    case = Case(
        name="burst",
        kind="on_demand",
        own=OwnCosts(fixed_per_gpu_hour=3.0),
        cloud=CloudCosts(price_per_gpu_hour=3.0),
    )

    found = assess(case, Observed(asked_ratio=0.9), TODAY)

    assert (found.has_line, found.u_star, found.verdict, found.decisions) == (
        False,
        None,
        "insufficient_data",
        (),
    )
    assert "on_demand" in codes(case)
    assert fleet_threshold((case,)) is None


def test_the_fleet_s_line_is_weighted_by_cost():
    dear = Case(gpus=100.0, own=OwnCosts(fixed_per_gpu_hour=3.0), cloud=CloudCosts(price_per_gpu_hour=4.0))
    cheap = Case(gpus=300.0, own=OwnCosts(fixed_per_gpu_hour=1.0), cloud=CloudCosts(price_per_gpu_hour=2.0))

    # lines 0.75 and 0.5; weights 300 and 300
    assert fleet_threshold((dear, cheap)) == pytest.approx(0.625)


def test_what_a_bill_would_have_held_is_suggested_beside_one():
    held = Case(
        own=first().own, cloud=CloudCosts(price_per_gpu_hour=3.0), measured=Measured(billed_per_used=1.15)
    )
    told = Case(
        own=first().own,
        cloud=CloudCosts(price_per_gpu_hour=3.0, billed_per_used=1.1),
        measured=Measured(billed_per_used=1.15),
    )

    assert codes(held)["billed_measured"] == {"billed_per_used": 1.15}
    assert "billed_measured" not in codes(told)


def test_the_three_gates_say_what_they_were_decided_by():
    curve = duration_curve([(100, 1.0)])
    good = assess(second(own_mfu=0.42, own_goodput=0.96), Observed(asked_ratio=0.8, demand=curve), TODAY)
    poor = assess(second(), Observed(asked_ratio=0.5), TODAY)

    assert [gate.state for gate in good.gates] == ["pass", "pass", "pass"]
    assert [gate.state for gate in poor.gates] == ["fail", "fail", "unknown"]
    assert good.gates[1].values["reference_mfu"] == 0.40


@pytest.mark.parametrize(
    ("case", "code"),
    [
        pytest.param(first(capex_per_gpu=400_000.0), "fixed_unusual", id="dear"),
        pytest.param(first(capex_per_gpu=400.0), "fixed_unusual", id="cheap"),
        pytest.param(first(colo_includes_power=True), "power_twice", id="power"),
        pytest.param(first(pue=None), "pue_unknown", id="pue"),
        pytest.param(first(staff_fte=None, staff_cost_per_fte=None), "not_counted", id="staff"),
        pytest.param(
            first(resale_per_gpu=1_000.0, remaining_years=1.0), "resale_below_residual", id="resale"
        ),
        pytest.param(first(), "efficiency_unknown", id="rho"),
        pytest.param(second(), "efficiency_assumed", id="assumed"),
        pytest.param(second(cloud_goodput=None), "one_sided", id="one-sided"),
    ],
)
def test_what_a_reader_must_know_is_said(case, code):
    assert code in codes(case)


@pytest.mark.parametrize(
    ("day", "code"),
    [
        pytest.param(date(2026, 8, 31), "price_stale", id="91-days"),
        pytest.param(date(2026, 12, 1), "price_in_future", id="tomorrow"),
        pytest.param(None, "price_undated", id="none"),
    ],
)
def test_the_age_of_a_price_is_said(day, code):
    case = Case(own=first().own, cloud=CloudCosts(price_per_gpu_hour=3.0, price_date=day))

    assert code in codes(case)


def test_a_price_of_ninety_days_is_not_stale():
    case = Case(own=first().own, cloud=CloudCosts(price_per_gpu_hour=3.0, price_date=date(2026, 9, 1)))

    assert not {"price_stale", "price_undated"} & set(codes(case))


def test_power_that_the_colocation_holds_is_not_counted_twice():
    cost = first(colo_includes_power=True).cost()

    assert (cost.idle_energy_per_gpu_hour, cost.variable_per_gpu_hour) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("own", "hourly"),
    [
        ({"fixed_per_gpu_hour": 1.5}, 1.5),
        ({"rent_per_gpu_month": 1_095.0}, 1.5),
        ({"rent_per_server_month": 8_760.0, "gpus_per_server": 8.0}, 1.5),
    ],
)
def test_rent_takes_the_place_of_what_is_bought(own, hourly):
    assert Case(own=OwnCosts(**own)).cost().fixed_per_gpu_hour == pytest.approx(hourly)


@pytest.mark.parametrize(
    "cloud",
    [
        {"price_per_gpu_hour": 2.0},
        {"price_per_server_hour": 16.0, "gpus_per_server": 8.0},
        {"price_per_server_month": 11_680.0, "gpus_per_server": 8.0},
    ],
)
def test_a_server_s_price_is_that_of_its_gpus(cloud):
    assert Case(own=first().own, cloud=CloudCosts(**cloud)).breakeven().cloud.price == pytest.approx(2.0)


def test_a_peak_known_on_one_side_is_that_of_both():
    efficiency = EfficiencySettings(
        own_mfu=0.3, own_goodput=0.9, cloud_mfu=0.4, cloud_goodput=0.9, own_peak_tflops=1000.0
    )

    sides = Case(own=first().own, efficiency=efficiency).ratio()

    assert sides.ratio == pytest.approx(0.75)
    assert sides.cloud_flops == pytest.approx(0.36e15)


def test_waiting_inside_of_steps_is_in_step_mfu_and_not_taken_off_again():
    # 20 % of the held time is no step; a tenth of it was not billable.
    assert goodput_of(0.25, 0.20, 1.0) == pytest.approx(0.8)
    assert goodput_of(0.25, 0.20, 1.0 / 0.9) == pytest.approx(0.8 / 0.9)
    assert goodput_of(None, 0.2, 1.0) is None
    assert goodput_of(0.25, None, 1.0) is None
