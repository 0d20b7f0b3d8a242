"""What Grafana dashboards are described with: panels, choices, boards."""

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["timeseries", "stat", "table", "bargauge"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One panel: its expressions by legend, its unit as Grafana spells it, and its size in grid cells."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "percentunit"
    kind: Kind = "timeseries"
    width: int = 12
    height: int = 8
    note: str = ""
    stacked: bool = False
    most: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Variable:
    """A choice on top of a dashboard, from a label's values."""

    name: str
    query: str
    multi: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """One dashboard."""

    uid: str
    title: str
    variables: tuple[Variable, ...]
    panels: tuple[Panel, ...]


def ratio(title: str, *queries: tuple[str, str], **more: Any) -> Panel:
    """A panel of ratios from 0 to 1."""
    return Panel(title=title, queries=queries, most=1.0, **more)


def graph(title: str, unit: str, *queries: tuple[str, str], **more: Any) -> Panel:
    """A panel of curves in a unit of Grafana's."""
    return Panel(title=title, unit=unit, queries=queries, **more)


def stat(title: str, query: str, unit: str = "percentunit", note: str = "") -> Panel:
    """One number."""
    return Panel(title=title, queries=((query, ""),), unit=unit, kind="stat", width=4, height=4, note=note)
