"""Pushing to a collector that takes, refuses, is busy, or is away."""

import itertools
import os
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.integration.agent.agent_process import FakeCollector, eventually

from flopwatch.settings import SettingError
from flopwatch_agent.sinks.push import Pusher, Target, Waits, retry_after
from flopwatch_agent.spool import Spool


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "spool", 1 << 20)
    for number in range(3):
        made.write(number, b'{"node":"a","spool":"s","sequence":%d}' % number)
    return made


@pytest.fixture
def new_pusher(spool: Spool):
    made = []

    def make(
        collector: FakeCollector, chosen: Spool = spool, bearer: Callable[[], str] = lambda: "fw_token"
    ) -> Pusher:
        made.append(Pusher(Target(url=collector.url, bearer=bearer), chosen))
        made[-1]._waits = Waits(failures=-5)
        made[-1].start()
        return made[-1]

    yield make
    for pusher in made:
        pusher._stopped.set()
        pusher._wake.set()
        pusher._thread.join(5)


def sequences(collector: FakeCollector) -> list[int]:
    return [batch["sequence"] for batch in collector.received]


def test_batches_are_sent_in_order_packed_with_token_and_time(collector, spool, new_pusher) -> None:
    new_pusher(collector)
    eventually(lambda: spool.waiting == 0)

    headers = collector.requests[0].headers
    assert sequences(collector) == [0, 1, 2]
    assert headers["Authorization"] == "Bearer fw_token"
    assert headers["Content-Encoding"] == "gzip"
    assert abs(float(headers["Flopwatch-Sent-At"]) - time.time()) < 10.0


@pytest.mark.parametrize("status", [429, 503, 500, 502])
def test_a_busy_collector_gets_the_same_batch_again(collector, spool, new_pusher, status: int) -> None:
    collector.answers = [(status, {}, ""), (status, {}, "")]

    new_pusher(collector)
    eventually(lambda: spool.waiting == 0)

    assert sequences(collector) == [0, 0, 0, 1, 2]


def test_retry_after_is_honoured(collector, spool, new_pusher) -> None:
    collector.answers = [(503, {"Retry-After": "1"}, "")]
    began = time.monotonic()

    new_pusher(collector)
    eventually(lambda: spool.waiting == 0)

    assert time.monotonic() - began >= 1.0


@pytest.mark.parametrize("status", [422, 413, 400])
def test_a_batch_refused_for_good_is_set_aside_and_the_next_one_goes(
    collector, spool, new_pusher, status: int
) -> None:
    collector.answers = [(status, {}, '{"detail": "steps.0.step is -1"}')]

    pusher = new_pusher(collector)
    eventually(lambda: spool.waiting == 0)

    assert sequences(collector) == [0, 1, 2]
    assert pusher.state.rejected == 1
    reasons = list((spool._folder / "rejected").glob("*.reason"))
    assert reasons[0].read_text() == f'{status} {{"detail": "steps.0.step is -1"}}\n'


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_token_keeps_the_batches_and_names_the_setting(
    collector, spool, new_pusher, status: int
) -> None:
    collector.answers = [(status, {}, "")] * 2

    pusher = new_pusher(collector)
    eventually(lambda: pusher.state.problem)
    assert "agent.token" in pusher.state.problem
    assert spool.waiting == 3

    eventually(lambda: spool.waiting == 0)
    assert pusher.state.problem is None


def test_a_redirect_is_not_followed_for_it_would_carry_the_token_away(collector, spool, new_pusher) -> None:
    other = FakeCollector()
    collector.answers = [(302, {"Location": other.url}, "")]

    pusher = new_pusher(collector)
    eventually(lambda: spool.waiting == 0)
    other.stop()

    assert other.requests == []
    assert pusher.state.sent == 3


def test_an_outage_is_replayed_whole_and_in_order(collector, spool, new_pusher) -> None:
    collector.stop()
    pusher = new_pusher(collector)
    eventually(lambda: pusher.state.failed_attempts >= 2)
    for number in range(3, 30):
        spool.write(number, b'{"node":"a","spool":"s","sequence":%d}' % number)

    collector.start()
    eventually(lambda: spool.waiting == 0)

    assert sequences(collector) == list(range(30))


def waits_of_an_outage(seconds: float) -> list[tuple[float, float]]:
    """When each attempt fails and how long is waited then, for a collector that is away from moment 0."""
    moment = 0.0
    waits = Waits(clock=lambda: moment)
    found = []
    while moment < seconds:
        found.append((moment, waits.next(None)))
        moment += found[-1][1]
    return found


def test_a_short_outage_is_tried_at_least_every_five_seconds_a_long_one_every_minute() -> None:
    found = waits_of_an_outage(3600.0)

    short = [wait for moment, wait in found if moment < 60.0]
    assert [low <= wait <= 2 * low for low, wait in zip((0.5, 1.0, 2.0), short, strict=False)] == [True] * 3
    assert all(2.5 <= wait <= 5.0 for wait in short[3:])
    assert all(wait <= 60.0 for _, wait in found)
    assert all(wait >= 30.0 for moment, wait in found if moment > 300.0)


