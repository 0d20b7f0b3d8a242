"""The Query port over HTTP: the collector's JSON as the contract's values."""

import http.client
import urllib.error
import urllib.request
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from flopwatch.query import Alerts, Fleet, Job, Jobs, Range, Status

T = TypeVar("T")
ROOT = "/api/v1/query/"


class CollectorUnavailable(RuntimeError):
    """The collector did not answer, or not with what was asked; the message names its address and why."""


class HttpQuery:
    """Asks a collector; every method raises ``CollectorUnavailable``."""

    def __init__(self, url: str, token: str | None, timeout_seconds: float = 10.0) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._timeout_seconds = timeout_seconds

    def status(self) -> Status:
        """The frame of every page."""
        return self._ask("status", Status, None)

    def fleet(self, asked: Range) -> Fleet:
        """The Fleet page."""
        return self._ask("fleet", Fleet, asked)

    def jobs(self, asked: Range) -> Jobs:
        """All running jobs and those that ended within the range."""
        return self._ask("jobs", Jobs, asked)

    def job(self, job_id: str, asked: Range) -> Job | None:
        """One job, or None when there is no such job."""
        try:
            return self._ask(f"jobs/{quote(job_id, safe='')}", Job, asked)
        except _NotFound:
            return None

    def alerts(self, asked: Range) -> Alerts:
        """Active alerts, and those that were within the range."""
        return self._ask("alerts", Alerts, asked)

    def fetch(self, path_and_query: str) -> tuple[bytes, str]:
        """The body and content type of another address of the API, for downloads."""
        return self._get(path_and_query)

    def _ask(self, path: str, kind: type[T], asked: Range | None) -> T:
        body, _ = self._get(f"{ROOT}{path}{_parameters(asked)}")
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            raise CollectorUnavailable(
                f"{self._url}{ROOT}{path}: not the answer expected: {error}"
            ) from error

    def _get(self, address: str) -> tuple[bytes, str]:
        headers = {"accept": "application/json, text/csv"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._url + address, headers=headers)  # noqa: S310  the scheme is checked in the settings
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_seconds) as response:  # noqa: S310  as above
                return response.read(), response.headers.get("content-type", "application/json")
        except urllib.error.HTTPError as error:
            with error:
                kind: type[CollectorUnavailable] = _NotFound if error.code == 404 else CollectorUnavailable
                raise kind(f"{self._url}{address}: HTTP {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            raise CollectorUnavailable(f"{self._url}{address}: {error}") from error


class _NotFound(CollectorUnavailable):
    """The collector answered 404."""


def _parameters(asked: Range | None) -> str:
    if asked is None:
        return ""
    values: dict[str, Any] = {"seconds": f"{asked.seconds:g}", "points": asked.points}
    if asked.cluster is not None:
        values["cluster"] = asked.cluster
    return "?" + urlencode(values)
