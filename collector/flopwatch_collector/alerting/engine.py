"""Alerts as they stand: evaluates the rules, keeps the states, and puts what is to be said into the outbox.

A change of state and the messages it causes are saved in one transaction, so a process that dies at any moment
neither loses a message nor makes it again.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from flopwatch.answers.alert import RuleInfo, SilenceInfo
from flopwatch.cause_words import said
from flopwatch.query import AlertRow
from flopwatch_collector.alerting import groups, notices, rows, terms
from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.delivery.outbox import OUTBOX_KIND, ChannelStats
from flopwatch_collector.alerting.desk import AlertDesk
from flopwatch_collector.alerting.groups import Change, GroupRecord
from flopwatch_collector.alerting.hushing import Hushed, hushed, reworded
from flopwatch_collector.alerting.inhibition import explaining
from flopwatch_collector.alerting.notices import NoticeAlert, Wording
from flopwatch_collector.alerting.state import (
    FLAPPING_WINDOW_SECONDS,
    STALE_AFTER_SECONDS,
    AlertRecord,
    Reading,
    advance,
    fingerprint,
    without_evidence,
)
from flopwatch_collector.compute.money import HOUR_MILLISECONDS
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts, JobFacts
from flopwatch_collector.store.port import Control

ALERT_KIND = "alert"
HISTORY_KIND = "alert_history"
INSTALL_KIND = "alert_install"
GROUP_KIND = "alert_group"
HISTORY_SECONDS = 90 * 86_400.0
UNWATCHED_SECONDS = 86_400.0
"""An alert whose subject no rule has spoken of for this long is resolved as not watched any more."""
ENDED_TOLD_SECONDS = 300.0
"""So long receivers that keep states themselves are told that an alert has ended."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Install:
    """When rules were first evaluated here: new installs watch for some days before they send."""

    first_evaluated_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Round:
    """What one evaluation leads to."""

    records: dict[str, AlertRecord]
    groups: Mapping[str, GroupRecord]
    changes: tuple[Change, ...]


