"""Our rules in a real Prometheus, their alerts in a real Alertmanager, its messages at a receiver."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.fixtures.exporter import Exporter
from tests.integration.prometheus import exporters, servers
from tests.integration.prometheus.alertmanagers import alertmanager_for
from tests.integration.prometheus.exporters import line
from tests.integration.prometheus.servers import eventually

RULES = Path(__file__).parents[3] / "deploy" / "prometheus" / "rules"


@dataclass
class Hook:
    """Keeps the messages that come."""

    messages: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def of(self, alert: str, status: str) -> list[dict[str, Any]]:
        """Messages about an alert."""
        return [
            m for m in self.messages if m["groupLabels"].get("alertname") == alert and m["status"] == status
        ]


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def alertmanager(tmp_path: Path, hook: Hook) -> Iterator[str]:
    """The address of a running Alertmanager."""
    with alertmanager_for(f"http://127.0.0.1:{hook.server.server_address[1]}/", tmp_path) as address:
        yield address


def test_alerts_of_the_rules_arrive_in_groups_and_resolve(
    tmp_path: Path, hook: Hook, alertmanager: str
) -> None:
    slow = {"17", "18"}
    exporter = Exporter(
        lambda: "".join(
            line(
                "flopwatch_alert_active", 1, alertname="Straggler", alertstate="firing", severity="warning",
                cluster="a", job_id=job,
            )
            + "\n"
            for job in sorted(slow)
        )
        + exporters.old_node()
    )  # fmt: skip
    more = {
        "rule_files": [str(RULES / "*.yml")],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
    }
    with servers.running("prometheus", tmp_path / "server", [exporter.target], more=more):
        (first, *_) = eventually(
            lambda: [m for m in hook.of("Straggler", "firing") if len(m["alerts"]) == 2], 60
        )
        slow.clear()
        (last, *_) = eventually(lambda: hook.of("Straggler", "resolved"), 60)
        dead_man = eventually(lambda: hook.of("DeadMan", "firing"))
    exporter.stop()

    assert first["commonLabels"] == {"alertname": "Straggler", "cluster": "a", "severity": "warning"}
    assert {alert["labels"]["job_id"] for alert in first["alerts"]} == {"17", "18"}
    assert {alert["annotations"]["summary"] for alert in first["alerts"]} == {
        "Job 17: one of its nodes is slower than its peers",
        "Job 18: one of its nodes is slower than its peers",
    }
    assert {alert["labels"]["job_id"] for alert in last["alerts"]} == {"17", "18"}
    assert dead_man
