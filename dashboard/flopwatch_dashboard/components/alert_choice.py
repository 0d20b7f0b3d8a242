"""What a reader chose on the Alerts page, read from the address: filter, grouping, and what is about to be done."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flopwatch.query import AlertRow, Severity
from flopwatch_dashboard.components import phrases
from flopwatch_dashboard.view import View

Grouping = Literal["none", "rule", "job", "node", "cluster"]
Deed = Literal["silence", "take", "give", "comment", "end"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
GROUPINGS: tuple[Grouping, ...] = ("none", "rule", "job", "node", "cluster")
DEEDS: tuple[Deed, ...] = ("silence", "take", "give", "comment", "end")
KEPT = ("alerts.severity", "alerts.group", "alerts.find")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The filter, the grouping, and the form that is open."""

    severity: Severity | None = None
    grouping: Grouping = "none"
    find: str = ""
    deed: Deed | None = None
    of: str = ""
    """The fingerprint that the open form is about; empty: none."""
    done: Deed | None = None
    """What was done just now."""

    @property
    def filters(self) -> bool:
        """Whether some alerts are left out."""
        return self.severity is not None or bool(self.find)


def chosen(view: View) -> Choice:
    """The choice in the address; what is not allowed there counts as not given."""
    given = dict(view.inputs)
    severity, grouping, done = given.get("alerts.severity"), given.get("alerts.group"), given.get("do.done")
    deed = next((one for one in DEEDS if f"do.{one}" in given), None)
    return Choice(
        severity=severity if severity in SEVERITIES else None,
        grouping=grouping if grouping in GROUPINGS else "none",
        find=given.get("alerts.find", "").strip(),
        deed=deed,
        of=given.get(f"do.{deed}", "") if deed else "",
        done=done if done in DEEDS else None,
    )


def address(view: View, changes: Mapping[str, str | None] | None = None) -> str:
    """The address of the page with filter and grouping as they are, and some of it changed; None takes it out."""
    kept: dict[str, str | None] = {name: value for name, value in view.inputs if name in KEPT}
    values = {name: value for name, value in {**kept, **(changes or {})}.items() if value}
    return view.link("alerts", **values)


def fitting(rows: Iterable[AlertRow], choice: Choice, view: View) -> tuple[AlertRow, ...]:
    """Alerts of the chosen severity that have every word that is looked for in what they say, their rule or labels."""
    words = choice.find.casefold().split()
    return tuple(
        row
        for row in rows
        if choice.severity in (None, row.severity) and all(word in _text(row, view) for word in words)
    )


def _text(row: AlertRow, view: View) -> str:
    told = (
        phrases.alert(row, view),
        row.summary,
        row.rule,
        row.severity,
        row.state,
        row.acknowledged_by or "",
    )
    return " ".join((*told, *row.labels.values(), *row.context.values())).casefold()


def grouped(rows: Sequence[AlertRow], grouping: Grouping) -> tuple[tuple[str, tuple[AlertRow, ...]], ...]:
    """Groups by name, in the order of their first alert; one without a name when nothing is grouped."""
    if grouping == "none":
        return (("", tuple(rows)),)
    found: dict[str, list[AlertRow]] = {}
    for row in rows:
        found.setdefault(_group(row, grouping), []).append(row)
    return tuple((name, tuple(members)) for name, members in found.items())


def _group(row: AlertRow, grouping: Grouping) -> str:
    if grouping == "rule":
        return row.rule
    if grouping == "job":
        return row.context.get("job") or row.labels.get("job_id", "")
    return row.labels.get(grouping, "")
