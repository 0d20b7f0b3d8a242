"""What holds for any costs."""

from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.collector.economics.worked import TWO

from flopwatch_collector.config_costs import CloudCosts, EfficiencySettings, OwnCosts
from flopwatch_collector.economics.assessment import assess
from flopwatch_collector.economics.breakeven import Breakeven, CloudPrice, per_useful_eflop
from flopwatch_collector.economics.case import Case
from flopwatch_collector.economics.demand import duration_curve
from flopwatch_collector.economics.observed import Observed
from flopwatch_collector.economics.own import capital_charge

ratios = st.floats(0.05, 1.0)
prices = st.floats(0.01, 20.0)
lines = st.builds(
    Breakeven,
    fixed_per_gpu_hour=prices,
    variable_per_gpu_hour=st.floats(0.0, 1.0),
    efficiency_ratio=st.floats(0.1, 3.0),
    cloud=st.builds(
        CloudPrice,
        price=prices,
        billed_per_used=st.floats(1.0, 2.0),
        commitment_ratio=st.sampled_from([0.0, 0.3, 1.0]),
        commitment_price=prices,
    ),
)


@given(line=lines)
def test_at_the_line_both_cost_the_same_unless_owning_is_always_cheaper(line):
    star = line.u_star

    if star:
        assert line.own_at(star) == pytest.approx(line.cloud_at(star), rel=1e-6)
    if star == 0.0:
        assert all(line.owning_is_cheaper(used / 20) for used in range(21))


@given(line=lines, used=st.floats(0.0, 1.0))
def test_from_the_line_on_owning_is_cheaper_and_never_means_that_all_hours_are_not_enough(line, used):
    star = line.u_star

    if star is None:
        assert line.own_at(1.0) > line.cloud_at(1.0) - 1e-9
    elif used >= star:
        assert line.own_at(used) <= line.cloud_at(used) + 1e-6


@settings(max_examples=50)
@given(
    own=ratios, goodput=ratios, cloud=st.tuples(ratios, ratios), price=prices, peaks=st.tuples(prices, prices)
)
def test_at_the_line_useful_work_costs_the_same(own, goodput, cloud, price, peaks):
    efficiency = EfficiencySettings(
        own_mfu=own, own_goodput=goodput, cloud_mfu=cloud[0], cloud_goodput=cloud[1],
        own_peak_tflops=peaks[0] * 100, cloud_peak_tflops=peaks[1] * 100,
    )  # fmt: skip
    case = Case(
        own=OwnCosts(**TWO),
        cloud=CloudCosts(price_per_gpu_hour=price, billed_per_used=1.2),
        efficiency=efficiency,
    )
    sides, star = case.ratio(), case.breakeven().threshold

    if star < 1e6:
        mine = per_useful_eflop(case.cost().at(star), star, sides.own_flops)
        assert mine == pytest.approx(per_useful_eflop(price * 1.2, 1.0, sides.cloud_flops), rel=1e-9)


@given(value=prices, left=st.floats(0.0, 0.9), years=st.floats(0.5, 20.0), interest=st.floats(0.001, 0.5))
def test_the_charge_pays_the_value_back_with_interest(value, left, years, interest):
    charge = capital_charge(value, value * left, years, interest)

    # Present value of the charges and of what is left over.
    growth = (1.0 + interest) ** years
    paid = charge * (1.0 - 1.0 / growth) / interest + value * left / growth
    assert paid == pytest.approx(value, rel=1e-9)


@given(
    levels=st.lists(st.tuples(st.integers(0, 64), st.integers(1, 50)), min_size=1, max_size=8), star=ratios
)
def test_the_base_is_the_largest_count_that_is_asked_for_long_enough(levels, star):
    total = sum(weight for _, weight in levels)
    asked = [sum(weight for gpus, weight in levels if gpus >= k) / total for k in range(66)]

    assert duration_curve(levels).ownable(star) == max((k for k in range(66) if asked[k] > star), default=0)


@given(used=ratios)
def test_the_decision_to_keep_is_never_harder_than_that_to_buy(used):
    case = Case(own=OwnCosts(**TWO), cloud=CloudCosts(price_per_gpu_hour=3.0))
    bought, kept = assess(case, Observed(asked_ratio=used), date(2026, 11, 30)).decisions

    assert not (bought.verdict == "own" and kept.verdict == "rent")


@example(value=1.0, years=1.5, interest=5e-324)
@example(value=1.0, years=0.5, interest=5e-324)
@given(value=prices, years=st.floats(0.5, 100.0), interest=st.floats(0.0, 1e-12))
def test_the_smallest_interest_is_hardly_more_than_none(value, years, interest):
    assert capital_charge(value, 0.0, years, interest) == pytest.approx(value / years, rel=1e-9)