class AlertEngine:
    """One collector's alerts. ``evaluate`` is called by one thread; the rest may be called from any."""

    def __init__(
        self, control: Control, notifier: Notifier, settings: AlertSettings, desk: AlertDesk | None = None
    ) -> None:
        self._control = control
        self._notifier = notifier
        self._settings = settings
        self.desk = desk or AlertDesk(control)
        self._records: Mapping[str, AlertRecord] = {}
        self._history: Mapping[str, AlertRecord] = {}
        self._groups: Mapping[str, GroupRecord] = {}
        self._install: Install | None = None
        self._hushed = Hushed()
        self._simulated = False
        self._now = 0.0
        self._generation = 0
        self.desk.changed = self._heard
        self.reload()

    @property
    def generation(self) -> int:
        """Rises whenever an answer may have changed."""
        return self._generation

    def reload(self) -> None:
        """Take the alerts as they are kept: another collector may have evaluated them since."""
        records = self._control.load(ALERT_KIND, AlertRecord)
        history = self._control.load(HISTORY_KIND, AlertRecord)
        self._groups = self._control.load(GROUP_KIND, GroupRecord)
        self._install = self._control.load(INSTALL_KIND, Install).get("install")
        if records != self._records or history != self._history:
            self._records, self._history = records, history
            self._generation += 1

    def _heard(self) -> None:
        """Show what people said just now; what is sent follows with the next evaluation."""
        self._hushed = reworded(self._hushed, self._records.values(), self.desk.words(), self.desk.now())
        self._generation += 1

    def start(self) -> None:
        """Begin to deliver, first what an earlier process left undelivered."""
        self._notifier.start()

    def stop(self) -> None:
        """End delivery; what waits is kept."""
        self._notifier.stop()

    def evaluate(self, facts: Facts) -> None:
        """One round: all rules, all states, and the messages that follow from them."""
        now = self._now = facts.now
        self._simulated = facts.simulated
        if self._install is None:
            self._install = Install(first_evaluated_seconds=now)
            self._control.save(INSTALL_KIND, {"install": self._install})
        stepped, unsaid = self._stepped(terms.read(facts, self._settings), now)
        stepped = _in_context(stepped, facts)
        quiet = hushed(stepped.values(), facts, self.desk.words())
        wording = Wording(
            external_url=self._notifier.external_url, simulated=facts.simulated, costs=_costs(stepped, facts)
        )
        turn = self._turn(explaining(stepped, quiet.inhibited), unsaid, quiet)
        pending = self._notifier.prepare(
            notices.grouped(turn.changes, wording), now, simulated=facts.simulated
        )
        self._keep(turn, pending.documents)
        if quiet != self._hushed:
            self._hushed = quiet
            self._generation += 1
        self._notifier.hand_over(pending)
        self._notifier.publish(_told(turn.records.values(), wording, now), simulated=facts.simulated)
        self._notifier.beat(now, simulated=facts.simulated)

    def _turn(self, stepped: dict[str, AlertRecord], unsaid: list[AlertRecord], quiet: Hushed) -> _Round:
        """What is said this round, and the records once it is."""
        now = self._now
        loud = {
            key: record
            for key, record in stepped.items()
            if quiet.of(key) is None and self.sends(record.rule, now)
        }
        for key, record in loud.items():
            if record.state == "firing" and not record.announced:
                stepped[key] = replace(record, announced=True)
        due = [
            (status, record)
            for key, record in stepped.items()
            if (status := notices.due(record)) is not None and (status == "resolved" or key in loud)
        ]
        repeated = [
            record
            for key, record in loud.items()
            if record.state in ("firing", "clearing") and record.sent_severity and key not in quiet.taken
        ]
        spoken = groups.speak(due, repeated, self._groups, self._settings, now)
        for status, record in spoken.changes:
            stepped[record.fingerprint] = notices.marked_sent(record, status, now)
        endings: tuple[Change, ...] = tuple(("resolved", record) for record in unsaid)
        return _Round(records=stepped, groups=spoken.groups, changes=(*endings, *spoken.changes))

    def sends(self, rule: str, now: float) -> bool:
        """Whether this rule's alerts go to the channels yet, or are only shown."""
        if self._simulated or rule in self._settings.send or self._install is None:
            return True
        return now - self._install.first_evaluated_seconds >= self._settings.observe_days * 86_400.0

    def active(self) -> tuple[AlertRow, ...]:
        """Alerts that have not ended, worst first."""
        found = [self._row(record) for record in self._records.values() if record.state != "resolved"]
        return tuple(sorted(found, key=rows.worst_first))

    def history(self, start: float) -> tuple[AlertRow, ...]:
        """Alerts that ended at or after ``start``, newest first."""
        ended = [record for record in self._history.values() if (record.resolved_seconds or 0.0) >= start]
        ended.sort(key=lambda record: record.resolved_seconds or 0.0, reverse=True)
        return tuple(self._row(record) for record in ended)

    def knows(self, key: str) -> bool:
        """Whether there is, or was, an alert of this fingerprint."""
        return key in self._records or any(record.fingerprint == key for record in self._history.values())

    def silences(self) -> tuple[SilenceInfo, ...]:
        """Silences that have not ended, and nodes in maintenance."""
        return rows.silences(self.desk.words(), self._hushed, max(self._now, self.desk.now()))

    def rules(self, start: float) -> tuple[RuleInfo, ...]:
        """Every rule as it is set here, and how often it fired since ``start``."""
        asked = rows.Asked(now=self._now, start=start, sends=lambda rule: self.sends(rule, self._now))
        return rows.rules([*self._records.values(), *self._history.values()], self._settings, asked)

    def retain(self, now: float) -> int:
        """Forget what ended long ago; returns how many alerts."""
        old = [
            key
            for key, record in self._history.items()
            if now - (record.resolved_seconds or 0.0) > HISTORY_SECONDS
        ]
        if old:
            self._control.delete(HISTORY_KIND, old)
            self._history = {key: record for key, record in self._history.items() if key not in set(old)}
        self.desk.retain(now)
        return len(old)

    def deliveries(self) -> tuple[ChannelStats, ...]:
        """How each channel fares."""
        return self._notifier.stats()

    def _stepped(
        self, readings: Iterable[Reading], now: float
    ) -> tuple[dict[str, AlertRecord], list[AlertRecord]]:
        """All records after this round's readings, without those that became inactive.

        And ended ones whose end was not said before they began anew.
        """
        stepped: dict[str, AlertRecord] = {}
        unsaid: list[AlertRecord] = []
        seen: set[str] = set()
        for reading in readings:
            key = fingerprint(reading.rule, reading.labels)
            seen.add(key)
            before = self._records.get(key)
            after = advance(before, reading, now)
            if before is not None and after is not before and notices.due(before) == "resolved":
                unsaid.append(before)
            if after is not None:
                stepped[key] = _closed(before, after, now)
        for key, record in self._records.items():
            if key not in seen:
                stepped[key] = _closed(record, _unwatched(record, now), now)
        return {key: record for key, record in stepped.items() if not _forgettable(record, now)}, unsaid

    def _keep(self, turn: _Round, outbox: Mapping[str, object]) -> None:
        """Save what changed in one transaction, then let readers see it."""
        now = self._now
        changed = {key: record for key, record in turn.records.items() if self._records.get(key) != record}
        ended = {
            f"{key}@{record.fired_seconds}": record
            for key, record in changed.items()
            if record.state == "resolved" and record.fired_seconds is not None
        }
        spoke = {key: group for key, group in turn.groups.items() if self._groups.get(key) != group}
        if changed or outbox or spoke:
            self._control.save_all(
                {ALERT_KIND: changed, HISTORY_KIND: ended, GROUP_KIND: spoke, OUTBOX_KIND: outbox}
            )
        gone = [key for key in self._records if key not in turn.records]
        if gone:
            self._control.delete(ALERT_KIND, gone)
        quiet = [key for key in self._groups if key not in turn.groups]
        if quiet:
            self._control.delete(GROUP_KIND, quiet)
        self._groups = turn.groups
        if changed or gone:
            self._records = MappingProxyType(turn.records)
            self._history = {**self._history, **ended} if ended else self._history
            self._generation += 1
        for record in changed.values():
            if record.state in ("firing", "resolved") and record.sent_seconds == now:
                log.info("alert %s %s: %s", record.rule, record.state, record.summary)

    def _row(self, record: AlertRecord) -> AlertRow:
        return rows.row(
            record,
            self.desk.words(),
            self._hushed,
            simulated=self._simulated,
            observed=not self.sends(record.rule, self._now),
        )


