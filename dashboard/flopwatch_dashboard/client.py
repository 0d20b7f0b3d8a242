"""The Query port over HTTP: the collector's JSON as the contract's values."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from flopwatch.answers.nodes import GpuPage, NodePage, Nodes
from flopwatch.query import Alerts, Economy, Fleet, Job, Jobs, Range, Status
from flopwatch_dashboard import reader

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

    def nodes(self, asked: Range) -> Nodes:
        """The Nodes page: every GPU as it is now."""
        return self._ask("nodes", Nodes, asked)

    def node(self, name: str, asked: Range) -> NodePage | None:
        """One node, or None when there is no such node."""
        try:
            return self._ask(f"nodes/{quote(name, safe='')}", NodePage, asked)
        except _NotFound:
            return None

    def gpu(self, uuid: str, asked: Range) -> GpuPage | None:
        """One GPU by its UUID, or None when there is no such GPU."""
        try:
            return self._ask(f"gpus/{quote(uuid, safe='')}", GpuPage, asked)
        except _NotFound:
            return None

    def economy(self, asked: Range, overrides: Mapping[str, float]) -> Economy:
        """The Breakeven page, with some inputs changed; raises ``ValueError`` for one that is not allowed."""
        try:
            return self._ask(
                "economy", Economy, asked, {"overrides": _listed(overrides)} if overrides else {}
            )
        except _Refused as error:
            raise ValueError(str(error)) from error

    def alerts(self, asked: Range) -> Alerts:
        """Active alerts, and those that were within the range."""
        return self._ask("alerts", Alerts, asked)

    def fetch(self, path_and_query: str) -> tuple[bytes, str]:
        """The body and content type of another address of the API, for downloads."""
        return self._get(path_and_query)

    def _credentials(self) -> Mapping[str, str]:
        """Those of who looks, else the dashboard's own."""
        given = reader.current()
        if given is not None:
            return given
        return {"authorization": f"Bearer {self._token}"} if self._token else {}

    def _ask(self, path: str, kind: type[T], asked: Range | None, more: Mapping[str, str] | None = None) -> T:
        body, _ = self._get(f"{ROOT}{path}{_parameters(asked, more or {})}")
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            raise CollectorUnavailable(
                f"{self._url}{ROOT}{path}: not the answer expected: {error}"
            ) from error

    def _get(self, address: str) -> tuple[bytes, str]:
        headers = {"accept": "application/json, text/csv", **self._credentials()}
        request = urllib.request.Request(self._url + address, headers=headers)  # noqa: S310  the scheme is checked in the settings
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_seconds) as response:  # noqa: S310  as above
                return response.read(), response.headers.get("content-type", "application/json")
        except urllib.error.HTTPError as error:
            with error:
                kinds: dict[int, type[CollectorUnavailable]] = {404: _NotFound, 422: _Refused}
                kind = kinds.get(error.code, CollectorUnavailable)
                if kind is _Refused:
                    raise kind(_words(error)) from error
                raise kind(f"{self._url}{address}: HTTP {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            raise CollectorUnavailable(f"{self._url}{address}: {error}") from error


class _NotFound(CollectorUnavailable):
    """The collector answered 404."""


class _Refused(CollectorUnavailable):
    """The collector answered 422; the message is its own."""


def _words(error: urllib.error.HTTPError) -> str:
    """What the collector says of a refused question."""
    try:
        document = msgspec.json.decode(error.read())
    except (OSError, http.client.HTTPException, msgspec.DecodeError):
        document = None
    message = document.get("message") if isinstance(document, dict) else None
    return str(message or f"HTTP {error.code} {error.reason}")


def _listed(overrides: Mapping[str, float]) -> str:
    return ",".join(f"{name}={value!r}" for name, value in sorted(overrides.items()))


def _parameters(asked: Range | None, more: Mapping[str, str]) -> str:
    if asked is None:
        return ""
    values: dict[str, Any] = {"seconds": f"{asked.seconds:g}", "points": asked.points}
    if asked.cluster is not None:
        values["cluster"] = asked.cluster
    if asked.team is not None:
        values["team"] = asked.team
    if asked.end_seconds is not None:
        values["end"] = repr(asked.end_seconds)
    return "?" + urlencode({**values, **more})
