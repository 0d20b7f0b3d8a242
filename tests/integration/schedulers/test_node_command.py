"""``flopwatch node``: declarations by command, in the ledger, with who made them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.collector.serving import Client, serving
from tests.integration.schedulers.site import T0, Site, reports, site, uuid

from flopwatch import node_command
from flopwatch.cli import main


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Site]:
    tables = {
        "inventory": [{"nodes": "n[1-2]", "cluster": "c1", "gpus": 8}],
        "spare": [{"nodes": ["n1"], "gpus": ["7"], "begin": "2027-01-15T08:10:00Z", "reason": "hot spare"}],
    }
    with site(tmp_path, tables) as made:
        made.push(reports("n1", T0 - 10.0, T0, ()))
        made.read(T0)
        yield made


@pytest.fixture
def client(cluster: Site) -> Iterator[Client]:
    cluster.running.start = lambda: None  # type: ignore[method-assign]  # the test drives the work itself
    with serving(cluster.running.app) as asked:
        yield asked


@pytest.fixture
def run(client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("FLOPWATCH_COLLECTOR_URL", f"http://127.0.0.1:{client.port}")
    monkeypatch.delenv("FLOPWATCH_TOKEN", raising=False)

    def command(*words: str) -> tuple[int, str, str]:
        status = main(["node", *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return command


def test_declared_times_are_in_the_ledger_to_the_millisecond(cluster: Site, client: Client, run: Any) -> None:
    run("maint", "n1", "--from", str(T0 + 300.0), "--until", str(T0 + 600.0), "--reason", "firmware")
    run("health", "n1", "--gpu", "3", "--from", str(T0), "--reason", "XID 79")
    cluster.push(reports("n1", T0, T0 + 900.0, ()))
    cluster.read(T0 + 900.0)
    run("health", "n1", "ok", "--gpu", uuid("n1", 3))
    cluster.push(reports("n1", T0 + 900.0, T0 + 2400.0, ()))
    cluster.read(T0 + 2400.0)
    cluster.settle(T0 + 2400.0)

    spent = cluster.ledger(T0, T0 + 1200.0)

    # n1: GPU 3 faulty 0 to 900 but for the maintenance 300 to 600 of all eight; GPU 7 spare from 600; the rest free.
    # n2 has never reported.
    assert spent == {
        "MAINT": 8 * 300_000,
        "FAULT": 600_000,
        "SPARE": 600_000,
        "FREE:unspecified": 8 * 1_200_000 - 8 * 300_000 - 600_000 - 600_000,
        "UNKNOWN": 8 * 1_200_000,
    }


def test_a_window_in_the_past_is_told_at_once(cluster: Site, client: Client, run: Any) -> None:
    cluster.push(reports("n1", T0, T0 + 2400.0, ()))
    cluster.clock[0] = T0 + 2400.0

    status, _, _ = run("drain", "n1", "--from", str(T0), "--until", str(T0 + 300.0))
    cluster.settle(T0 + 2400.0)

    assert status == 0
    assert cluster.ledger(T0, T0 + 300.0)["FAULT"] == 8 * 300_000


def test_who_declared_and_who_ended_is_kept(cluster: Site, client: Client, run: Any, tmp_path: Path) -> None:
    for name in ("alice", "bob"):
        (tmp_path / name).write_text(cluster.running.tokens.create("operator", name)[1])

    run("drain", "n1", "--from", str(T0), "--reason", "NIC", "--token-file", str(tmp_path / "alice"))
    cluster.clock[0] = T0 + 60.0
    _, out, _ = run(
        "undrain", "n1", "--from", str(T0 + 50.0), "--json", "--token-file", str(tmp_path / "bob")
    )

    (window,) = json.loads(out)["windows"]
    assert (window["declared_by"], window["ended_by"], window["reason"]) == ("alice", "bob", "NIC")
    assert (window["from_seconds"], window["until_seconds"]) == (T0, T0 + 50.0)


def test_the_list_shows_what_holds_and_who_never_reported(run: Any) -> None:
    run("drain", "n1", "--from", str(T0), "--reason", "NIC")

    _, out, _ = run("list")

    first, second = out.splitlines()
    assert first.startswith("n1  c1    8 GPUs")
    assert "drain since" in first
    assert first.endswith("(operator): NIC")
    assert second == "n2  c1    8 GPUs  never reported  in service"


WRONG = {
    ("drain", "n9"): "there is no node 'n9'",
    ("drain", "n1", "--gpu", "12"): "gpu is '12'; allowed: one GPU of n1: 0000:10:00.0",
    ("undrain", "n1"): "no operator declared drain of n1",
    ("maint", "n1", "--from", "1800000000", "--until", "1700000000"): "later than from_seconds",
}


def test_what_cannot_be_done_is_said(run: Any) -> None:
    said = {words: run(*words) for words in WRONG}

    assert {status for status, _, _ in said.values()} == {1}
    assert [words for words, (_, _, err) in said.items() if WRONG[words] not in err] == []


def test_a_time_that_is_none_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["node", "maint", "n1", "--from", "tomorrow"])

    assert stopped.value.code == 2
    assert node_command.TIME_ALLOWED in capsys.readouterr().err


def test_times_are_understood_as_people_write_them() -> None:
    now = 1_800_000_000.0

    assert node_command.parsed("now", now) == now
    assert node_command.parsed("+2h", now) == now + 7200.0
    assert node_command.parsed("+1.5d", now) == now + 129_600.0
    assert node_command.parsed("2027-01-15T08:00:00Z", 0.0) == now
    assert node_command.parsed("1800000000", 0.0) == now
