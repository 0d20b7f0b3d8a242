"""Bots of Feishu, Lark and DingTalk groups, with their signatures."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote_plus, urlsplit

from flopwatch_collector.alerting.delivery import posting
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.alerting.delivery.wording import Language, words_of
from flopwatch_collector.config import NotifySettings

LONGEST_TEXT_BYTES = 18_000
"""Both take requests of 20 KB."""


def feishu_signature(timestamp: int, secret: str) -> str:
    """Feishu's and Lark's: HMAC-SHA256 of nothing, the key is the time in seconds, a new line and the secret."""
    key = f"{timestamp}\n{secret}".encode()
    return base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()


def dingtalk_signature(timestamp_milliseconds: int, secret: str) -> str:
    """DingTalk's: HMAC-SHA256 of the time in milliseconds, a new line and the secret; the key is the secret."""
    text = f"{timestamp_milliseconds}\n{secret}".encode()
    return base64.b64encode(hmac.new(secret.encode(), text, hashlib.sha256).digest()).decode()


@dataclass(frozen=True, kw_only=True, slots=True)
class Bot:
    """A group's bot; ``url`` holds its token."""

    name: str
    kind: Literal["feishu", "lark", "dingtalk"]
    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    language: Language = "en"
    timeout_seconds: float = 10.0
    clock: Callable[[], float] = field(default=time.time, repr=False)

    @property
    def privacy_form(self) -> str:
        """The address without its token."""
        return posting.privacy_form(self.url)

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        return posting.is_loopback(urlsplit(self.url).hostname or "")

    def send(self, body: Mapping[str, Any], delivery_id: str) -> None:  # noqa: ARG002 - bots know no ids
        """Post the text.

        Raises:
            DeliveryFailed: the bot did not take it, also where it says so under status 200.
        """
        words = words_of(body, self.language)
        text = _shortened(f"{words.title}\n{words.text}")
        url, document = self._dingtalk(text) if self.kind == "dingtalk" else self._feishu(text)
        _judge(posting.post(url, document, {}, self.timeout_seconds))

    def _feishu(self, text: str) -> tuple[str, dict[str, Any]]:
        document: dict[str, Any] = {"msg_type": "text", "content": {"text": text}}
        if self.secret is not None:
            now = int(self.clock())
            document = {"timestamp": str(now), "sign": feishu_signature(now, self.secret), **document}
        return self.url, document

    def _dingtalk(self, text: str) -> tuple[str, dict[str, Any]]:
        document = {"msgtype": "text", "text": {"content": text}}
        if self.secret is None:
            return self.url, document
        now = int(self.clock() * 1_000)
        sign = quote_plus(dingtalk_signature(now, self.secret))
        joint = "&" if "?" in self.url else "?"
        return f"{self.url}{joint}timestamp={now}&sign={sign}", document


def _judge(answer: bytes) -> None:
    """Bots answer 200 to everything; the code in the answer is 0 when the message was taken."""
    try:
        document = json.loads(answer)
    except ValueError:
        raise DeliveryFailed("answered without JSON") from None
    if not isinstance(document, dict):
        raise DeliveryFailed("answered without a code")
    code = next((document[key] for key in ("code", "StatusCode", "errcode") if key in document), None)
    if code != 0:
        raise DeliveryFailed(f"answered code {str(code)[:20]}")


def _shortened(text: str) -> str:
    raw = text.encode()
    if len(raw) <= LONGEST_TEXT_BYTES:
        return text
    return raw[:LONGEST_TEXT_BYTES].decode(errors="ignore") + "…"


def from_settings(settings: NotifySettings) -> Bot:
    """The channel of one ``[[notify]]`` of kind ``feishu``, ``lark`` or ``dingtalk``.

    Raises:
        SettingError: no address or two, two secrets, a file that cannot be read, an address that is not HTTP.
    """
    name = f"notify.{settings.name}"
    url = posting.one_of(settings.url, settings.url_file, f"{name}.url")
    kind = settings.kind
    return Bot(
        name=settings.name,
        kind="feishu" if kind == "feishu" else "lark" if kind == "lark" else "dingtalk",
        url=posting.http_address(url or "", f"{name}.url"),
        secret=posting.one_of(settings.secret, settings.secret_file, f"{name}.secret", needed=False),
        language=settings.language,
        timeout_seconds=settings.timeout_seconds,
    )
