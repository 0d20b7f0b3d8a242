"""The worked examples of the model, to their printed digits."""

from datetime import date

import pytest
from tests.unit.collector.economics.worked import first, second

from flopwatch_collector.config_costs import CloudCosts
from flopwatch_collector.economics.assessment import assess
from flopwatch_collector.economics.breakeven import (
    Breakeven,
    CloudPrice,
    per_useful_eflop,
    price_at_breakeven,
)
from flopwatch_collector.economics.observed import Observed
from flopwatch_collector.economics.own import HOURS_PER_YEAR, recovery_factor

TODAY = date(2026, 11, 30)


def line(**values):
    return Breakeven(**{"fixed_per_gpu_hour": 1.8729, "variable_per_gpu_hour": 0.104, **values})


def test_the_first_example_s_own_cost_step_by_step():
    cost = first().cost()

    assert (cost.capital, cost.colocation, cost.staff, cost.maintenance) == (9_000, 2_340, 3_125, 1_600)
    assert cost.per_gpu_year == 16_065
    assert round(cost.capacity_per_gpu_hour, 6) == 1.833904
    assert round(cost.idle_energy_per_gpu_hour, 6) == 0.039
    assert round(cost.variable_per_gpu_hour, 6) == 0.104
    assert round(cost.fixed_per_gpu_hour, 6) == 1.872904


@pytest.mark.parametrize(
    ("price", "star"),
    [
        (2.00, 0.98782), (2.35, 0.83388), (2.80, 0.69470), (3.00, 0.64672), (3.93, 0.48952), (4.98, 0.38411),
        (6.88, 0.27640),
    ],
)  # fmt: skip
def test_the_first_example_s_line_by_cloud_price(price, star):
    assert round(first(price).breakeven().u_star, 5) == star


def test_a_line_beyond_all_hours_is_never():
    found = first(1.70).breakeven()

    assert found.u_star is None
    assert round(found.threshold, 4) == 1.1735


def test_the_price_at_which_the_line_is_seventy_percent():
    cost = first().cost()

    price = price_at_breakeven(cost.fixed_per_gpu_hour, cost.variable_per_gpu_hour, 0.7)

    assert round(price, 6) == 2.779577
    assert round(cost.at(0.7), 6) == 1.945704
    assert round(cost.at(0.7) / 0.7, 6) == 2.779577


@pytest.mark.parametrize(
    ("used", "own", "cloud", "difference"),
    [
        (0.5, 2_158_356, 1_681_920, -476_436),
        (0.7, 2_181_679, 2_354_688, 173_009),
        (0.9, 2_205_002, 3_027_456, 822_454),
    ],
)
def test_the_first_example_s_year(used, own, cloud, difference):
    both, hours = first().breakeven(), 128 * HOURS_PER_YEAR

    assert round(both.own_at(used) * hours) == own
    assert round(both.cloud_at(used) * hours) == cloud
    assert round((both.cloud_at(used) - both.own_at(used)) * hours) == difference
    assert both.owning_is_cheaper(used) == (difference > 0)


def test_the_second_example_s_own_cost_step_by_step():
    cost = second().cost()

    assert round(recovery_factor(0.10, 5.0), 6) == 0.263797
    assert round(cost.capital, 2) == 10_765.25
    assert round(cost.per_gpu_year, 2) == 19_235.75
    assert round(cost.capacity_per_gpu_hour, 6) == 2.195862
    assert round(cost.idle_energy_per_gpu_hour, 4) == 0.0567
    assert round(cost.variable_per_gpu_hour, 4) == 0.1296
    assert round(cost.fixed_per_gpu_hour, 6) == 2.252562


