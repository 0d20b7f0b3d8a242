"""Which alerts are shown and not sent: explained by another, silenced, or on a node out of service. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from flopwatch.query import AlertRow
from flopwatch_collector.alerting.desk import Words
from flopwatch_collector.alerting.inhibition import ACTIVE, Node, confined_to, inhibited, node_of
from flopwatch_collector.alerting.state import AlertRecord
from flopwatch_collector.facts import Facts

MAINTENANCE = "maintenance"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hushed:
    """By fingerprint: why an alert is not sent."""

    inhibited: Mapping[str, str] = field(default_factory=dict)
    """The rule of the alert that explains it."""
    silenced: Mapping[str, str] = field(default_factory=dict)
    """Id of a silence, or ``maintenance``."""
    taken: Mapping[str, str] = field(default_factory=dict)
    """Acknowledged, by whom: it is not repeated."""
    maintained: frozenset[Node] = frozenset()
    """Nodes in maintenance, or drained."""

    def of(self, fingerprint: str) -> str | None:
        """Why it is not sent; None when it is."""
        return self.silenced.get(fingerprint) or self.inhibited.get(fingerprint)


def hushed(records: Iterable[AlertRecord], facts: Facts, words: Words) -> Hushed:
    """What of these alerts is not sent now."""
    active = [record for record in records if record.state in ACTIVE]
    nodes_of_job = {
        job.row.job_id: frozenset((job.row.cluster, node) for node in job.nodes)
        for job in facts.jobs
        if job.row.state != "ended"
    }
    maintained = frozenset(
        (node.cluster, node.node) for node in facts.nodes if node.maintenance or node.bucket == "MAINT"
    )
    drained = frozenset((node.cluster, node.node) for node in facts.nodes if node.standing == "out")
    silenced = {
        record.fingerprint: MAINTENANCE
        for record in active
        if confined_to(record, maintained, nodes_of_job)
        or ("node" in record.labels and node_of(record) in drained)
    }
    return Hushed(
        inhibited=inhibited(active, nodes_of_job),
        silenced={**_silenced(active, words, facts.now), **silenced},
        taken=_taken(active, words),
        maintained=maintained | drained,
    )


def reworded(before: Hushed, records: Iterable[AlertRecord], words: Words, now: float) -> Hushed:
    """The same after people have said something: silences and acknowledgements as they stand now."""
    active = [record for record in records if record.state in ACTIVE]
    maintained = {key: why for key, why in before.silenced.items() if why == MAINTENANCE}
    silenced = {**_silenced(active, words, now), **maintained}
    return replace(before, silenced=silenced, taken=_taken(active, words))


def _silenced(active: Iterable[AlertRecord], words: Words, now: float) -> dict[str, str]:
    """Alerts that a silence holds of, and its id."""
    live = [one for one in words.silences.values() if one.start_seconds <= now < one.end_seconds]
    found = {}
    for record in active if live else ():
        labels = labels_of(record)
        silence = next((one for one in live if one.holds(labels, now)), None)
        if silence is not None:
            found[record.fingerprint] = silence.silence_id
    return found


def labels_of(record: AlertRecord) -> dict[str, str]:
    """What matchers are asked of: identity, name, severity, and the job's team and name."""
    return {**asked_for(record), "alertname": record.rule, "severity": record.severity, **record.labels}


def asked_for(record: AlertRecord) -> dict[str, str]:
    """What matchers may ask for besides the labels."""
    return {key: record.context[key] for key in ("team", "job") if key in record.context}


def labels_of_row(row: AlertRow) -> dict[str, str]:
    """The same of an alert as the pages show it."""
    own = {key: value for key, value in row.labels.items() if key != "simulated"}
    return {**row.context, "alertname": row.rule, "severity": row.severity, **own}


def _taken(active: Iterable[AlertRecord], words: Words) -> dict[str, str]:
    """Acknowledgements of the present episodes."""
    found = {}
    for record in active:
        word = words.acknowledgements.get(record.fingerprint)
        if word is not None and word.seconds >= record.active_since_seconds:
            found[record.fingerprint] = word.by
    return found