def _told(records: Iterable[AlertRecord], wording: Wording, now: float) -> tuple[NoticeAlert, ...]:
    """What receivers that keep states themselves are told: all that fires, and what ended lately."""
    return tuple(
        notices.notice_alert("resolved" if record.state == "resolved" else "firing", record, wording)
        for record in records
        if record.announced
        and (
            record.state in ("firing", "clearing")
            or (record.closed_seconds is not None and now - record.closed_seconds <= ENDED_TOLD_SECONDS)
        )
    )


def _in_context(records: dict[str, AlertRecord], facts: Facts) -> dict[str, AlertRecord]:
    """The records with the team, name and owner of their jobs, where those are known."""
    wanted = {record.labels.get("job_id") for record in records.values()}
    known = {job.row.job_id: _context(job) for job in facts.jobs if job.row.job_id in wanted}
    found: dict[str, AlertRecord] = {}
    for key, record in records.items():
        context = known.get(record.labels.get("job_id", ""))
        same = context is None or context == record.context
        found[key] = record if same or context is None else replace(record, context=context)
    return found


def _costs(records: Mapping[str, AlertRecord], facts: Facts) -> dict[str, notices.Cost]:
    """Of every running job with an alert: what it holds, and what it has wasted today."""
    wanted = {record.labels.get("job_id") for record in records.values()}
    return {
        job.row.job_id: notices.Cost(
            gpus=job.row.gpus or job.row.gpus_observed,
            wasted_gpu_hours=job.row.waste_gpu_milliseconds / HOUR_MILLISECONDS,
        )
        for job in facts.jobs
        if job.row.job_id in wanted and job.row.state != "ended"
    }


def _context(job: JobFacts) -> dict[str, str]:
    given = {"team": job.row.account, "job": job.row.name, "owner": job.owner_contact}
    if job.likely_cause is not None:
        given |= {"cause": said(job.likely_cause, "en"), "cause_zh": said(job.likely_cause, "zh")}
    return {key: value for key, value in given.items() if value}


def _closed(before: AlertRecord | None, after: AlertRecord, now: float) -> AlertRecord:
    """The record with the time at which it ended, when it has just done so."""
    if after.state != "resolved" or after.closed_seconds is not None:
        return after
    return after if before is not None and before.state == "resolved" else replace(after, closed_seconds=now)


def _unwatched(record: AlertRecord, now: float) -> AlertRecord:
    """The record of something that no rule spoke of: kept as without evidence, and in the end resolved."""
    if record.state == "resolved":
        return record
    waiting = without_evidence(record, now, STALE_AFTER_SECONDS)
    if now - (waiting.missing_since_seconds or now) <= UNWATCHED_SECONDS:
        return waiting
    return replace(
        waiting, state="resolved", resolved_seconds=now, resolved_reason="not_watched", flapping=False
    )


def _forgettable(record: AlertRecord, now: float) -> bool:
    """Ended, said, and too long ago to count as flapping."""
    if record.state != "resolved":
        return False
    said = record.resolved_sent or record.sent_severity is None
    return said and now - (record.resolved_seconds or now) > FLAPPING_WINDOW_SECONDS