def test_the_second_example_flips_on_efficiency_alone():
    case = second()
    naive = line(
        fixed_per_gpu_hour=case.cost().fixed_per_gpu_hour,
        variable_per_gpu_hour=case.cost().variable_per_gpu_hour,
        cloud=CloudPrice(price=3.22),
    )

    assert round(case.breakeven().cloud.price, 4) == 3.22
    assert round(naive.u_star, 5) == 0.72889
    assert naive.owning_is_cheaper(0.75)
    assert round(case.ratio().ratio, 6) == 0.757895
    assert round(case.breakeven().u_star, 5) == 0.88168
    assert not case.breakeven().owning_is_cheaper(0.75)


def test_the_second_example_per_useful_eflop():
    found = assess(second(), Observed(asked_ratio=0.75), TODAY)

    assert found.verdict == "rent"
    assert round(found.own_per_useful_eflop, 4) == 3.0542
    assert round(found.cloud_per_useful_eflop, 4) == 2.6169


def test_the_second_example_after_tuning():
    tuned = second(own_mfu=0.42, own_goodput=0.93)

    assert round(tuned.ratio().ratio, 6) == 1.027895
    assert round(tuned.breakeven().u_star, 5) == 0.64154
    assert assess(tuned, Observed(asked_ratio=0.75), TODAY).verdict == "own"


@pytest.mark.parametrize(
    ("used", "own", "cloud", "cheaper"),
    [
        (0.3, 1.9041, 1.26, "cloud"), (0.6, 1.9353, 1.26, "cloud"), (0.7, 1.9457, 1.56, "cloud"),
        (0.8, 1.9561, 1.86, "cloud"), (0.9, 1.9665, 2.16, "own"),
    ],
)  # fmt: skip
def test_the_third_example_s_commitment(used, own, cloud, cheaper):
    both = line(cloud=CloudPrice(price=3.00, commitment_ratio=0.60, commitment_price=2.10))

    assert round(both.own_at(used), 4) == own
    assert round(both.cloud_at(used), 4) == cloud
    assert both.owning_is_cheaper(used) == (cheaper == "own")
    assert round(both.u_star, 5) == 0.83318


def test_a_contract_for_everything_is_a_flat_line():
    both = line(cloud=CloudPrice(price=3.00, commitment_ratio=1.0, commitment_price=2.10))

    assert both.u_star == 0.0
    assert [round(both.cloud_at(used), 2) for used in (0.0, 0.5, 1.0)] == [2.10, 2.10, 2.10]
    assert round(both.own_at(1.0), 4) == 1.9769


def test_within_a_dear_commitment_owning_is_cheaper_only_while_little_is_used():
    both = line(
        fixed_per_gpu_hour=1.0,
        variable_per_gpu_hour=2.0,
        cloud=CloudPrice(price=1.0, commitment_ratio=0.8, commitment_price=2.0),
    )

    assert both.u_star is None
    assert both.cheaper_below == pytest.approx(0.3)
    assert (both.owning_is_cheaper(0.29), both.owning_is_cheaper(0.31)) == (True, False)


def test_the_uplift_counts_on_committed_hours_too():
    case = first()
    cloud = CloudCosts(
        price_per_gpu_hour=3.0, uplift_ratio=0.1, commitment_ratio=0.5, commitment_price_per_gpu_hour=2.0
    )
    found = type(case)(own=case.own, cloud=cloud).breakeven()

    assert found.cloud.price == pytest.approx(3.3)
    assert found.cloud.commitment_price == pytest.approx(2.2)


def test_nothing_used_has_no_price_per_useful_work():
    assert per_useful_eflop(2.0, 0.0, 1e14) is None
    assert per_useful_eflop(2.0, 0.5, None) is None


def test_a_contract_dearer_than_owning_loses_although_its_extra_hours_are_cheap():
    both = line(
        fixed_per_gpu_hour=1.0,
        variable_per_gpu_hour=1.0,
        cloud=CloudPrice(price=0.5, commitment_ratio=0.5, commitment_price=5.0),
    )

    # 2.00 against 2.75 with all hours used, 1.00 against 2.50 with none.
    assert both.u_star == 0.0
