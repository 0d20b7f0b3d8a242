"""Alerts as they stand: evaluates the rules, keeps the states, and puts what is to be said into the outbox.

A change of state and the messages it causes are saved in one transaction, so a process that dies at any moment
neither loses a message nor makes it again.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from flopwatch.query import AlertRow
from flopwatch_collector.alerting import notices, rules
from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.delivery.outbox import OUTBOX_KIND, ChannelStats
from flopwatch_collector.alerting.notices import SEVERITY_ORDER, Wording
from flopwatch_collector.alerting.state import (
    FLAPPING_WINDOW_SECONDS,
    STALE_AFTER_SECONDS,
    AlertRecord,
    Reading,
    advance,
    fingerprint,
    without_evidence,
)
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts
from flopwatch_collector.store.port import Control

ALERT_KIND = "alert"
HISTORY_KIND = "alert_history"
INSTALL_KIND = "alert_install"
HISTORY_SECONDS = 90 * 86_400.0
UNWATCHED_SECONDS = 86_400.0
"""An alert whose subject no rule has spoken of for this long is resolved as not watched any more."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Install:
    """When rules were first evaluated here: new installs watch for some days before they send."""

    first_evaluated_seconds: float


class AlertEngine:
    """One collector's alerts. ``evaluate`` is called by one thread; the rest may be called from any."""

    def __init__(self, control: Control, notifier: Notifier, settings: AlertSettings) -> None:
        self._control = control
        self._notifier = notifier
        self._settings = settings
        self._records: Mapping[str, AlertRecord] = {}
        self._history: Mapping[str, AlertRecord] = {}
        self._install: Install | None = None
        self._simulated = False
        self._generation = 0
        self.reload()

    @property
    def generation(self) -> int:
        """Rises whenever an answer may have changed."""
        return self._generation

    def reload(self) -> None:
        """Take the alerts as they are kept: another collector may have evaluated them since."""
        records = self._control.load(ALERT_KIND, AlertRecord)
        history = self._control.load(HISTORY_KIND, AlertRecord)
        self._install = self._control.load(INSTALL_KIND, Install).get("install")
        if records != self._records or history != self._history:
            self._records, self._history = records, history
            self._generation += 1

    def start(self) -> None:
        """Begin to deliver, first what an earlier process left undelivered."""
        self._notifier.start()

    def stop(self) -> None:
        """End delivery; what waits is kept."""
        self._notifier.stop()

    def evaluate(self, facts: Facts) -> None:
        """One round: all rules, all states, and the messages that follow from them."""
        now = facts.now
        self._simulated = facts.simulated
        if self._install is None:
            self._install = Install(first_evaluated_seconds=now)
            self._control.save(INSTALL_KIND, {"install": self._install})
        stepped = self._stepped(rules.read_all(facts, self._settings), now)
        hidden = notices.inhibited(stepped.values(), _nodes_of_job(facts))
        changes = [
            (status, record)
            for key, record in stepped.items()
            if (status := notices.due(record)) is not None
            and (status == "resolved" or (key not in hidden and self.sends(record.rule, now)))
        ]
        wording = Wording(external_url=self._notifier.external_url, simulated=facts.simulated)
        pending = self._notifier.prepare(notices.grouped(changes, wording), now, simulated=facts.simulated)
        for status, record in changes:
            stepped[record.fingerprint] = notices.marked_sent(record, status, now)
        self._keep(stepped, pending.documents, now)
        self._notifier.hand_over(pending)

    def sends(self, rule: str, now: float) -> bool:
        """Whether this rule's alerts go to the channels yet, or are only shown."""
        if self._simulated or rule in self._settings.send or self._install is None:
            return True
        return now - self._install.first_evaluated_seconds >= self._settings.observe_days * 86_400.0

    def active(self) -> tuple[AlertRow, ...]:
        """Alerts that have not ended, worst first."""
        rows = [self._row(record) for record in self._records.values() if record.state != "resolved"]
        return tuple(sorted(rows, key=_worst_first))

    def history(self, start: float) -> tuple[AlertRow, ...]:
        """Alerts that ended at or after ``start``, newest first."""
        ended = [record for record in self._history.values() if (record.resolved_seconds or 0.0) >= start]
        ended.sort(key=lambda record: record.resolved_seconds or 0.0, reverse=True)
        return tuple(self._row(record) for record in ended)

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
        return len(old)

    def deliveries(self) -> tuple[ChannelStats, ...]:
        """How each channel fares."""
        return self._notifier.stats()

    def _stepped(self, readings: Iterable[Reading], now: float) -> dict[str, AlertRecord]:
        """All records after this round's readings; those that became inactive are left out."""
        stepped: dict[str, AlertRecord] = {}
        seen: set[str] = set()
        for reading in readings:
            key = fingerprint(reading.rule, reading.labels)
            seen.add(key)
            after = advance(self._records.get(key), reading, now)
            if after is not None:
                stepped[key] = after
        for key, record in self._records.items():
            if key not in seen:
                stepped[key] = _unwatched(record, now)
        return {key: record for key, record in stepped.items() if not _forgettable(record, now)}

    def _keep(self, stepped: dict[str, AlertRecord], outbox: Mapping[str, object], now: float) -> None:
        """Save what changed in one transaction, then let readers see it."""
        changed = {key: record for key, record in stepped.items() if self._records.get(key) != record}
        ended = {
            f"{key}@{record.fired_seconds}": record
            for key, record in changed.items()
            if record.state == "resolved" and record.fired_seconds is not None
        }
        if changed or outbox:
            self._control.save_all({ALERT_KIND: changed, HISTORY_KIND: ended, OUTBOX_KIND: outbox})
        gone = [key for key in self._records if key not in stepped]
        if gone:
            self._control.delete(ALERT_KIND, gone)
        if changed or gone:
            self._records = MappingProxyType(stepped)
            self._history = {**self._history, **ended} if ended else self._history
            self._generation += 1
        for record in changed.values():
            if record.state in ("firing", "resolved") and record.sent_seconds == now:
                log.info("alert %s %s: %s", record.rule, record.state, record.summary)

    def _row(self, record: AlertRecord) -> AlertRow:
        mark = "SIMULATED: " if self._simulated else ""
        return AlertRow(
            fingerprint=record.fingerprint,
            rule=record.rule,
            severity=record.severity,
            state=record.state,
            labels={**record.labels, "simulated": "true"} if self._simulated else record.labels,
            values=record.values,
            active_since_seconds=record.active_since_seconds,
            fired_seconds=record.fired_seconds,
            resolved_seconds=record.resolved_seconds,
            resolved_reason=record.resolved_reason,
            stale=record.stale,
            summary=f"{mark}{record.summary}",
        )


def _nodes_of_job(facts: Facts) -> dict[str, frozenset[tuple[str, str]]]:
    return {
        job.row.job_id: frozenset((job.row.cluster, node) for node in job.nodes)
        for job in facts.jobs
        if job.row.state != "ended"
    }


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


def _worst_first(row: AlertRow) -> tuple[int, int, float]:
    """Firing before pending, critical before info, newest first."""
    rank = {"firing": 0, "clearing": 1, "pending": 2, "no_data": 3, "resolved": 4}[row.state]
    return rank, SEVERITY_ORDER[row.severity], -(row.fired_seconds or row.active_since_seconds or 0.0)
