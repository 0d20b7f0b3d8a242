"""Chargeback: every ledger row is charged to one name; leases are billed, losses of the platform credited. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch.answers.ledger import LEDGER_CLASSES
from flopwatch.answers.report import ReportBy, ReportLine
from flopwatch_collector.compute.buckets import BUCKETS, CODE, REASON_CODE
from flopwatch_collector.compute.classes import CLASS_OF, is_leased, is_waste
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.money import Rates, amounts
from flopwatch_collector.model import Columns, FleetState, JobRecord

Booleans = npt.NDArray[np.bool_]
_CLASS = np.array([LEDGER_CLASSES.index(CLASS_OF[name]) for name in BUCKETS])


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """Whom a row is charged to."""

    key: str | None = None
    label: str | None = None
    user: str | None = None
    account: str | None = None
    leased: bool = True
    """False for capacity that nobody held."""


NOBODY = Owner(leased=False)
GroupOf = Callable[[str], str | None]
"""Name of the cost group of a node, by the node's name."""


def is_platform_loss(rows: Columns) -> Booleans:
    """Of each row, whether it is a loss inside a lease that the platform is liable for."""
    return np.asarray(is_leased(rows) & (rows["reason"] == REASON_CODE["platform"]))


def charged(
    rows: Columns, by: ReportBy, state: FleetState, rates: Rates, group_of: GroupOf
) -> tuple[ReportLine, ...]:
    """The lines, the most costly first; together they are the rows, to the millisecond."""
    held = take(rows, rows["gpu_milliseconds"] > 0)
    places, owners = owners_of(held, by, state, group_of)
    return lines_of(held, (places, owners), rates)


def owners_of(
    rows: Columns, by: ReportBy, state: FleetState, group_of: GroupOf
) -> tuple[npt.NDArray[np.int64], list[Owner]]:
    """Of each row the place of its owner in the list, and the list."""
    if by in ("node", "cluster", "group"):
        names = {
            number: node_key(by, node.name, node.cluster, group_of) for number, node in state.nodes.items()
        }
        return _placed(rows["node"], {number: Owner(key=name) for number, name in names.items()})
    numbers = np.where(is_leased(rows), rows["job"], -1)
    owners = {number: job_owner(by, state.jobs.get(number)) for number in np.unique(numbers).tolist()}
    owners[-1] = NOBODY
    return _placed(numbers, owners)


def no_group(_: str) -> None:
    """The group of a node where nothing is charged by groups."""


def parts_of_team(rows: Columns, state: FleetState, team: str) -> tuple[Columns, int]:
    """(rows that the team's leases held, GPU milliseconds that nobody held)."""
    held = take(rows, rows["gpu_milliseconds"] > 0)
    places, owners = owners_of(held, "team", state, no_group)
    own = [place for place, owner in enumerate(owners) if owner.leased and owner.key == team]
    free = [place for place, owner in enumerate(owners) if not owner.leased]
    nobody = int(held["gpu_milliseconds"][np.isin(places, free)].sum())
    return take(held, np.isin(places, own)), nobody


def node_key(by: ReportBy, name: str, cluster: str, group_of: GroupOf) -> str | None:
    """What a node is charged to."""
    if by == "node":
        return name
    return cluster if by == "cluster" else group_of(name)


def job_owner(by: ReportBy, record: JobRecord | None) -> Owner:
    """Whom a job's leases are charged to."""
    if record is None:
        return Owner()
    if by == "team":
        return Owner(key=record.account, account=record.account)
    if by == "user":
        return Owner(key=record.user, user=record.user)
    return Owner(key=record.job_id, label=record.name, user=record.user, account=record.account)


def _placed(
    numbers: npt.NDArray[np.int64], by_number: Mapping[int, Owner]
) -> tuple[npt.NDArray[np.int64], list[Owner]]:
    """Places in a list in which each owner is once."""
    present, inverse = np.unique(numbers, return_inverse=True)
    owners: dict[Owner, int] = {}
    place = [owners.setdefault(by_number.get(number, Owner()), len(owners)) for number in present.tolist()]
    return np.array(place, dtype=np.int64)[inverse], list(owners)


