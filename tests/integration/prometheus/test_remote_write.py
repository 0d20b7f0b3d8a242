"""A real collector writes to real receivers; what they answer is what the API answers."""

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.integration.prometheus import servers
from tests.integration.prometheus.receiver import Receiver
from tests.integration.prometheus.servers import Server, eventually
from tests.integration.views.site import Site
from tests.unit.collector.prometheus.wire_format import read_request

from flopwatch.query import Range
from flopwatch.settings import SettingError
from flopwatch_collector.config import RemoteWriteSettings
from flopwatch_collector.prometheus.bridge import Bridge
from flopwatch_collector.store.port import Unavailable

STALE = 0x7FF0000000000002


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.stop()


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def make(url: str, **settings: Any) -> Site:
        one = RemoteWriteSettings(**{"url": url, "labels": {"site": "north"}, **settings})
        sites.append(Site(tmp_path / "site", remote_write=(one,)))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


def bridge_of(site: Site) -> Bridge:
    """The bridge with its sender at work and its clock in the test's hand."""
    bridge = site.running.bridges[0]
    bridge.sender.first_pause_seconds, bridge.sender.longest_pause_seconds = 0.02, 0.1
    bridge.sender.start()
    return bridge


def sent(bridge: Bridge) -> bool:
    return bridge.sender.stats().waiting_requests == 0


@pytest.mark.parametrize("kind", servers.KINDS)
def test_receivers_answer_what_the_api_answers(
    kind: servers.Kind, tmp_path: Path, open_site: Callable[..., Site]
) -> None:
    with servers.running(kind, tmp_path / "server") as server:
        site = open_site(server.write_url)
        bridge = bridge_of(site)
        begin = site.now
        for _ in range(4):
            site.train(900.0)
            bridge.turn()
        eventually(lambda: sent(bridge))
        _same_now(server, site)
        _same_windows(server, site, begin)
        stats = bridge.sender.stats()

    assert (stats.refused_samples, stats.failed_attempts) == (0, 0)


def _same_now(server: Server, site: Site) -> None:
    fleet = site.query.fleet(Range(cluster="a"))
    row = site.query.jobs(Range()).rows[0]

    def value(name: str) -> float:
        found = eventually(lambda: server.query(name, site.now + 1))
        assert len(found) == 1
        (labels,) = found
        assert dict(labels)["site"] == "north"
        return next(iter(found.values()))

    assert value("flopwatch_fleet_gpus") == 16
    assert value("flopwatch_fleet_billable_ratio") == pytest.approx(
        fleet.ledger_today.billable_ratio, rel=1e-9
    )
    assert value("flopwatch_fleet_waste_gpu_seconds") == pytest.approx(
        fleet.ledger_today.waste_gpu_milliseconds / 1000, rel=1e-9
    )
    assert value("flopwatch_job_mfu_ratio") == pytest.approx(row.mfu.value_ratio, rel=1e-9)
    assert value("flopwatch_job_mfu_ratio") == pytest.approx(0.40, rel=1e-6)
    assert value("flopwatch_job_mfu_target_ratio") == 0.35
    assert value("flopwatch_job_gpus") == 8
    by_class = server.query("sum by (ledger_class) (flopwatch_fleet_gpu_seconds)", site.now + 1)
    assert {dict(labels)["ledger_class"]: seconds for labels, seconds in by_class.items()} == pytest.approx(
        {one.name: one.gpu_milliseconds / 1000 for one in fleet.ledger_today.classes if one.gpu_milliseconds}
    )
    verdict = server.query("flopwatch_fleet_verdict == 1", site.now + 1)
    assert [dict(labels)["verdict"] for labels in verdict] == [fleet.verdict.code]
    joined = "flopwatch_job_mfu_ratio * on (job_id) group_left (user) flopwatch_job_info"
    assert [dict(labels)["user"] for labels in server.query(joined, site.now + 1)] == ["ann"]


