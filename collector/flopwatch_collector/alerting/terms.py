"""Rules on a site's own terms: what ``[alerts.rules]`` and ``[[alerts.override]]`` change of their readings. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from flopwatch_collector.alerting import rules
from flopwatch_collector.alerting.state import Reading
from flopwatch_collector.config_alerts import AlertSettings
from flopwatch_collector.facts import Facts

Subject = tuple[str, str, str]
"""Cluster, team and job's name; team and job are empty where a reading is of no job."""
Chosen = tuple[int, ...]
"""Which overrides apply, by their place."""


def read(facts: Facts, settings: AlertSettings) -> tuple[Reading, ...]:
    """The readings of all rules, each on the terms that hold for its subject.

    Rules see all facts whatever the terms, for some compare a job with others.
    """
    jobs = {
        job.row.job_id: (job.row.cluster, job.row.account or "", job.row.name or "") for job in facts.jobs
    }
    places = {(node.cluster, "", "") for node in facts.nodes} | {(facts.cluster, "", "")}
    asked = {subject: chosen(settings, subject) for subject in {*jobs.values(), *places}}
    return tuple(
        changed
        for terms in sorted(set(asked.values()))
        for changed in _on_terms(facts, settings, terms, (jobs, asked))
    )


def _on_terms(
    facts: Facts,
    settings: AlertSettings,
    terms: Chosen,
    known: tuple[Mapping[str, Subject], Mapping[Subject, Chosen]],
) -> Iterator[Reading]:
    jobs, asked = known
    own = _settings_on(settings, terms)
    for reading in rules.read_all(facts, own):
        subject = jobs.get(reading.labels.get("job_id", ""), (reading.labels.get("cluster", ""), "", ""))
        if asked.get(subject, ()) == terms:
            yield changed(reading, own)


def chosen(settings: AlertSettings, subject: Subject) -> Chosen:
    """The overrides that are meant for a subject."""
    return tuple(place for place, one in enumerate(settings.override) if one.matches(*subject))


def _settings_on(settings: AlertSettings, terms: Iterable[int]) -> AlertSettings:
    for place in terms:
        settings = settings.changed_by(settings.override[place].rules)
    return settings


def changed(reading: Reading, settings: AlertSettings) -> Reading:
    """The reading with the site's own times and severity; of a rule that is switched off its subject is gone."""
    own = settings.rules.get(reading.rule)
    if own is None:
        return reading
    if own.enabled is False:
        return replace(reading, condition="gone", gone_reason="disabled")
    return replace(
        reading,
        severity=own.severity or reading.severity,
        for_seconds=reading.for_seconds if own.for_seconds is None else own.for_seconds,
        keep_seconds=reading.keep_seconds if own.keep_seconds is None else own.keep_seconds,
    )
