"""What people say to alerts: silences, acknowledgements, comments, and who did what; kept in the control state."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from flopwatch_collector.alerting.matchers import Matcher, all_match
from flopwatch_collector.store.port import Control

SILENCE_KIND = "alert_silence"
ACK_KIND = "alert_ack"
COMMENT_KIND = "alert_comment"
AUDIT_KIND = "alert_audit"
KEPT_SECONDS = 90 * 86_400.0
FRESH_SECONDS = 2.0
"""What another collector changed is known after this long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Silence:
    """Alerts that all matchers fit are not sent between start and end."""

    silence_id: str
    matchers: tuple[Matcher, ...]
    start_seconds: float
    end_seconds: float
    created_by: str
    comment: str
    created_seconds: float

    def holds(self, labels: Mapping[str, str], now: float) -> bool:
        """Whether it silences an alert with these labels now."""
        return self.start_seconds <= now < self.end_seconds and all_match(self.matchers, labels)


@dataclass(frozen=True, kw_only=True, slots=True)
class Acknowledgement:
    """Somebody has taken an alert: it is not repeated until it fires anew."""

    fingerprint: str
    by: str
    comment: str
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    """A word on an alert."""

    comment_id: str
    fingerprint: str
    by: str
    text: str
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEntry:
    """Who did what."""

    seconds: float
    by: str
    action: str
    subject: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """Everything people have said, as of one moment."""

    silences: Mapping[str, Silence] = field(default_factory=dict)
    acknowledgements: Mapping[str, Acknowledgement] = field(default_factory=dict)
    """By fingerprint."""
    comments: Mapping[str, Comment] = field(default_factory=dict)


class AlertDesk:
    """Takes and keeps what people say to alerts. Safe for threads; a change is durable when a method returns."""

    def __init__(self, control: Control, clock: Callable[[], float] = time.time) -> None:
        self._control = control
        self._clock = clock
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._words = Words()
        self.changed: Callable[[], None] = _nothing
        """Called after every change made here."""

    def now(self) -> float:
        """The time that changes are kept with."""
        return self._clock()

    def words(self) -> Words:
        """What was said, at most ``FRESH_SECONDS`` old."""
        with self._lock:
            if time.monotonic() - self._read_at > FRESH_SECONDS:
                self._read()
            return self._words

    def silence(self, asked: Silence) -> Silence:
        """Keep a silence; its id is made here."""
        made = replace(asked, silence_id=secrets.token_hex(8), created_seconds=self._clock())
        self._save(SILENCE_KIND, {made.silence_id: made}, (made.created_by, "silence", made.silence_id))
        return made

    def unsilence(self, silence_id: str, by: str) -> Silence:
        """End a silence now.

        Raises:
            KeyError: there is none of this id.
        """
        found = self._fresh().silences[silence_id]
        ended = replace(found, end_seconds=min(found.end_seconds, self._clock()))
        self._save(SILENCE_KIND, {silence_id: ended}, (by, "unsilence", silence_id))
        return ended

    def amend(self, changed: Silence, by: str) -> Silence:
        """Keep a silence with other times, matchers or comment; who made it and when stays.

        Raises:
            KeyError: there is none of this id, or it has ended.
        """
        found = self._fresh().silences[changed.silence_id]
        if found.end_seconds <= self._clock():
            raise KeyError(changed.silence_id)
        made = replace(changed, created_by=found.created_by, created_seconds=found.created_seconds)
        self._save(SILENCE_KIND, {made.silence_id: made}, (by, "amend", made.silence_id))
        return made

    def release(self, fingerprint: str, by: str) -> Acknowledgement:
        """Give an alert back: it is repeated again.

        Raises:
            KeyError: nobody has taken it.
        """
        found = self._fresh().acknowledgements[fingerprint]
        self._save(ACK_KIND, {}, (by, "release", fingerprint))
        self._control.delete(ACK_KIND, [fingerprint])
        with self._lock:
            self._read_at = float("-inf")
        return found

    def acknowledge(self, fingerprint: str, by: str, comment: str) -> Acknowledgement:
        """Take an alert."""
        made = Acknowledgement(fingerprint=fingerprint, by=by, comment=comment, seconds=self._clock())
        self._save(ACK_KIND, {fingerprint: made}, (by, "ack", fingerprint))
        return made

    def comment(self, fingerprint: str, by: str, text: str) -> Comment:
        """Say a word on an alert."""
        made = Comment(
            comment_id=secrets.token_hex(8), fingerprint=fingerprint, by=by, text=text, seconds=self._clock()
        )
        self._save(COMMENT_KIND, {made.comment_id: made}, (by, "comment", fingerprint))
        return made

    def audit(self) -> tuple[AuditEntry, ...]:
        """Who did what, newest first."""
        kept = self._control.load(AUDIT_KIND, AuditEntry).items()
        newest = sorted(kept, key=lambda item: (item[1].seconds, item[0]), reverse=True)
        return tuple(entry for _, entry in newest)

    def retain(self, now: float) -> None:
        """Forget what was said and ended long ago."""
        words = self._fresh()
        old = now - KEPT_SECONDS
        ends: tuple[tuple[str, Mapping[str, float]], ...] = (
            (SILENCE_KIND, {key: one.end_seconds for key, one in words.silences.items()}),
            (ACK_KIND, {key: one.seconds for key, one in words.acknowledgements.items()}),
            (COMMENT_KIND, {key: one.seconds for key, one in words.comments.items()}),
            (
                AUDIT_KIND,
                {key: one.seconds for key, one in self._control.load(AUDIT_KIND, AuditEntry).items()},
            ),
        )
        for kind, times in ends:
            gone = [key for key, seconds in times.items() if seconds < old]
            if gone:
                self._control.delete(kind, gone)

    def _fresh(self) -> Words:
        with self._lock:
            self._read()
            return self._words

    def _read(self) -> None:
        self._words = Words(
            silences=self._control.load(SILENCE_KIND, Silence),
            acknowledgements=self._control.load(ACK_KIND, Acknowledgement),
            comments=self._control.load(COMMENT_KIND, Comment),
        )
        self._read_at = time.monotonic()

    def _save(self, kind: str, documents: Mapping[str, object], done: tuple[str, str, str]) -> None:
        """The change and the line about it, in one transaction."""
        by, action, subject = done
        entry = AuditEntry(seconds=self._clock(), by=by, action=action, subject=subject)
        # What is done in one instant keeps its order by the key.
        key = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        self._control.save_all({kind: documents, AUDIT_KIND: {key: entry}})
        with self._lock:
            self._read_at = float("-inf")
        self.changed()


def _nothing() -> None:
    pass
