"""JSON over HTTP or HTTPS with a bearer token or other headers; standard library only."""

import contextlib
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flopwatch_collector.schedulers.reading import SchedulerUnreachable

MOST_BYTES = 1 << 30
SHOWN_CHARACTERS = 200


class Answered(SchedulerUnreachable):
    """An answer that is an error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a token is for the server that was named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """No request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """An API and how to ask it. Secrets are read again at every question: they are renewed under it."""

    url: str
    timeout_seconds: float = 20.0
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_files: Mapping[str, tuple[str, Path]] = field(default_factory=dict)
    """By header: what stands before the secret, and the file that holds it."""
    ca_file: Path | None = None

    def document(self, path: str) -> Mapping[str, Any]:
        """The JSON object at a path.

        Raises:
            Answered: the answer is an error.
            SchedulerUnreachable: there is no answer, or it is no JSON object.
        """
        with self.open(path) as response:
            body = response.read(MOST_BYTES)
        try:
            found = json.loads(body)
        except ValueError as error:
            raise SchedulerUnreachable(f"{self.url}{path} answers no JSON: {error}") from error
        if not isinstance(found, dict):
            raise SchedulerUnreachable(f"{self.url}{path} answers no JSON object")
        return found

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[Any]:
        """The answer's body as it comes.

        Raises:
            Answered: the answer is an error.
            SchedulerUnreachable: there is no answer, or it breaks off.
        """
        request = urllib.request.Request(  # noqa: S310 - settings allow http and https only
            self.url.rstrip("/") + path, headers={"Accept": "application/json", **self._headers()}
        )
        try:
            with self._opener().open(request, timeout=self.timeout_seconds) as response:
                yield response
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(SHOWN_CHARACTERS).decode(errors="replace")
            raise Answered(f"{self.url}{path} answers {error.code}: {said}", error.code) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise SchedulerUnreachable(f"{self.url} does not answer: {reason}") from error

    def _headers(self) -> dict[str, str]:
        made = dict(self.headers)
        for name, (before, path) in self.secret_files.items():
            try:
                made[name] = before + path.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise SchedulerUnreachable(f"{path} cannot be read: {error.strerror}") from error
        return made

    def _opener(self) -> urllib.request.OpenerDirector:
        stay = _Stay()
        if not self.url.startswith("https:"):
            return urllib.request.build_opener(urllib.request.ProxyHandler({}), stay)
        context = ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
        return urllib.request.build_opener(
            urllib.request.ProxyHandler({}), stay, urllib.request.HTTPSHandler(context=context)
        )
