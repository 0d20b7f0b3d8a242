"""``Mailing``: sends the scheduled reports and digests, each once to each receiver, and says what did not go out."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from flopwatch.settings import SettingError
from flopwatch_collector.config_reports import ReportSettings
from flopwatch_collector.reports import digest, mail
from flopwatch_collector.reports.focus import NoPrice
from flopwatch_collector.reports.mail import Letter, MailServer, NotSent
from flopwatch_collector.reports.making import Question
from flopwatch_collector.reports.schedule import Occasion, newest
from flopwatch_collector.reports.service import File, Reports
from flopwatch_collector.reports.wording import Words
from flopwatch_collector.store.port import Control

KIND = "report_sent"
AGAIN_SECONDS = 600.0
"""What did not go out is tried again after so long."""
PATIENCE_SECONDS = 6 * 3_600.0
"""So long a report waits for history that is still being computed."""
KEPT_SECONDS = 90 * 86_400.0

log = logging.getLogger(__name__)


class Receiver(Protocol):
    """A webhook of ``[[notify]]``."""

    @property
    def name(self) -> str:
        """As in the settings."""
        ...

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        ...

    def send(self, body: Mapping[str, Any], delivery_id: str) -> None:
        """Deliver the body."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A report that went out to one receiver."""

    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    """One thing to send: to whom, and how."""

    to: str
    send: Callable[[], None]


@dataclass(kw_only=True)
class Mailing:
    """The schedule of all ``[[reports]]``."""

    reports: Reports
    control: Control
    settings: Sequence[ReportSettings]
    webhooks: Sequence[Receiver] = ()
    failed: type[Exception] = NotSent
    """What a webhook raises when it was not taken."""
    simulated: Callable[[], bool] = lambda: False
    _servers: dict[str, MailServer | None] = field(default_factory=dict, repr=False)
    _tried: dict[str, float] = field(default_factory=dict, repr=False)
    _refused: set[str] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        self._servers = {each.name: mail.server_of(each) for each in self.settings}
        names = [receiver.name for receiver in self.webhooks]
        for each in self.settings:
            if each.webhook is not None and each.webhook not in names:
                allowed = "the name of a [[notify]] of kind webhook"
                raise SettingError(f"reports.{each.name}.webhook", each.webhook, allowed)

    def send_due(self, now: float) -> int:
        """Send what is due and has not gone out; how many went out."""
        count = 0
        for settings in self.settings:
            occasion = newest(settings, now, self.reports.maker.zone)
            if occasion.is_open(now) and self._is_ready(occasion, now):
                count += self._send(settings, occasion, now)
        return count

    def _is_ready(self, occasion: Occasion, now: float) -> bool:
        """Whether history is computed, or has been waited for long enough."""
        outstanding = self.reports.maker.sources.accounting.progress() is not None
        return not outstanding or now >= occasion.due_seconds + PATIENCE_SECONDS

    def _send(self, settings: ReportSettings, occasion: Occasion, now: float) -> int:
        known = self.control.load(KIND, Sent)
        count = 0
        prefix = f"{settings.name}|{occasion.start_seconds:.0f}|"
        done = f"{prefix}*"
        if done in known or now - self._tried.get(prefix, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return 0
        self._tried[prefix] = now
        whole = True
        for piece in self._pieces(settings, occasion):
            key = prefix + piece.to
            if key in known:
                continue
            try:
                piece.send()
            except (NotSent, self.failed) as error:
                whole = False
                log.warning("report %s was not sent to %s: %s", settings.name, piece.to, error)
                continue
            self.control.save(KIND, {key: Sent(seconds=now)})
            count += 1
        if whole:
            self.control.save(KIND, {done: Sent(seconds=now)})
        old = [key for key, sent in known.items() if sent.seconds < now - KEPT_SECONDS]
        if old:
            self.control.delete(KIND, old)
        return count

    def _pieces(self, settings: ReportSettings, occasion: Occasion) -> Iterator[_Piece]:
        asked = Question(
            start_seconds=occasion.start_seconds,
            end_seconds=occasion.end_seconds,
            by=settings.by,
            cluster=settings.cluster,
        )
        server = self._servers[settings.name]
        if server is not None and self.simulated():
            self._refuse(settings.name, "its mail server")
            server = None
        if settings.kind == "digest":
            if server is not None:
                yield from self._digests(settings, asked, server)
            return
        yield from self._whole(settings, asked, server)

    def _whole(
        self, settings: ReportSettings, asked: Question, server: MailServer | None
    ) -> Iterator[_Piece]:
        receivers = [each for each in self.webhooks if each.name == settings.webhook]
        if self.simulated() and any(not each.loopback for each in receivers):
            self._refuse(settings.name, f"channel {settings.webhook}")
            receivers = [each for each in receivers if each.loopback]
        if not receivers and (server is None or not settings.to):
            return
        try:
            made = self.reports.file(asked, settings.format, settings.language)
        except NoPrice as error:
            log.warning("report %s was not made: %s", settings.name, error)
            return
        if server is not None:
            for address in settings.to:
                letter = self._letter(settings, asked, made, address)
                yield _Piece(to=address, send=lambda letter=letter: server.send(letter))  # type: ignore[misc]
        for receiver in receivers:
            body = self._body(settings, asked)
            key = f"report-{settings.name}-{asked.start_seconds:.0f}"
            yield _Piece(to=f"webhook:{receiver.name}", send=lambda to=receiver, b=body, k=key: to.send(b, k))  # type: ignore[misc]

    def _letter(self, settings: ReportSettings, asked: Question, made: File, address: str) -> Letter:
        words = self._words(settings)
        start, end = words.time(asked.start_seconds)[:10], words.time(asked.end_seconds - 1.0)[:10]
        subject = words("mail.subject", start=start, end=end)
        return Letter(
            to=address,
            subject=subject,
            body=words("mail.body", name=made.name),
            attachment=(made.name, made.content),
        )

    def _digests(self, settings: ReportSettings, asked: Question, server: MailServer) -> Iterator[_Piece]:
        jobs = list(self.reports.maker.sources.fleet.state().jobs.values())
        for found in digest.usages(self.reports.maker, asked):
            usage = found[0]
            address = digest.address_of(usage.user, jobs, settings)
            if not digest.is_told(usage, settings):
                continue
            if address is None:
                log.warning("digest %s: user %s has no known mail address", settings.name, usage.user)
                continue
            body = digest.digest_html(self.reports.maker, asked, found, settings.language)
            subject = digest.subject(asked, self._words(settings))
            letter = Letter(to=address, subject=subject, body=body)
            yield _Piece(to=address, send=lambda letter=letter: server.send(letter))  # type: ignore[misc]

    def _body(self, settings: ReportSettings, asked: Question) -> dict[str, Any]:
        document = self.reports.file(asked, "json", settings.language).content
        report: dict[str, Any] = json.loads(document)
        return {"kind": "report", "name": settings.name, "period": settings.period, "report": report}

    def _words(self, settings: ReportSettings) -> Words:
        status = self.reports.maker.status()
        return Words(language=settings.language, zone=ZoneInfo(status.time_zone), currency=status.currency)

    def _refuse(self, name: str, what: str) -> None:
        if name not in self._refused:
            self._refused.add(name)
            log.warning("report %s gets no use of %s: the cluster is simulated", name, what)
