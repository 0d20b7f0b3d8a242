"""Silences, acknowledgements and comments: through the API and the command, kept in the control state."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI

from flopwatch import cli
from flopwatch_collector.alerting.desk import AlertDesk
from flopwatch_collector.api import alerts, errors
from flopwatch_collector.api.access import Access, needs
from flopwatch_collector.api.tokens import Tokens
from flopwatch_collector.store.control_sqlite import SqliteControl

FINGERPRINT = "ab" * 32


class Collector:
    """The routes over a real control state, served on loopback."""

    def __init__(self, folder: Path) -> None:
        self.control = SqliteControl(folder / "control.sqlite")
        self.desk = AlertDesk(self.control)
        self.tokens = Tokens(self.control)
        access = Access(self.tokens)
        app = FastAPI()
        errors.install(app)
        app.include_router(
            alerts.router(
                alerts.AlertParts(
                    desk=self.desk,
                    read=needs(access, "read"),
                    operate=needs(access, "operate"),
                    knows=lambda key: key == FINGERPRINT,
                )
            )
        )

        @app.get("/api/v1/query/alerts")
        async def rows() -> dict[str, Any]:
            return {"active": [{"fingerprint": FINGERPRINT}], "history": []}

        self.server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.control.close()


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    made = Collector(tmp_path)
    yield made
    made.close()


def run(
    collector: Collector, capsys: pytest.CaptureFixture[str], *words: str, status: int = 0
) -> dict[str, Any]:
    assert cli.main(["alerts", *words, "--url", collector.url, "--json"]) == status
    out = capsys.readouterr()
    return dict(json.loads(out.out)) if status == 0 else {"error": out.err}


def test_a_silence_is_made_listed_and_ended(collector: Collector, capsys: pytest.CaptureFixture[str]) -> None:
    before = time.time()
    made = run(
        collector, capsys, "silence", "alertname=MfuLow", "job=~llama.*", "--for", "2h", "--comment", "tuning",
        "--author", "ann",
    )  # fmt: skip
    assert made["matchers"] == ["alertname=MfuLow", "job=~llama.*"]
    assert made["end_seconds"] - made["start_seconds"] == pytest.approx(7_200.0)
    assert before <= made["start_seconds"] <= time.time()
    assert made["created_by"] == "ann"

    assert [one["silence_id"] for one in run(collector, capsys, "silences")["silences"]] == [
        made["silence_id"]
    ]
    ended = run(collector, capsys, "unsilence", made["silence_id"])
    assert ended["end_seconds"] <= time.time()
    assert run(collector, capsys, "silences")["silences"] == []
    assert len(run(collector, capsys, "silences", "--expired")["silences"]) == 1
    assert [entry.action for entry in collector.desk.audit()] == ["unsilence", "silence"]


def test_an_alert_is_taken_and_commented_by_the_beginning_of_its_fingerprint(
    collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = run(collector, capsys, "ack", "ababab", "on it", "--author", "bo")
    said = run(collector, capsys, "comment", FINGERPRINT, "数据慢", "--author", "bo")

    assert (taken["fingerprint"], taken["by"], said["comment"]) == (FINGERPRINT, "bo", "数据慢")
    words = AlertDesk(collector.control).words()
    assert words.acknowledgements[FINGERPRINT].comment == "on it"
    assert [one.text for one in words.comments.values()] == ["数据慢"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("silence", "nonsense", "--for", "1h", "--comment", "x"), 2, "matcher 'nonsense'"),
        (("silence", "a=b", "--for", "soon", "--comment", "x"), 2, "--for is 'soon'"),
        (("silence", "a=~.*", "--for", "1h", "--comment", "x"), 1, "at least one that does not"),
        (("silence", "a=b", "--for", "2000d", "--comment", "x"), 1, "end_seconds"),
        (("unsilence", "0123456789abcdef"), 1, "there is no silence"),
        (("ack", "cdcdcd", "x"), 1, "0 alerts"),
        (("ack", "cd", "x"), 2, "6 or more"),
    ],
)
def test_what_cannot_be_done_is_said(
    collector: Collector, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int, said: str
) -> None:
    assert said in run(collector, capsys, *words, status=status)["error"]


def test_only_operators_change_and_the_tokens_name_is_kept(
    collector: Collector, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    secrets = {role: collector.tokens.create(role, f"the {role}")[1] for role in ("viewer", "operator")}  # type: ignore[arg-type]
    for role, secret in secrets.items():
        (tmp_path / role).write_text(secret)
    asked = ("silence", "node=n1", "--for", "1h", "--comment", "x", "--token-file")

    refused = run(collector, capsys, *asked, str(tmp_path / "viewer"), status=1)
    made = run(collector, capsys, *asked, str(tmp_path / "operator"))

    assert "role viewer" in refused["error"]
    assert made["created_by"] == "the operator"
    assert run(collector, capsys, "silences", "--token-file", str(tmp_path / "viewer"))["silences"]
