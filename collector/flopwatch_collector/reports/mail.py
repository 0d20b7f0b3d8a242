"""Mail through Apprise. The server's address holds a password: it is never printed, and Apprise's log is closed."""

import importlib
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from flopwatch.settings import SettingError
from flopwatch_collector.config_reports import ReportSettings

SCHEMES = ("mailto", "mailtos")
ALLOWED = "a mail server as Apprise spells it: mailto:// or mailtos://user:password@smtp.example.com?from=ops@example.com"


class NotSent(Exception):
    """A mail was not taken; the message holds no address of the server."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Letter:
    """One mail: HTML, or a file attached to a line of text."""

    to: str
    subject: str
    body: str
    attachment: tuple[str, bytes] | None = None
    """(file name, content); without one the body is HTML."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MailServer:
    """Where mails are handed over."""

    name: str
    url: str = field(repr=False)

    def send(self, letter: Letter) -> None:
        """Hand one mail over.

        Raises:
            NotSent: the server cannot be reached, or did not take it.
        """
        service = _service(addressed(self.url, letter.to), self.name)
        if letter.attachment is None:
            self._notify(service, letter, {"body_format": "html"})
            return
        with tempfile.TemporaryDirectory(prefix="flopwatch-report-") as folder:
            file = Path(folder) / letter.attachment[0]
            file.write_bytes(letter.attachment[1])
            attached = importlib.import_module("apprise").AppriseAttachment(str(file))
            self._notify(service, letter, {"body_format": "text", "attach": attached})

    def _notify(self, service: Any, letter: Letter, more: Mapping[str, Any]) -> None:
        try:
            taken = service.notify(title=letter.subject, body=letter.body, **more)
        except (OSError, TypeError, ValueError) as error:
            raise NotSent(type(error).__name__) from None
        if not taken:
            raise NotSent("the mail server cannot be reached, or did not take it")


def server_of(settings: ReportSettings) -> MailServer | None:
    """The mail server of one ``[[reports]]``; None where it has none.

    Raises:
        SettingError: the file cannot be read, or it is no address of a mail server.
    """
    prefix = f"reports.{settings.name}"
    url = settings.server
    if settings.server_file is not None:
        try:
            url = settings.server_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(
                f"{prefix}.server_file", str(settings.server_file), "a readable file"
            ) from error
    if url is None:
        return None
    if urlsplit(url).scheme.lower() not in SCHEMES:
        raise SettingError(f"{prefix}.server", "(not shown)", ALLOWED)
    _service(addressed(url, "someone@example.com"), settings.name)
    return MailServer(name=settings.name, url=url)


def addressed(url: str, to: str) -> str:
    """The server's address with whom this mail is for."""
    parts = urlsplit(url)
    asked = [
        (name, value) for name, value in parse_qsl(parts.query) if name not in ("to", "format", "overflow")
    ]
    query = urlencode([*asked, ("to", to), ("format", "html"), ("overflow", "upstream")])
    return parts._replace(path="/", query=query).geturl()


def _service(url: str, name: str) -> Any:
    logging.getLogger("apprise").disabled = True
    apprise = importlib.import_module("apprise")
    try:
        service = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    except TypeError:
        service = None
    if service is None:
        raise SettingError(f"reports.{name}.server", "(not shown)", ALLOWED)
    return service
