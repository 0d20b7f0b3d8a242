"""People who keep pages open: each asks its page's refresh over HTTP as a browser does, every few seconds."""

import contextlib
import http.client
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

TICK_SECONDS = 5.0
ANSWER_SECONDS = 60.0
PAGES = {"fleet": "", "jobs": "jobs", "nodes": "nodes", "alerts": "alerts", "breakeven": "breakeven"}


@dataclass(slots=True)
class Read:
    """What the readers saw."""

    waits_seconds: list[float] = field(default_factory=list)
    received_bytes: int = 0
    wrong: list[str] = field(default_factory=list)


class Reader:
    """One open page with a view that no other reader has, so that nobody shares an answer with it."""

    def __init__(self, port: int, number: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
        self._number = number
        self._name, path = list(PAGES.items())[number % len(PAGES)]
        ui = {"theme": ("light", "dark")[number % 2], "lang": "en", "range": "1h", "w": 1_200 + 16 * number}
        self._values: dict[str, Any] = {
            "ui.data": ui,
            "url.pathname": f"/ui/{path}",
            f"{self._name}-sent.data": None,
        }
        self._callback = self._refresh_of_page()

    def refresh(self, read: Read) -> None:
        """Ask once; what the page has from now on is told with the next question."""
        self._values["tick.data"] = time.time()
        begin = time.monotonic()
        status, body = self._ask("POST", "_dash-update-component", json.dumps(self._question()))
        read.waits_seconds.append(time.monotonic() - begin)
        read.received_bytes += len(body)
        if status != 200:
            read.wrong.append(f"{self._name}: {status}")
            return
        self._values[f"{self._name}-sent.data"] = json.loads(body)["response"][f"{self._name}-sent"]["data"]

    def close(self) -> None:
        """Close the page."""
        self._connection.close()

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        self._connection.request(method, f"/ui/{path}", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def _refresh_of_page(self) -> dict[str, Any]:
        every = json.loads(self._ask("GET", "_dash-dependencies")[1])
        kept = f"{self._name}-sent.data"
        return next(
            one
            for one in every
            if kept in one["output"] and {"id": "tick", "property": "data"} in one["inputs"]
        )

    def _question(self) -> dict[str, Any]:
        about = self._callback
        outputs = [name.rpartition(".") for name in about["output"].strip(".").split("...")]
        return {
            "output": about["output"],
            "outputs": [{"id": one, "property": name} for one, _, name in outputs],
            "inputs": [self._given(one) for one in about["inputs"]],
            "state": [self._given(one) for one in about["state"]],
            "changedPropIds": ["tick.data"],
        }

    def _given(self, place: dict[str, str]) -> dict[str, Any]:
        named = {"id": place["id"], "property": place["property"]}
        return {**named, "value": self._values[f"{place['id']}.{place['property']}"]}


@contextlib.contextmanager
def reading(port: int, count: int) -> Iterator[Read]:
    """So many open pages, their ticks spread over the seconds between two, until the end of the block."""
    _await_answer(port)
    read, ended = Read(), threading.Event()
    readers = [Reader(port, number) for number in range(count)]
    threads = [
        threading.Thread(target=_keep_open, args=(one, at / count, read, ended))
        for at, one in enumerate(readers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield read
    finally:
        ended.set()
        for thread in threads:
            thread.join(ANSWER_SECONDS)


def _await_answer(port: int) -> None:
    """Wait until the collector takes connections."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS).close()
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _keep_open(reader: Reader, part: float, read: Read, ended: threading.Event) -> None:
    begin = time.monotonic() + part * TICK_SECONDS
    with contextlib.closing(reader):
        for tick in itertools.count():
            if ended.wait(max(0.0, begin + tick * TICK_SECONDS - time.monotonic())):
                return
            reader.refresh(read)
