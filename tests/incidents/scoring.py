"""Precision, recall and detection time over labelled incidents."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from tests.incidents.playing import Fired
from tests.incidents.world import Incident


@dataclass(kw_only=True)
class Score:
    """Of one rule."""

    found: int = 0
    missed: int = 0
    false: int = 0
    delays: list[float] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Right among those said; 1 where nothing was said."""
        said = self.found + self.false
        return self.found / said if said else 1.0

    @property
    def recall(self) -> float:
        """Found among those that were there; 1 where none was."""
        there = self.found + self.missed
        return self.found / there if there else 1.0

    @property
    def delay_seconds(self) -> float | None:
        """Median time from the onset."""
        return median(self.delays) if self.delays else None


def scores(results: Iterable[tuple[Incident, tuple[Fired, ...]]]) -> dict[str, Score]:
    """By rule; alerts that are true although they are not asked for count for nothing."""
    found: dict[str, Score] = {}
    for incident, fired in results:
        right = {one.rule: one for one in reversed(fired) if one.seconds >= incident.onset_seconds}
        for rule in incident.expected:
            score = found.setdefault(rule, Score())
            if rule in right:
                score.found += 1
                score.delays.append(right[rule].seconds - incident.onset_seconds)
            else:
                score.missed += 1
        for rule in {one.rule for one in fired} - incident.expected - incident.allowed:
            found.setdefault(rule, Score()).false += 1
    return found


def false_criticals(results: Iterable[tuple[Incident, tuple[Fired, ...]]]) -> list[tuple[str, str]]:
    """(incident, rule) of every critical alert that was wrong."""
    return [
        (incident.name, one.rule)
        for incident, fired in results
        for one in fired
        if one.severity == "critical" and one.rule not in incident.expected | incident.allowed
    ]


@dataclass(kw_only=True)
class KindScore:
    """Of one kind of incident, whatever the rule."""

    courses: int = 0
    abstained: int = 0
    """Of them with a fault that the evidence does not prove, and of which nothing critical was said."""
    score: Score = field(default_factory=Score)


def by_kind(results: Iterable[tuple[Incident, tuple[Fired, ...]]]) -> dict[str, KindScore]:
    """Precision, recall and detection time of every kind: of all the rules that were to fire, and of no others."""
    found: dict[str, KindScore] = {}
    for incident, fired in results:
        one = found.setdefault(incident.kind, KindScore())
        one.courses += 1
        one.abstained += int(
            incident.abstains and not {each.rule for each in fired} & {"JobHang", "Straggler"}
        )
        for score in scores([(incident, fired)]).values():
            one.score.found += score.found
            one.score.missed += score.missed
            one.score.false += score.false
            one.score.delays += score.delays
    return found


def kinds_table(found: dict[str, KindScore]) -> str:
    """The same as rows of a Markdown table."""
    rows = [
        "| kind | courses | precision | recall | median detection | abstains |",
        "|---|---|---|---|---|---|",
    ]
    for kind, one in sorted(found.items()):
        score, delay = one.score, one.score.delay_seconds
        wanted = score.found + score.missed
        told = f"{delay:.0f} s" if delay is not None else "-"
        precision = f"{score.precision:.2f}" if wanted + score.false else "nothing said"
        recall = f"{score.recall:.2f}" if wanted else "-"
        rows.append(f"| {kind} | {one.courses} | {precision} | {recall} | {told} | {one.abstained or '-'} |")
    return "\n".join(rows)


def table(found: dict[str, Score]) -> str:
    """Rows for people."""
    rows = ["rule                 incidents  precision  recall  median detection"]
    for rule, score in sorted(found.items()):
        delay = "-" if score.delay_seconds is None else f"{score.delay_seconds:6.0f} s"
        there = score.found + score.missed
        rows.append(f"{rule:20} {there:9} {score.precision:10.2f} {score.recall:7.2f}  {delay}")
    return "\n".join(rows)
