"""Pushes over real HTTP, as agents send them and as they must not."""

import gzip
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.collector.batches import batch, device, sample, slurm, step
from tests.integration.collector.serving import Client, Front, front, serving

from flopwatch import wire
from flopwatch.encoding import encode
from flopwatch_collector.config import CollectorSettings


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Front]:
    with front(tmp_path, CollectorSettings(max_body_bytes=200_000)) as made:
        yield made


@pytest.fixture
def client(collector: Front) -> Iterator[Client]:
    with serving(collector.app) as asked:
        yield asked


def recent(node: str = "node1", **fields: object) -> wire.Batch:
    now = time.time()
    return batch(
        node, now, gpus=(device(f"GPU-{node}"),), gpu_samples=(sample(f"GPU-{node}", now),), **fields
    )


def test_a_gzipped_batch_is_durable_when_it_is_answered(collector: Front, client: Client) -> None:
    answer = client.push(recent(jobs=(slurm(),)))

    assert (answer.status, answer.json()) == (200, {"accepted": True, "duplicate": False})
    assert collector.store.latest_gpus()["gpu"].tolist() == [1]
    assert [job.scheduler_job_id for job in collector.directory.state().jobs.values()] == ["77"]


def test_a_batch_without_compression_is_taken_too(client: Client) -> None:
    answer = client.ask("POST", "/api/v1/ingest", encode(recent()), {"Content-Type": "application/json"})

    assert answer.status == 200


def test_a_replayed_batch_is_answered_as_duplicate_and_changes_nothing(
    collector: Front, client: Client
) -> None:
    sent = recent(jobs=(slurm(),), steps=(step(1, "slurm:77", time.time()),))

    first, again = client.push(sent), client.push(sent)

    assert (first.json()["duplicate"], again.json()["duplicate"]) == (False, True)
    assert collector.store.stats().rows["gpu"] == 1
    assert collector.store.stats().rows["step"] == 1


def test_a_replay_after_a_restart_is_a_duplicate(tmp_path: Path) -> None:
    sent = recent(jobs=(slurm(),))
    with front(tmp_path) as made, serving(made.app) as asked:
        asked.push(sent)
        before = made.directory.state()

    with front(tmp_path) as made, serving(made.app) as asked:
        answer = asked.push(sent)
        after = made.directory.state()
        rows = made.store.stats().rows["gpu"]

    assert answer.json() == {"accepted": True, "duplicate": True}
    assert (after.jobs, after.gpus, after.leases) == (before.jobs, before.gpus, before.leases)
    assert rows == 1


def test_the_same_batch_sent_many_times_at_once_is_taken_once(collector: Front, client: Client) -> None:
    body = recent()

    def push(_: int) -> bool:
        other = Client(port=client.port)
        duplicate: bool = other.push(body).json()["duplicate"]
        other.close()
        return duplicate

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(push, range(8)))

    assert sorted(answers) == [False] + [True] * 7
    assert collector.store.stats().rows["gpu"] == 1


def test_a_malformed_batch_is_named_field_by_field(client: Client) -> None:
    plain = json.loads(encode(recent()))
    plain["gpu_samples"][0]["sm_active_ratio"] = 7.0

    answer = client.push(json.dumps(plain).encode())

    assert answer.status == 422
    assert answer.json()["fields"] == [
        {"field": "gpu_samples[0].sm_active_ratio", "value": "7.0", "allowed": "0 to 1, or absent"}
    ]


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\x00\xff\xfe", b'{"node":"\\ud800"}'], ids=["empty", "cut", "binary", "surrogate"]
)
def test_what_is_no_batch_is_422(client: Client, raw: bytes) -> None:
    answer = client.push(raw)

    assert answer.status == 422
    assert answer.json()["error"] == "malformed"


def test_an_oversized_batch_is_413_and_the_collector_goes_on(client: Client) -> None:
    large = recent(findings=(wire.Finding(job="j", code="x", text="y" * 200_000),))

    answer = client.push(large)

    assert answer.status == 413
    assert client.push(recent()).status == 200


