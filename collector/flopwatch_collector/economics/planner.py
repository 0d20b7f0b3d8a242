"""What a run costs on either side, beside how many GPUs it takes."""

from dataclasses import dataclass

from flopwatch.run_sizing import Run, size_of
from flopwatch_collector.economics.breakeven import cloud_price
from flopwatch_collector.economics.case import Case


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """GPUs, time, energy and money of a run; ``None`` is not known."""

    mfu: float
    goodput: float
    gpus_exact: float
    gpus: int
    """Rounded up to a whole GPU."""
    gpus_in_nodes: int
    nodes: int
    spares_exact: float
    """GPUs in whole nodes with the share of spares, before it is rounded up again."""
    gpus_with_spares: int
    nodes_with_spares: int
    working_gpu_hours: float
    """Hours that the run itself takes, whatever the number of GPUs."""
    capacity_gpu_hours: float
    """Hours of all GPUs over the time, spares included: what is paid for when one owns them."""
    energy_kwh: float | None
    own_cost: float | None
    cloud_gpu_hours: float | None
    """Billed hours of the same work in the cloud."""
    cloud_cost: float | None
    cheaper: str | None
    """``own`` or ``cloud``: for this run alone, whose GPUs are owned for its time only."""


def plan(run: Run, case: Case | None = None, kilowatts: tuple[float, float] | None = None) -> Plan:
    """The plan of a run; costs and energy where a cost file gives them.

    ``kilowatts``: of an idle and a busy GPU at the wall, instead of the file's.
    """
    size = size_of(run)
    working, capacity = size.working_gpu_hours, size.capacity_gpu_hours
    own = _own(case, working, capacity)
    hours, cloud = _cloud(case, run, working)
    return Plan(
        mfu=run.mfu,
        goodput=run.goodput,
        gpus_exact=size.gpus_exact,
        gpus=size.gpus,
        gpus_in_nodes=size.gpus_in_nodes,
        nodes=size.nodes,
        spares_exact=size.spares_exact,
        gpus_with_spares=size.gpus_with_spares,
        nodes_with_spares=size.nodes_with_spares,
        working_gpu_hours=working,
        capacity_gpu_hours=capacity,
        energy_kwh=_energy(case, kilowatts, working, capacity),
        own_cost=own,
        cloud_gpu_hours=hours,
        cloud_cost=cloud,
        cheaper=None if own is None or cloud is None else "own" if own <= cloud else "cloud",
    )


def _own(case: Case | None, working: float, capacity: float) -> float | None:
    if case is None:
        return None
    cost = case.cost()
    return cost.fixed_per_gpu_hour * capacity + cost.variable_per_gpu_hour * working


def _cloud(case: Case | None, run: Run, working: float) -> tuple[float | None, float | None]:
    """(billed hours, money) at the price of pay per use; the cloud is as efficient as planned unless it is given."""
    if case is None or case.cloud is None:
        return None, None
    price, there = cloud_price(case.cloud), case.ratio().cloud_flops
    used = working if there is None else run.flops / there / 3600.0
    return used * price.billed_per_used, used * price.billed_per_used * price.price


def _energy(
    case: Case | None, kilowatts: tuple[float, float] | None, working: float, capacity: float
) -> float | None:
    if kilowatts is not None:
        idle, busy = kilowatts
        return idle * (capacity - working) + busy * working
    own = None if case is None else case.own
    if own is None or own.idle_kw_per_gpu is None or own.busy_kw_per_gpu is None:
        return None
    pue = 1.0 if own.pue is None else own.pue
    return pue * (own.idle_kw_per_gpu * (capacity - working) + own.busy_kw_per_gpu * working)
