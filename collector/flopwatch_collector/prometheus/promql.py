"""A client of Prometheus's HTTP API, which VictoriaMetrics, Mimir and Thanos answer as well."""

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flopwatch.settings import SettingError
from flopwatch_collector.prometheus.endpoint import Endpoint, Unreachable

KEPT_ANSWERS = 256
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}


class PrometheusUnavailable(RuntimeError):
    """The server did not answer, or not with what was asked; the message names its address and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One series of an instant answer."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """One series over time: values by epoch seconds; times without a sample are not there."""

    labels: Mapping[str, str]
    values: Mapping[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """From when to when, and how far the points are apart, in seconds."""

    start: float
    end: float
    step: float

    def times(self) -> tuple[float, ...]:
        """The times that are asked for."""
        count = int((self.end - self.start) // self.step) + 1
        return tuple(self.start + number * self.step for number in range(count))


class PromClient:
    """Asks one server; equal questions are asked once. Every method raises ``PrometheusUnavailable``."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()
        self.asked = 0
        """Questions that went to the server."""

    def instant(self, expression: str, at: float) -> list[Row]:
        """Series of the expression at a time; values that are not numbers are left out."""
        result = self._ask("/api/v1/query", {"query": expression, "time": f"{at:.3f}"}, "vector")
        rows = [Row(labels=row["metric"], value=float(row["value"][1])) for row in result]
        return [row for row in rows if math.isfinite(row.value)]

    def range(self, expression: str, span: Span) -> list[Course]:
        """Series of the expression over time."""
        asked = {
            "query": expression,
            "start": f"{span.start:.3f}",
            "end": f"{span.end:.3f}",
            "step": f"{span.step:g}",
        }
        result = self._ask("/api/v1/query_range", asked, "matrix")
        return [Course(labels=row["metric"], values=_finite(row["values"])) for row in result]

    def _ask(self, path: str, asked: Mapping[str, str], kind: str) -> list[Any]:
        body = urlencode({**asked, "timeout": f"{self._endpoint.timeout_seconds:g}s"})
        key = f"{path}?{body}"
        with self._lock:
            if key in self._kept:
                return list(self._kept[key])
            self.asked += 1
        result = self._fetch(path, body.encode(), kind)
        with self._lock:
            self._kept[key] = result
            while len(self._kept) > KEPT_ANSWERS:
                self._kept.popitem(last=False)
        return result

    def _fetch(self, path: str, body: bytes, kind: str) -> list[Any]:
        where = f"{self._endpoint.shown}{path}"
        try:
            answer = self._endpoint.post(path, body, FORM)
        except (Unreachable, SettingError) as error:
            raise PrometheusUnavailable(str(error)) from error
        try:
            document = json.loads(answer.body)
            if answer.status != 200 or document["status"] != "success":
                raise PrometheusUnavailable(
                    f"{where}: HTTP {answer.status} {str(document.get('error'))[:300]}"
                )
            data = document["data"]
            if data["resultType"] != kind:
                raise PrometheusUnavailable(f"{where}: a {data['resultType']} where a {kind} was asked")
            return list(data["result"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PrometheusUnavailable(f"{where}: HTTP {answer.status}, not the answer expected") from error


def _finite(pairs: list[list[Any]]) -> dict[float, float]:
    values = {float(stamp): float(value) for stamp, value in pairs}
    return {stamp: value for stamp, value in values.items() if math.isfinite(value)}
