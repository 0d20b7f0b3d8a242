"""Mail over SMTP."""

import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Any, Literal

from flopwatch.settings import SettingError
from flopwatch_collector.alerting.delivery import posting
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.alerting.delivery.wording import Language, words_of
from flopwatch_collector.config import NotifySettings

PORTS = {"starttls": 587, "tls": 465, "none": 25}
RECIPIENT = "recipient"
"""In the body of a message to one person: only that one gets it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mail:
    """A mail server and whom it sends to."""

    name: str
    host: str
    port: int
    tls: Literal["starttls", "tls", "none"]
    sender: str
    to: tuple[str, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    language: Language = "en"
    timeout_seconds: float = 10.0
    ca_file: Path | None = None

    @property
    def privacy_form(self) -> str:
        """The server."""
        return f"smtp://{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether the server is on this machine; it may still send further."""
        return posting.is_loopback(self.host)

    def send(self, body: Mapping[str, Any], delivery_id: str) -> None:
        """Hand the mail to the server.

        Raises:
            DeliveryFailed: it did not take it; for good where it says 5xx.
        """
        try:
            with self._connected() as server:
                server.send_message(self.message(body, delivery_id))
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            raise _failed(max(codes)) from None
        except smtplib.SMTPNotSupportedError as error:
            raise DeliveryFailed(
                f"the server offers no {'TLS' if 'STARTTLS' in str(error) else 'login'}"
            ) from None
        except smtplib.SMTPAuthenticationError as error:
            raise DeliveryFailed(f"login refused ({error.smtp_code})") from None
        except smtplib.SMTPResponseException as error:
            raise _failed(error.smtp_code) from None
        except (OSError, smtplib.SMTPException) as error:
            raise DeliveryFailed(posting.reason(error)) from None

    def message(self, body: Mapping[str, Any], delivery_id: str) -> EmailMessage:
        """The mail: its id is the same on every attempt, so that a receiver can drop a repetition."""
        words = words_of(body, self.language)
        mail = EmailMessage()
        mail["Subject"] = words.title.replace("\n", " ")
        mail["From"] = self.sender
        mail["To"] = body.get(RECIPIENT) or ", ".join(self.to)
        mail["Date"] = formatdate()
        mail["Message-ID"] = f"<{delivery_id}@flopwatch.invalid>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(words.text + "\n")
        return mail

    def _connected(self) -> smtplib.SMTP:
        if self.tls == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                self.host, self.port, timeout=self.timeout_seconds, context=self._context()
            )
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=self.timeout_seconds)
        try:
            if self.tls == "starttls":
                server.starttls(context=self._context())
            if self.username is not None:
                server.login(self.username, self.password or "")
        except BaseException:
            server.close()
            raise
        return server

    def _context(self) -> ssl.SSLContext:
        """Certificate and name are checked, always."""
        return ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))


def _failed(code: int) -> DeliveryFailed:
    return DeliveryFailed(f"answered {code}", permanent=500 <= code < 600 and code not in (530, 535))


def is_address(text: str) -> bool:
    """Whether it can be the address of a mail: no list, no name, no header."""
    name, _, domain = text.partition("@")
    plain = all(character.isprintable() and character not in " ,;<>\"'()[]:" for character in text)
    return bool(name and domain) and plain and "@" not in domain


def from_settings(settings: NotifySettings) -> Mail:
    """The channel of one ``[[notify]]`` of kind ``smtp``.

    Raises:
        SettingError: server, sender or receivers are missing or wrong, or a file cannot be read.
    """
    name = f"notify.{settings.name}"
    if not settings.host:
        raise SettingError(f"{name}.host", settings.host, "the name of a mail server")
    if settings.sender is None or not is_address(settings.sender):
        raise SettingError(f"{name}.sender", settings.sender, "a mail address")
    wrong = [text for text in settings.to if not is_address(text)]
    if wrong or not (settings.to or settings.owners):
        raise SettingError(
            f"{name}.to", wrong[0] if wrong else [], "mail addresses, or none with owners = true"
        )
    port = settings.port or PORTS[settings.tls]
    if not 1 <= port <= 65_535:
        raise SettingError(f"{name}.port", port, "1 to 65535")
    if settings.username is not None and settings.tls == "none" and not posting.is_loopback(settings.host):
        raise SettingError(
            f"{name}.tls",
            settings.tls,
            "starttls or tls: a password is not sent in the clear to another machine",
        )
    if settings.ca_file is not None and not settings.ca_file.is_file():
        raise SettingError(f"{name}.ca_file", str(settings.ca_file), "a file with certificates")
    return Mail(
        name=settings.name,
        host=settings.host,
        port=port,
        tls=settings.tls,
        sender=settings.sender,
        to=settings.to,
        username=settings.username,
        password=posting.read_secret(settings.password_file, f"{name}.password_file"),
        language=settings.language,
        timeout_seconds=settings.timeout_seconds,
        ca_file=settings.ca_file,
    )
