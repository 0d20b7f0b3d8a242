"""Each kind of channel against a receiver on loopback that checks what its publisher says it checks."""

import base64
import email
import hashlib
import hmac
import json
import logging
import socketserver
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import apprise.plugins.pagerduty
import pytest

from flopwatch import cli
from flopwatch.settings import SettingError
from flopwatch_collector.alerting.delivery.channels import channels
from flopwatch_collector.alerting.delivery.message import webhook_body
from flopwatch_collector.alerting.delivery.outbox import Channel
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.alerting.notices import Notice, NoticeAlert
from flopwatch_collector.config_alerts import read_notify


def alert(number: int = 1, status: str = "firing", **labels: str) -> NoticeAlert:
    return NoticeAlert(
        status=status,  # type: ignore[arg-type]
        labels={"alertname": "MfuLow", "severity": "warning", "cluster": "a", "job_id": f"j{number}", **labels},
        annotations={
            "summary": f"llama-{number}: MFU 31.0 % below target 45.0 %", "job": f"llama-{number}", "mfu": "0.31",
            "target": "0.45",
        },
        starts_at="2026-11-30T09:12:40.000Z",
        ends_at="0001-01-01T00:00:00Z",
        generator_url="http://collector:8095/ui/jobs/j1",
        fingerprint=f"{number:064x}",
    )  # fmt: skip


def body(*alerts: NoticeAlert) -> dict[str, Any]:
    return webhook_body([Notice(status=alerts[0].status, group_labels={}, alerts=alerts)], "w", "http://c")


def channel(**settings: Any) -> Channel:
    (made,) = channels(read_notify({"notify": [{"name": "w", **settings}]}))
    return made