def _same_windows(server: Server, site: Site, begin: float) -> None:
    """Every closed window once, at its end; together they are the ledger of the time."""
    edge = site.running.accounting.provisional_from_seconds
    assert edge is not None

    def newest_is_there(metric: str) -> list[tuple[dict[str, str], list[list[float]]]]:
        series = server.samples(metric, 7_200, site.now)
        return series if any(values[-1][0] == edge for _, values in series) else []

    found = eventually(lambda: newest_is_there("flopwatch_fleet_window_gpu_seconds"))
    total: dict[str, float] = {}
    stamps: set[float] = set()
    for labels, values in found:
        total[labels["ledger_class"]] = total.get(labels["ledger_class"], 0.0) + sum(
            float(value) for _, value in values
        )
        stamps |= {stamp for stamp, _ in values}
    ledger = site.running.accounting.answer(min(stamps) - 300.0, edge, cluster="a")

    assert max(stamps) == edge
    assert sorted(stamps) == [min(stamps) + 300.0 * n for n in range(len(stamps))]
    assert min(stamps) > begin
    assert total == pytest.approx(
        {one.name: one.gpu_milliseconds / 1000 for one in ledger.classes if one.gpu_milliseconds}
    )
    held = eventually(lambda: newest_is_there("flopwatch_job_window_gpu_seconds"))
    assert [float(values[-1][1]) for _, values in held] == [8 * 300.0]


def test_an_outage_loses_nothing_and_sends_nothing_twice(
    receiver: Receiver, open_site: Callable[..., Site]
) -> None:
    site = open_site(receiver.url)
    bridge = bridge_of(site)
    site.train(900.0)
    bridge.turn()
    eventually(lambda: sent(bridge))
    port = receiver.port
    receiver.stop()
    for _ in range(2):
        site.train(300.0)
        bridge.turn()
    eventually(lambda: bridge.sender.stats().failed_attempts)
    receiver.start(port)
    receiver.answers.extend([500, 503, 429])
    eventually(lambda: sent(bridge))

    taken = receiver.samples(200)
    pairs = [(each.labels, each.time_milliseconds) for each in taken]
    stats = bridge.sender.stats()

    assert len(pairs) == len(set(pairs))
    times = [each.time_milliseconds / 1000 for each in taken if each.name == "flopwatch_fleet_gpus"]
    assert times == [site.now - 600.0, site.now - 300.0, site.now]
    assert stats.sent_samples == len(taken)
    assert stats.failed_attempts >= 4
    assert stats.refused_samples == stats.overflowed_samples == 0


def test_what_a_receiver_refuses_is_counted_and_the_next_goes_on(
    receiver: Receiver, open_site: Callable[..., Site]
) -> None:
    site = open_site(receiver.url)
    bridge = bridge_of(site)
    receiver.answers.append(400)
    site.train(300.0)
    bridge.turn()
    site.train(300.0)
    bridge.turn()
    eventually(lambda: sent(bridge))

    stats = bridge.sender.stats()
    assert stats.refused_samples == len(receiver.samples(400)) > 0
    assert stats.sent_samples == len(receiver.samples(200)) > 0
    assert stats.failed_attempts == 0
    text = site.running.metrics.text().decode()
    assert f'flopwatch_remote_write_samples_total{{receiver="prometheus"}} {stats.sent_samples}.0' in text
    assert (
        'flopwatch_remote_write_dropped_samples_total{reason="refused",receiver="prometheus"} '
        f"{stats.refused_samples}.0"
    ) in text


def test_a_full_queue_drops_the_oldest(receiver: Receiver, open_site: Callable[..., Site]) -> None:
    site = open_site(receiver.url, queue_requests=1)
    bridge = site.running.bridges[0]
    site.train(300.0)
    bridge.turn()
    first = bridge.sender.stats()
    site.train(300.0)
    bridge.turn()
    bridge.sender.start()
    eventually(lambda: sent(bridge))

    assert first.overflowed_samples == 0
    assert bridge.sender.stats().overflowed_samples > 0
    assert {each.time_milliseconds / 1000 for each in receiver.samples(200)} == {site.now}


def test_a_job_that_ends_ends_its_series(receiver: Receiver, open_site: Callable[..., Site]) -> None:
    site = open_site(receiver.url)
    bridge = bridge_of(site)
    site.train(900.0)
    bridge.turn()
    start = site.now
    site.train(60.0, end_time_seconds=start + 30.0)
    bridge.turn()
    eventually(lambda: sent(bridge))

    ended = [each for each in receiver.samples(200) if each.bits == STALE]
    assert "flopwatch_job_mfu_ratio" in {each.name for each in ended}
    assert not any(each.name.startswith("flopwatch_fleet_gpus") for each in ended)
    assert not any(math.isnan(each.value) for each in receiver.samples(200) if each.bits != STALE)


