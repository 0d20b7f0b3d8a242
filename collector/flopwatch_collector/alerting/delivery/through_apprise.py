"""Services that the package apprise knows by an address: Slack, PagerDuty, Teams, Telegram, WeCom, ntfy and others.

An address holds keys: only its form without them is printed, and apprise's own log is closed.
"""

import importlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flopwatch.settings import SettingError
from flopwatch_collector.alerting.delivery import posting, wording
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.config import NotifySettings

BY_KEY = frozenset(("pagerduty",))
"""Services that join what has the same key: each alert is sent alone, under its fingerprint."""
PLAIN = frozenset(("json", "jsons", "form", "forms", "xml", "xmls"))
"""Schemes whose host is the receiver itself."""
ALLOWED = "an address of apprise, such as slack://… or pagerduty://…"
_TYPES = {"critical": "failure", "warning": "warning", "info": "info"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Apprise:
    """One service."""

    name: str
    scheme: str
    privacy_form: str
    loopback: bool
    language: wording.Language = "en"
    _service: Any = field(repr=False)

    def send(self, body: Mapping[str, Any], delivery_id: str) -> None:  # noqa: ARG002 - services know no ids
        """Hand the message over.

        Raises:
            DeliveryFailed: the service did not take it.
        """
        if self.scheme not in BY_KEY:
            self._notify(wording.words_of(body, self.language), _type(body["alerts"]))
            return
        for alert in body["alerts"]:
            self._service.dedup = alert["fingerprint"]
            self._service.action = "map"
            self._notify(wording.of_alert(alert, self.language), _type([alert]))

    def _notify(self, words: wording.Words, kind: str) -> None:
        try:
            taken = self._service.notify(title=words.title, body=words.text, notify_type=kind)
        except (OSError, TypeError, ValueError) as error:
            raise DeliveryFailed(posting.reason(error)) from None
        if not taken:
            raise DeliveryFailed("not taken by the service")


def _type(alerts: list[Mapping[str, Any]]) -> str:
    """Apprise's word: ``success`` when all has ended, else by the worst that fires."""
    firing = [alert["labels"].get("severity", "info") for alert in alerts if alert["status"] == "firing"]
    worst = next((severity for severity in _TYPES if severity in firing), None)
    return "success" if not firing else _TYPES[worst or "info"]


def from_settings(settings: NotifySettings) -> Apprise:
    """The channel of one ``[[notify]]`` of kind ``apprise``.

    Raises:
        SettingError: the package is missing, there is no address or two, or apprise does not know it.
    """
    name = f"notify.{settings.name}"
    url = posting.one_of(settings.url, settings.url_file, f"{name}.url") or ""
    try:
        apprise = importlib.import_module("apprise")
    except ModuleNotFoundError:
        raise SettingError(
            f"{name}.kind", "apprise", "the package apprise installed: pip install apprise"
        ) from None
    logging.getLogger("apprise").disabled = True
    logging.getLogger("urllib3").setLevel(logging.INFO)
    service = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    if service is None:
        raise SettingError(f"{name}.url", f"{_scheme(url)}://…", ALLOWED)
    scheme = _scheme(url)
    return Apprise(
        name=settings.name,
        scheme=scheme,
        privacy_form=_privacy_form(service, scheme),
        loopback=scheme in PLAIN and posting.is_loopback(str(service.host or "")),
        language=settings.language,
        _service=service,
    )


def _scheme(url: str) -> str:
    scheme = url.partition("://")[0].lower()
    return scheme if scheme.isalnum() and len(scheme) <= 32 else ""


def _privacy_form(service: Any, scheme: str) -> str:
    """Host and port where the receiver is one's own; else only which service it is."""
    if scheme not in PLAIN:
        return f"{scheme}://…"
    port = f":{service.port}" if service.port else ""
    return f"{scheme}://{service.host}{port}/…"