@dataclass
class Answering:
    """Keeps requests, and answers each with ``answer``."""

    answer: dict[str, Any] = field(default_factory=dict)
    got: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def answering() -> Iterator[Answering]:
    here = Answering()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            here.got.append((self.path, document))
            words = json.dumps(here.answer).encode()
            self.send_response(202 if "enqueue" in self.path else 200)
            self.send_header("Content-Length", str(len(words)))
            self.end_headers()
            self.wfile.write(words)

        def log_message(self, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield here
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("kind", ["feishu", "lark"])
def test_a_feishu_bot_gets_text_with_the_published_signature(answering: Answering, kind: str) -> None:
    answering.answer = {"code": 0, "msg": "success"}

    channel(
        kind=kind, url=answering.url + "/open-apis/bot/v2/hook/t0ken", secret="s3cret", language="zh"
    ).send(body(alert()), "d1")

    ((path, document),) = answering.got
    assert path == "/open-apis/bot/v2/hook/t0ken"
    key = f"{document['timestamp']}\ns3cret".encode()
    expected = base64.b64encode(hmac.new(key, digestmod=hashlib.sha256).digest()).decode()
    assert document["sign"] == expected
    assert document["msg_type"] == "text"
    assert document["content"]["text"] == (
        "【告警】警告 MFU 低于目标\n"
        "MFU 低于目标(告警): 任务 llama-1,MFU 31.0 %,目标 45.0 %,集群 a,任务编号 j1\n"
        "时间: 2026-11-30 09:12 UTC\n"
        "http://collector:8095/ui/jobs/j1"
    )


def test_a_dingtalk_bot_gets_its_signature_in_the_address(answering: Answering) -> None:
    answering.answer = {"errcode": 0, "errmsg": "ok"}

    channel(kind="dingtalk", url=answering.url + "/robot/send?access_token=t0ken", secret="SEC1").send(
        body(alert()), "d1"
    )

    ((path, document),) = answering.got
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
    text = f"{asked['timestamp']}\nSEC1".encode()
    assert asked["sign"] == base64.b64encode(hmac.new(b"SEC1", text, hashlib.sha256).digest()).decode()
    assert asked["access_token"] == "t0ken"
    assert document["text"]["content"].splitlines()[0] == "[FIRING] warning MfuLow on a"


@pytest.mark.parametrize("answer", [{"code": 19021, "msg": "sign match fail"}, {"errcode": 310000}, {}])
def test_a_bot_that_refuses_under_status_200_has_not_taken_the_message(
    answering: Answering, answer: dict[str, Any]
) -> None:
    answering.answer = answer

    with pytest.raises(DeliveryFailed, match="code"):
        channel(kind="feishu", url=answering.url + "/hook/t0ken").send(body(alert()), "d1")


def test_pagerduty_gets_each_alert_under_its_fingerprint_and_its_end_resolves_it(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering.answer = {"status": "success", "message": "Event processed", "dedup_key": "x"}
    table = dict.fromkeys(apprise.plugins.pagerduty.PAGERDUTY_API_LOOKUP, answering.url + "/v2/enqueue")
    monkeypatch.setattr(apprise.plugins.pagerduty, "PAGERDUTY_API_LOOKUP", table)
    made = channel(kind="apprise", url="pagerduty://A1B2C3D4E5F6A7B8C9D0E1F2A3B4C5D6@APIKEY00APIKEY00APIK")
    monkeypatch.setattr(type(made._service), "request_rate_per_sec", 0)  # type: ignore[attr-defined]

    made.send(body(alert(1), alert(2)), "d1")
    made.send(body(alert(1, "resolved")), "d2")

    events = [(document["event_action"], document["dedup_key"]) for _, document in answering.got]
    assert events == [("trigger", f"{1:064x}"), ("trigger", f"{2:064x}"), ("resolve", f"{1:064x}")]
    assert made.privacy_form == "pagerduty://…"


def test_other_services_of_apprise_get_one_text(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = answering.url.removeprefix("http://")
    made = channel(kind="apprise", url=f"json://user:pa55@{host}/hooks/t0ken")
    monkeypatch.setattr(type(made._service), "request_rate_per_sec", 0)  # type: ignore[attr-defined]

    made.send(body(*(alert(number) for number in range(12))), "d1")

    ((path, document),) = answering.got
    assert path == "/hooks/t0ken"
    assert document["title"] == "[FIRING] warning MfuLow (x12) on a"
    assert document["message"].endswith("and 2 more")
    assert document["type"] == "warning"
    assert (made.privacy_form, made.loopback) == (f"json://{host}/…", True)


class Smtp(socketserver.ThreadingTCPServer):
    """The commands of RFC 5321 that a mail needs; ``refuse`` answers to RCPT."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], Any]] = []
        self.refuse: str | None = None
        super().__init__(("127.0.0.1", 0), SmtpHandler)


class SmtpHandler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server: Any = self.server
        receivers: list[str] = []
        self._say("220 here")
        while line := self.rfile.readline():
            word = line.decode().split(" ", 1)[0].strip().upper()
            if word == "RCPT":
                receivers.append(line.decode().partition("<")[2].partition(">")[0])
                self._say(server.refuse or "250 ok")
            elif word == "DATA":
                self._say("354 go on")
                raw = b""
                while not raw.endswith(b"\r\n.\r\n"):
                    raw += self.rfile.readline()
                server.mails.append(
                    (list(receivers), email.message_from_bytes(raw[:-5], policy=policy.default))
                )
                self._say("250 taken")
            elif word == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 ok")

    def _say(self, words: str) -> None:
        self.wfile.write(words.encode() + b"\r\n")


@pytest.fixture
def smtp() -> Iterator[Smtp]:
    server = Smtp()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def mail(smtp: Smtp, **changes: Any) -> Channel:
    return channel(
        kind="smtp", host="127.0.0.1", port=smtp.server_address[1], tls="none", sender="flopwatch@example.org",
        to=["ops@example.org", "night@example.org"], **changes,
    )  # fmt: skip


def test_a_mail_goes_to_all_receivers_with_the_same_id_on_each_attempt(smtp: Smtp) -> None:
    made = mail(smtp, language="zh")
    made.send(body(alert(simulated="true")), "d1")
    made.send(body(alert(simulated="true")), "d1")

    (receivers, first), (_, second) = smtp.mails
    assert receivers == ["ops@example.org", "night@example.org"]
    assert first["Subject"] == "【模拟数据】【告警】警告 MFU 低于目标"
    assert first["Message-ID"] == second["Message-ID"] == "<d1@flopwatch.invalid>"
    assert "任务 llama-1" in first.get_content()


def test_a_mail_to_a_jobs_owner_goes_to_nobody_else(smtp: Smtp) -> None:
    mail(smtp, owners=True).send({**body(alert()), "recipient": "ann@example.org"}, "d1")

    assert smtp.mails[0][0] == ["ann@example.org"]


@pytest.mark.parametrize(("answer", "permanent"), [("450 later", False), ("550 nobody", True)])
def test_a_refused_mail_is_tried_again_only_where_the_server_says_later(
    smtp: Smtp, answer: str, permanent: bool
) -> None:
    smtp.refuse = answer

    with pytest.raises(DeliveryFailed, match=f"answered {answer[:3]}") as caught:
        mail(smtp).send(body(alert()), "d1")

    assert caught.value.permanent is permanent


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"kind": "apprise", "url": "nosuch://s3cret"}, "notify.w.url"),
        ({"kind": "feishu", "url": "ftp://h/s3cret"}, "notify.w.url"),
        (
            {"kind": "feishu", "url": "https://h/x", "secret": "s3cret", "secret_file": "/x"},
            "notify.w.secret",
        ),
        ({"kind": "smtp", "sender": "a@b", "to": ["c@d"]}, "notify.w.host"),
        ({"kind": "smtp", "host": "h", "sender": "a@b", "to": ["c@d, e@f"]}, "notify.w.to"),
        ({"kind": "smtp", "host": "h", "sender": "a@b"}, "notify.w.to"),
        ({"kind": "pager"}, "notify.kind"),
        ({"messages_per_minute": 0}, "notify.w.messages_per_minute"),
    ],
)
def test_a_wrong_channel_is_named_without_its_secret(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(SettingError) as caught:
        channel(**settings)

    assert caught.value.name == name
    assert "s3cret" not in str(caught.value)


PLANTED = """
[[notify]]
kind = "feishu"
name = "group"
url = "{url}/hook/PLANTED1"
secret = "PLANTED2"

[[notify]]
kind = "apprise"
name = "json"
url = "json://user:PLANTED3@{host}/PLANTED4?key=PLANTED5"

[[notify]]
kind = "apprise"
name = "slack"
url = "slack://T1JJ3T3L2/PLANTED6A/TIiajkdnlazkcOXrIdevi7FQ/#general"

[[notify]]
name = "hook"
url = "{url}/PLANTED7"
token_file = "{folder}/token"

[[notify]]
kind = "alertmanager"
name = "am"
url = "http://ops:PLANTED9@{host}"

[alerts]
heartbeat_url = "{url}/PLANTED10"
"""


def test_no_secret_is_printed_or_logged(
    answering: Answering,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "token").write_text("PLANTED8")
    path = tmp_path / "flopwatch.toml"
    host = answering.url.removeprefix("http://")
    path.write_text(PLANTED.format(url=answering.url, host=host, folder=tmp_path))

    with caplog.at_level(logging.DEBUG):
        for name in ("group", "json", "hook", "am", "heartbeat"):
            cli.main(["alerts", "test", "--config", str(path), "--channel", name])
        cli.main(["alerts", "check", "--config", str(path)])
        cli.main(["alerts", "test", "--config", str(path), "--channel", "nosuch"])

    said = capsys.readouterr()
    assert "group (http://127.0.0.1" in said.out
    assert "channels: group, json, slack, hook, am" in said.out
    assert "--channel is 'nosuch'; allowed: group, json, slack, hook, am, heartbeat" in said.err
    assert "PLANTED" not in said.out + said.err + caplog.text
