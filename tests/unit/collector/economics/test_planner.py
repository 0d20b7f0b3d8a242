"""GPUs, hours, energy and money of a run."""

import pytest
from tests.unit.collector.economics.worked import first, second

from flopwatch.run_sizing import Run
from flopwatch_collector.economics.planner import plan

SEVENTY = Run(flops=6 * 70e9 * 2e12, peak_flops=989.4e12, days=30, mfu=0.40, goodput=0.90)


def with_(**changes):
    return Run(**{name: changes.get(name, getattr(SEVENTY, name)) for name in Run.__dataclass_fields__})


def test_seventy_billion_parameters_in_a_month():
    found = plan(SEVENTY)

    assert round(found.gpus_exact, 2) == 909.85
    assert (found.gpus, found.gpus_in_nodes, found.nodes) == (910, 912, 114)
    assert found.gpus_with_spares == 912


def test_spares_are_whole_nodes_too():
    found = plan(with_(spares_ratio=0.05))

    assert round(found.spares_exact, 1) == 957.6
    assert (found.gpus_with_spares, found.nodes_with_spares) == (960, 120)


def test_a_whole_number_is_not_rounded_up():
    # 1e15 x 86,400 x 0.5 FLOPs a day on one GPU: exactly 16 of them.
    found = plan(Run(flops=16 * 1e15 * 86_400 * 0.5, peak_flops=1e15, days=1, mfu=0.5, goodput=1.0))

    assert (found.gpus, found.nodes) == (16, 2)


def test_owning_pays_for_every_hour_and_renting_for_the_used_ones():
    found = plan(with_(spares_ratio=0.05), first())

    hours, capacity = found.working_gpu_hours, 960 * 720
    assert hours == pytest.approx(909.850173 * 720, rel=1e-9)
    assert found.own_cost == pytest.approx(1.872904 * capacity + 0.104 * hours, rel=1e-6)
    assert found.cloud_cost == pytest.approx(3.0 * hours)
    assert found.energy_kwh == pytest.approx(1.3 * (0.30 * (capacity - hours) + 1.10 * hours))
    assert found.cheaper == "own"


def test_the_cloud_has_its_own_efficiency():
    found = plan(SEVENTY, second())

    # The work over 989.4e12 x 0.40 x 0.95, times 1.10 billed hours a used one.
    assert found.cloud_gpu_hours == pytest.approx(8.4e23 / (989.4e12 * 0.38) / 3600 * 1.10)
    assert found.cloud_cost == pytest.approx(found.cloud_gpu_hours * 3.22)


def test_without_costs_there_is_no_money_and_no_energy():
    found = plan(SEVENTY)

    assert (found.energy_kwh, found.own_cost, found.cloud_cost, found.cheaper) == (None, None, None, None)
