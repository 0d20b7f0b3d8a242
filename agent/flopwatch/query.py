"""Collector → dashboard: the Query port and its answers.

Every figure comes with its basis; ``None`` is *unknown*. Answers carry codes and values, never sentences:
the surface has two languages. GPU time is integer milliseconds so that sums
are exact; ``money`` is in ``Status.currency`` and ``None`` without a price.
"""

from collections.abc import Mapping
from typing import Protocol

from flopwatch.answers.alert import AlertRow, Alerts, AlertState, Severity
from flopwatch.answers.economy import Economy
from flopwatch.answers.fleet import Fleet, TeamLedger
from flopwatch.answers.frame import ClusterInfo, Range, Series, Status, Tile
from flopwatch.answers.job import (
    Cause,
    FoundFact,
    Job,
    JobRow,
    Jobs,
    JobState,
    Mark,
    NodeInfo,
    SessionInfo,
    Stretch,
    Target,
)
from flopwatch.answers.ledger import (
    LEDGER_CLASSES,
    WASTE_CLASSES,
    ClassAmount,
    Day,
    Ledger,
    LedgerClass,
    Verdict,
    VerdictCode,
)
from flopwatch.answers.nodes import GpuPage, JobRef, NodePage, Nodes
from flopwatch.figure import Basis, FindingInfo, GpusBasis, MfuFigure, Standing, Term

__all__ = [
    "LEDGER_CLASSES", "WASTE_CLASSES", "AlertRow", "AlertState", "Alerts", "Basis", "Cause", "ClassAmount",
    "ClusterInfo", "Day", "Economy", "FindingInfo", "Fleet", "FoundFact", "GpuPage", "GpusBasis", "Job",
    "JobRef", "JobRow", "JobState", "Jobs", "Ledger", "LedgerClass", "Mark", "MfuFigure", "NodeInfo",
    "NodePage", "Nodes", "Query", "Range", "Series", "SessionInfo", "Severity", "Standing", "Status", "Stretch",
    "Target", "TeamLedger", "Term", "Tile", "Verdict", "VerdictCode",
]  # fmt: skip


class Query(Protocol):
    """The dashboard's only way to data. Methods may block; callers run them in a thread."""

    def status(self) -> Status:
        """The frame of every page."""
        ...

    def fleet(self, asked: Range) -> Fleet:
        """The Fleet page."""
        ...

    def jobs(self, asked: Range) -> Jobs:
        """All running jobs and those that ended within the range."""
        ...

    def job(self, job_id: str, asked: Range) -> Job | None:
        """One job, or None when there is no such job."""
        ...

    def nodes(self, asked: Range) -> Nodes:
        """The Nodes page: every GPU as it is now."""
        ...

    def node(self, name: str, asked: Range) -> NodePage | None:
        """One node, or None when there is no such node.

        Where several clusters have a node of the name, it is the one of ``asked.cluster``, else the first by the
        cluster's name.
        """
        ...

    def gpu(self, uuid: str, asked: Range) -> GpuPage | None:
        """One GPU by its UUID, or None when there is no such GPU."""
        ...

    def economy(self, asked: Range, overrides: Mapping[str, float]) -> Economy:
        """The Breakeven page; ``overrides`` change inputs: ``own.capex_per_gpu`` → value.

        Raises:
            ValueError: an override is not known, or its value not allowed; the message names it.
        """
        ...

    def alerts(self, asked: Range) -> Alerts:
        """Active alerts, and those that were within the range."""
        ...