def lines_of(
    rows: Columns, owned: tuple[npt.NDArray[np.int64], Sequence[Owner]], rates: Rates
) -> tuple[ReportLine, ...]:
    """A line for every owner, from its rows."""
    places, owners = owned
    sums = _Sums(
        places=places, rows=rows, money=amounts(rows, rates) if rates.known else None, size=len(owners)
    )
    kinds = _CLASS[rows["bucket"]]
    parts = _Parts(
        leased=is_leased(rows),
        wasted=is_waste(rows),
        lost=is_platform_loss(rows),
        unknown=rows["bucket"] == CODE["UNKNOWN"],
    )
    by_class = [sums.time(kinds == index) for index in range(len(LEDGER_CLASSES))]
    return tuple(sorted(_lines(owners, sums, parts, by_class), key=_order))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parts:
    leased: Booleans
    wasted: Booleans
    lost: Booleans
    unknown: Booleans


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sums:
    """Sums of chosen rows by owner."""

    places: npt.NDArray[np.int64]
    rows: Columns
    money: npt.NDArray[np.float64] | None
    size: int

    def time(self, chosen: Booleans | None = None) -> list[int]:
        """GPU milliseconds."""
        return _summed(self.places, self.rows["gpu_milliseconds"], chosen, self.size)

    def cost(self, chosen: Booleans | None = None) -> list[float | None]:
        """Money."""
        return _costs(self.places, self.money, chosen, self.size)


def _lines(
    owners: Sequence[Owner], sums: _Sums, parts: _Parts, by_class: Sequence[Sequence[int]]
) -> Iterator[ReportLine]:
    whole, leased, wasted, lost, unknown = (
        sums.time(chosen) for chosen in (None, parts.leased, parts.wasted, parts.lost, parts.unknown)
    )
    cost, billed, credit, waste = (
        sums.cost(chosen) for chosen in (None, parts.leased, parts.lost, parts.wasted)
    )
    for place, owner in enumerate(owners):
        yield ReportLine(
            key=owner.key,
            label=owner.label,
            user=owner.user,
            account=owner.account,
            leased_somewhere=owner.leased,
            gpu_milliseconds=whole[place],
            leased_gpu_milliseconds=leased[place],
            by_class={name: by_class[index][place] for index, name in enumerate(LEDGER_CLASSES)},
            waste_gpu_milliseconds=wasted[place],
            unknown_gpu_milliseconds=unknown[place],
            opaque_gpu_milliseconds=by_class[LEDGER_CLASSES.index("unmeasured")][place],
            credit_gpu_milliseconds=lost[place],
            cost=cost[place],
            billed=billed[place],
            credit=_negative(credit[place]),
            net=_net(billed[place], credit[place]),
            waste_money=waste[place],
        )


def _summed(
    places: npt.NDArray[np.int64], values: npt.NDArray[np.int64], chosen: Booleans | None, size: int
) -> list[int]:
    totals = np.zeros(size, dtype=np.int64)
    if chosen is None:
        np.add.at(totals, places, values)
    else:
        np.add.at(totals, places[chosen], values[chosen])
    return [int(total) for total in totals]


def _costs(
    places: npt.NDArray[np.int64], money: npt.NDArray[np.float64] | None, chosen: Booleans | None, size: int
) -> list[float | None]:
    if money is None:
        return [None] * size
    if chosen is not None:
        places, money = places[chosen], money[chosen]
    totals = np.bincount(places, weights=money, minlength=size)
    return [None if np.isnan(total) else float(total) for total in totals]


def _negative(value: float | None) -> float | None:
    return None if value is None else (-value if value else 0.0)


def _net(billed: float | None, lost: float | None) -> float | None:
    return None if billed is None or lost is None else billed - lost


def _order(line: ReportLine) -> tuple[bool, bool, int, str, str]:
    """Who held most first, then leases of nobody known, then what nobody held."""
    return (
        not line.leased_somewhere,
        line.key is None,
        -line.leased_gpu_milliseconds,
        line.key or "",
        line.label or "",
    )