def test_a_zip_bomb_is_413(client: Client) -> None:
    bomb = gzip.compress(b" " * 100_000_000)

    answer = client.ask(
        "POST", "/api/v1/ingest", bomb, {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    )

    assert answer.status == 413


def test_an_unknown_encoding_or_content_is_415(client: Client) -> None:
    assert client.push(recent(), {"Content-Encoding": "br"}).status == 415
    assert client.push(recent(), {"Content-Type": "text/plain"}).status == 415


def test_a_batch_from_the_future_is_taken_shifted_and_labelled(collector: Front, client: Client) -> None:
    ahead = 8 * 3600.0
    now = time.time()
    future = batch("node1", now + ahead, gpus=(device("A"),), gpu_samples=(sample("A", now + ahead),))

    answer = client.push(future, {wire.SENT_AT_HEADER: repr(now + ahead)})

    assert answer.status == 200
    assert abs(float(collector.store.latest_gpus()["ts"][0]) - now) < 5.0
    assert abs(collector.directory.state().nodes[1].clock_offset_seconds + ahead) < 5.0


def test_a_time_of_sending_that_is_no_time_is_422(client: Client) -> None:
    for wrong in ("nan", "soon", "-1", "1e400"):
        answer = client.push(recent(), {wire.SENT_AT_HEADER: wrong})

        assert (answer.status, answer.json()["fields"][0]["field"]) == (422, wire.SENT_AT_HEADER)


def test_simulated_data_is_refused_by_a_real_collector(client: Client) -> None:
    answer = client.push(recent(simulated=True))

    assert answer.status == 422
    assert answer.json()["fields"][0] == {
        "field": "simulated",
        "value": "true",
        "allowed": "false: this collector is for real data",
    }


def test_a_node_that_sends_too_often_waits_and_others_do_not(tmp_path: Path) -> None:
    with (
        front(tmp_path, CollectorSettings(ingest_requests_per_second=0.2)) as made,
        serving(made.app) as asked,
    ):
        answers = [asked.push(batch("busy", time.time(), sequence=n)) for n in range(3)]
        other = asked.push(batch("calm", time.time()))

    assert [answer.status for answer in answers] == [200, 200, 429]
    assert int(answers[2].headers["retry-after"]) >= 1
    assert other.status == 200


def test_a_full_disk_is_503_with_a_time_to_wait(
    collector: Front, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flopwatch_collector.store import embedded

    usage = type("Usage", (), {"total": 100, "free": 1})
    monkeypatch.setattr(embedded.shutil, "disk_usage", lambda _: usage)
    collector.store._disk_checked = -10.0

    answer = client.push(recent())

    assert answer.status == 503
    assert answer.json()["error"] == "unavailable"
    assert int(answer.headers["retry-after"]) == 10


def test_a_refused_batch_is_taken_when_it_comes_again(collector: Front, client: Client) -> None:
    sent = recent(jobs=(slurm(),), steps=(step(1, "slurm:77", time.time()),))
    collector.store._disk_full = "full"
    collector.store._disk_checked = time.monotonic() + 60.0
    refused = client.push(sent)
    collector.store._disk_full = None

    answer = client.push(sent)

    assert refused.status == 503
    assert answer.json() == {"accepted": True, "duplicate": False}
    assert collector.store.stats().rows["step"] == 1


def test_errors_carry_no_traceback_and_no_server_name(client: Client) -> None:
    answer = client.get("/api/v1/nothing")

    assert (answer.status, answer.json()["error"]) == (404, "not_found")
    assert b"Traceback" not in answer.body


def test_metrics_count_what_was_accepted_replayed_and_refused(client: Client) -> None:
    sent = recent()
    for each in (sent, sent, b"{"):
        client.push(each)

    text = client.get("/metrics").body.decode()

    assert "flopwatch_collector_batches_accepted_total 1.0" in text
    assert "flopwatch_collector_batches_duplicate_total 1.0" in text
    assert 'flopwatch_collector_batches_refused_total{reason="malformed"} 1.0' in text
    assert "flopwatch_collector_rows_total 1.0" in text
    assert "flopwatch_collector_ingest_seconds_count 1.0" in text
    assert 'flopwatch_collector_periodic_age_seconds{task="accounting"} 1.5' in text
    assert "flopwatch_collector_on_duty 1.0" in text


def test_probes_say_alive_always_and_ready_only_with_data(collector: Front, client: Client) -> None:
    collector.is_ready = False
    waiting = client.get("/readyz")
    collector.is_ready = True

    assert client.get("/healthz").status == 200
    assert waiting.status == 503
    assert client.get("/readyz").status == 200