def test_windows_go_on_where_the_last_process_stopped(
    receiver: Receiver, open_site: Callable[..., Site]
) -> None:
    site = open_site(receiver.url)
    bridge = bridge_of(site)
    for _ in range(2):
        site.train(900.0)
        bridge.turn()
    eventually(lambda: sent(bridge))
    site.close()
    site.open()
    bridge = bridge_of(site)
    site.train(900.0)
    bridge.turn()
    eventually(lambda: sent(bridge))

    ends = [
        each.time_milliseconds
        for each in receiver.samples(200)
        if each.name == "flopwatch_job_window_gpu_seconds"
    ]
    assert ends == sorted(set(ends))
    assert [later - earlier for earlier, later in pairwise(ends)] == [300_000] * (len(ends) - 1)
    assert len(ends) >= 5


def test_only_the_collector_on_duty_writes_and_a_successor_goes_on(
    receiver: Receiver, open_site: Callable[..., Site]
) -> None:
    site = open_site(receiver.url)
    bridge = bridge_of(site)
    for _ in range(2):
        site.train(900.0)
        bridge.turn()
    eventually(lambda: sent(bridge))
    before = len(receiver.requests)
    on_duty = [False]
    bridge.sources = replace(bridge.sources, on_duty=lambda: on_duty[0])
    site.train(900.0)
    bridge.turn()
    quiet = len(receiver.requests)
    on_duty[0] = True
    bridge.turn()
    eventually(lambda: sent(bridge))

    assert quiet == before
    ends = [
        each.time_milliseconds
        for each in receiver.samples(200)
        if each.name == "flopwatch_job_window_gpu_seconds"
    ]
    assert [later - earlier for earlier, later in pairwise(ends)] == [300_000] * (len(ends) - 1)
    assert bridge.sender.stats().refused_samples == 0


def test_secrets_and_tenants_are_sent_and_never_shown(
    receiver: Receiver, tmp_path: Path, open_site: Callable[..., Site]
) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    site = open_site(receiver.url, token_file=tmp_path / "token", headers={"X-Scope-OrgID": "training"})
    bridge = bridge_of(site)
    site.train(300.0)
    bridge.turn()
    eventually(lambda: sent(bridge))
    headers = receiver.requests[0].headers

    assert headers["authorization"] == "Bearer s3cret"
    assert headers["x-scope-orgid"] == "training"
    assert headers["content-encoding"] == "snappy"
    assert headers["content-type"] == "application/x-protobuf"
    assert headers["x-prometheus-remote-write-version"] == "0.1.0"
    assert "s3cret" not in repr(bridge)
    assert read_request(receiver.requests[0].body)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "remote_write.prometheus.url"),
        ({"url": "http://a/w", "interval_seconds": 1.0}, "remote_write.prometheus.interval_seconds"),
        ({"url": "http://a/w", "labels": {"cluster": "x"}}, "remote_write.prometheus.labels.cluster"),
        ({"url": "http://a/w", "labels": {"no-name": "x"}}, "remote_write.prometheus.labels.no-name"),
        ({"url": "http://a/w", "queue_requests": 0}, "remote_write.prometheus.queue_requests"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(SettingError) as raised:
        RemoteWriteSettings(**settings)

    assert raised.value.name == name


def test_an_address_that_cannot_be_used_stops_the_start_without_its_secrets(
    open_site: Callable[..., Site],
) -> None:
    with pytest.raises(SettingError, match=r"remote_write\.prometheus\.url is 'http://host/…'"):
        open_site("http://user:pa55@host/write")


def test_a_store_that_cannot_be_asked_costs_a_scrape_the_fleet_only(
    receiver: Receiver, open_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_site(receiver.url)
    site.train(300.0)
    whole = site.running.metrics.text().decode()

    def broken(*_: object, **__: object) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(type(site.running.exported), "fleet", broken)
    rest = site.running.metrics.text().decode()

    assert "flopwatch_fleet_readable 1.0" in whole
    assert 'flopwatch_fleet_gpus{cluster="a"} 16.0' in whole
    assert "flopwatch_fleet_readable 0.0" in rest
    assert "flopwatch_fleet_gpus{" not in rest
    assert "flopwatch_collector_store_commits_total" in rest


def test_a_running_collector_writes_by_itself_and_ends_with_it(
    receiver: Receiver, open_site: Callable[..., Site]
) -> None:
    site = open_site(receiver.url, interval_seconds=5.0)
    site.train(300.0)
    bridge = site.running.bridges[0]

    bridge.start()
    eventually(lambda: receiver.samples(200))
    site.close()

    assert {each.time_milliseconds / 1000 for each in receiver.samples(200)} == {site.now}
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("remote-write")]
