"""Asks a collector over HTTP, for commands that run on a node; standard library only."""

import argparse
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flopwatch import settings
from flopwatch.settings import SettingError

DEFAULT_URL = "http://127.0.0.1:8095"
ANSWER_SECONDS = 30.0
MAX_ANSWER_BYTES = 64 << 20


class AskError(Exception):
    """The collector cannot be asked, or refuses; the message says why. ``status`` is None when it did not answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where the collector is, and who asks."""

    url: str = DEFAULT_URL
    token: str | None = field(default=None, repr=False)
    ca_file: Path | None = None


def add_address(parser: argparse.ArgumentParser) -> None:
    """The options ``--url`` (or ``--collector``) and ``--token-file``, for ``address_from``."""
    parser.add_argument(
        "--url",
        "--collector",
        metavar="URL",
        help=f"the collector (default: FLOPWATCH_COLLECTOR_URL, then {DEFAULT_URL})",
    )
    parser.add_argument("--token-file", type=Path, help="file with a token (default: FLOPWATCH_TOKEN[_FILE])")


def address_from(url: str | None, token_file: Path | None, environ: Mapping[str, str]) -> Address:
    """The address by the command's options, else the environment, else ``agent.collector_url`` of the settings file.

    The token is in the file of ``--token-file``, in ``FLOPWATCH_TOKEN``, or in the file of
    ``FLOPWATCH_TOKEN_FILE``.

    Raises:
        SettingError: the address is none, or a file cannot be read.
    """
    agent = settings.load(settings.default_file(environ)).get("agent", {})
    table = agent if isinstance(agent, Mapping) else {}
    known = (url, environ.get("FLOPWATCH_COLLECTOR_URL"), environ.get("FLOPWATCH_AGENT_COLLECTOR_URL"))
    chosen = next((text for text in known if text), None) or str(table.get("collector_url", DEFAULT_URL))
    parts = urlsplit(chosen)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingError("--url", chosen, "an address such as http://collector:8095")
    ca_file = environ.get("FLOPWATCH_AGENT_CA_FILE") or table.get("ca_file")
    return Address(
        url=chosen.rstrip("/"),
        token=_token(token_file, environ),
        ca_file=None if ca_file is None else Path(str(ca_file)),
    )


def _token(file: Path | None, environ: Mapping[str, str]) -> str | None:
    if file is None and environ.get("FLOPWATCH_TOKEN"):
        return environ["FLOPWATCH_TOKEN"].strip()
    named = file or (Path(environ["FLOPWATCH_TOKEN_FILE"]) if environ.get("FLOPWATCH_TOKEN_FILE") else None)
    if named is None:
        return None
    try:
        return named.read_text(encoding="utf-8").strip() or None
    except OSError as error:
        raise SettingError("--token-file", str(named), f"a readable file ({error.strerror})") from error


def ask(address: Address, method: str, path: str, body: object | None = None) -> Any:
    """The answer's JSON.

    Raises:
        AskError: no answer, or one that is an error; its words are the message.
    """
    try:
        return json.loads(fetch(address, method, path, body))
    except ValueError as error:
        raise AskError(f"what answers at {address.url} is no flopwatch collector: no JSON") from error


def fetch(
    address: Address, method: str, path: str, body: object | None = None, *, seconds: float = ANSWER_SECONDS
) -> bytes:
    """The answer's bytes, whatever they are; ``seconds`` is how long each part of it may take.

    Raises:
        AskError: no answer, or one that is an error; its words are the message.
    """
    request = urllib.request.Request(  # noqa: S310 - the address is http or https
        address.url + path, data=None if body is None else json.dumps(body).encode(), method=method
    )
    request.add_header("Content-Type", "application/json")
    if address.token is not None:
        request.add_header("Authorization", f"Bearer {address.token}")
    try:
        with _opener(address).open(request, timeout=seconds) as response:
            content: bytes = response.read(MAX_ANSWER_BYTES)
            return content
    except urllib.error.HTTPError as error:
        raise AskError(_words(error), error.code) from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise AskError(f"the collector at {address.url} does not answer: {reason}") from error


def _opener(address: Address) -> urllib.request.OpenerDirector:
    if urlsplit(address.url).scheme != "https":
        return urllib.request.build_opener()
    context = ssl.create_default_context(cafile=None if address.ca_file is None else str(address.ca_file))
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))


def _words(error: urllib.error.HTTPError) -> str:
    """The collector's own words for an error."""
    with error:
        try:
            document = json.loads(error.read(MAX_ANSWER_BYTES))
        except (OSError, HTTPException, ValueError):
            document = None
    message = document.get("message") if isinstance(document, dict) else None
    return str(message) if message else f"the collector answers {error.code} {error.reason}"