def test_after_a_success_the_next_outage_begins_anew_and_the_collectors_wish_is_a_floor() -> None:
    moment = 0.0
    waits = Waits(clock=lambda: moment)
    for _ in range(20):
        moment += waits.next(None)
    assert waits.next(300.0) == 300.0

    waits.reset()

    assert waits.next(None) <= 1.0


def test_retry_after_may_be_a_date() -> None:
    from email.message import Message
    from email.utils import formatdate

    headers = Message()
    headers["Retry-After"] = formatdate(time.time() + 100, usegmt=True)
    assert retry_after(headers) == pytest.approx(100, abs=2)

    for text in ("soon", ""):
        other = Message()
        other["Retry-After"] = text
        assert retry_after(other) is None


def test_a_certificate_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")

    for number, path in enumerate((tmp_path / "ca.pem", tmp_path / "missing.pem")):
        target = Target(url="https://collector", bearer=lambda: None, ca_file=path)
        with pytest.raises(SettingError, match=r"agent\.ca_file"):
            Pusher(target, Spool(tmp_path / f"spool-{number}", 1 << 20))


def test_a_batch_that_a_power_cut_emptied_or_tore_is_set_aside_and_the_next_one_goes(
    collector, spool, new_pusher, tmp_path: Path
) -> None:
    (spool._folder / f"{0:020d}.json.gz").write_bytes(b"")
    whole = (spool._folder / f"{1:020d}.json.gz").read_bytes()
    (spool._folder / f"{1:020d}.json.gz").write_bytes(whole[:-5])
    (spool._folder / "dropped").write_text("")
    again = Spool(tmp_path / "spool", 1 << 20)

    pusher = new_pusher(collector, again)
    eventually(lambda: again.waiting == 0)

    assert sequences(collector) == [2]
    assert pusher.state.rejected == 2
    assert len(list((spool._folder / "rejected").glob("*.reason"))) == 2
    assert again.next_sequence == 3


class CutShort(BaseHTTPRequestHandler):
    """Answers 503 and hangs up in the middle of the reason."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(b"HTTP/1.1 503 busy\r\nContent-Length: 500\r\n\r\nhalf of")
        self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        pass


def test_an_answer_that_is_cut_off_does_not_end_the_sending(collector, spool, new_pusher) -> None:
    collector.stop()
    broken = HTTPServer(("127.0.0.1", collector.port), CutShort)
    threading.Thread(target=broken.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    pusher = new_pusher(collector)
    eventually(lambda: pusher.state.failed_attempts >= 3)
    assert "503" in pusher.state.problem
    broken.shutdown()
    broken.server_close()

    collector.start()
    eventually(lambda: spool.waiting == 0)

    assert sequences(collector) == [0, 1, 2]


def test_a_failure_that_nobody_foresaw_is_logged_and_the_batch_is_tried_again(
    collector, spool, new_pusher, caplog
) -> None:
    answers = iter([None, None])

    def bearer() -> str:
        if next(answers, "over") is None:
            raise RuntimeError("unforeseen")
        return "fw_token"

    new_pusher(collector, bearer=bearer)
    eventually(lambda: spool.waiting == 0)

    assert sequences(collector) == [0, 1, 2]
    assert "unforeseen" in caplog.text


def test_the_oldest_batch_may_be_given_up_while_another_thread_asks_for_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "full", 2000)
    stopped = threading.Event()
    failures: list[Exception] = []

    def ask() -> None:
        while not stopped.is_set():
            try:
                batch = spool.oldest()
                assert batch is None or spool.read(batch) != b""
            except (KeyError, OSError) as error:
                failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    for number in range(150):
        spool.write(number, os.urandom(900))
    stopped.set()
    thread.join(5)

    assert failures == []
    assert spool.waiting + spool.dropped == 150


def test_no_batch_is_lost_or_sent_twice_when_the_agent_is_killed_again_and_again(
    new_agent, collector
) -> None:
    agent = new_agent(collector_url=collector.url)
    for _ in range(4):
        eventually(lambda: len(collector.requests) >= 2)
        before = len(collector.batches)
        eventually(lambda before=before: len(collector.batches) > before)
        agent.kill()
        agent.start()
    before = len(collector.batches)
    eventually(lambda: len(collector.batches) > before, 40)

    numbers = [batch["sequence"] for batch in collector.batches]
    assert numbers == list(range(len(numbers)))
    assert len({batch["spool"] for batch in collector.batches}) == 1
    bodies: dict[int, dict] = {}
    for batch in collector.received:
        assert bodies.setdefault(batch["sequence"], batch) == batch


def test_an_agent_whose_collector_is_away_goes_on_and_catches_up(new_agent, collector: FakeCollector) -> None:
    collector.stop()
    agent = new_agent(collector_url=collector.url)
    eventually(
        lambda: (
            agent.has("flopwatch_spool_waiting_batches")
            and agent.metrics()["flopwatch_spool_waiting_batches"] >= 3
        )
    )
    assert agent.output().count("does not answer") == 1

    collector.start()
    eventually(lambda: len(collector.batches) >= 4)

    numbers = [batch["sequence"] for batch in collector.batches]
    assert numbers == list(itertools.islice(itertools.count(), len(numbers)))
