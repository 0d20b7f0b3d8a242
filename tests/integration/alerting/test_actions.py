"""Actions with a real command, a real receiver and the real control database."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flopwatch.query import AlertRow
from flopwatch.settings import SettingError
from flopwatch_collector.alerting.actions import Actions
from flopwatch_collector.config_actions import ActionSettings, read_actions
from flopwatch_collector.store.control_sqlite import SqliteControl

NOW = 1e6
ALERT = AlertRow(
    fingerprint="f1", rule="GpuLost", severity="critical", state="firing", labels={"cluster": "a", "node": "n7"},
    values={"gpu": "GPU-1"}, active_since_seconds=NOW - 100, fired_seconds=NOW - 60, resolved_seconds=None,
    resolved_reason=None, stale=False, summary="n7: GPU GPU-1 is lost",
)  # fmt: skip


class Cluster:
    """Active alerts that a test sets, and actions on them."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.written = folder / "drained"
        self.audit = folder / "audit.jsonl"
        script = f"import os,sys; open({str(self.written)!r},'a').write(os.environ['FLOPWATCH_NODE']+chr(10))"
        given: dict[str, Any] = {"command": (sys.executable, "-c", script), "dry_run": False, **changes}
        self.settings = ActionSettings(name="drain", rule=("GpuLost",), audit_file=self.audit, **given)
        self.alerts: tuple[AlertRow, ...] = (ALERT,)
        self.control = SqliteControl(folder / "control.sqlite")
        self.restart()

    def restart(self) -> None:
        self.actions = Actions(settings=(self.settings,), active=lambda: self.alerts, control=self.control)

    def rounds(self, count: int, start: float = NOW) -> list[str]:
        for index in range(count):
            self.actions.consider(start + 15.0 * index)
        return self.written.read_text().split() if self.written.exists() else []

    def lines(self) -> list[dict[str, Any]]:
        return (
            [json.loads(line) for line in self.audit.read_text().splitlines()] if self.audit.exists() else []
        )


def test_an_alert_that_is_confirmed_three_times_is_acted_on_once(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)

    assert cluster.rounds(2) == []
    assert cluster.rounds(1) == ["n7"]
    assert cluster.rounds(10) == ["n7"]
    assert [(line["subject"], line["outcome"]) for line in cluster.lines()] == [("n7", "exit 0")]


def test_a_restart_does_nothing_again(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.rounds(3)

    cluster.restart()

    assert cluster.rounds(6) == ["n7"]


def test_dry_run_is_the_default_and_only_writes_its_audit_line(tmp_path: Path) -> None:
    cluster = Cluster(
        tmp_path, dry_run=ActionSettings(name="x", rule=("GpuLost",), command=("true",)).dry_run
    )

    assert cluster.rounds(5) == []
    assert [line["dry_run"] for line in cluster.lines()] == [True]


def test_what_does_not_go_on_firing_is_not_confirmed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.rounds(2)
    cluster.alerts = (replace(ALERT, stale=True),)
    cluster.rounds(1)
    cluster.alerts = (ALERT,)

    assert cluster.rounds(2) == []


def test_no_more_than_so_many_nodes_a_day(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, most_per_day=2)
    cluster.alerts = tuple(
        replace(ALERT, fingerprint=f"f{n}", labels={"cluster": "a", "node": f"n{n}"}) for n in range(5)
    )

    assert sorted(cluster.rounds(5)) == ["n0", "n1"]


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, command=(str(tmp_path / "missing"),))

    cluster.rounds(3)

    assert cluster.lines()[0]["outcome"].startswith("failed: ")


def test_a_webhook_gets_the_alert(tmp_path: Path, receiver: Any) -> None:
    cluster = Cluster(tmp_path, command=(), url=receiver.url)

    cluster.rounds(3)

    (one,) = receiver.wait_for(1)
    assert (one.body["action"], one.body["node"], one.body["rule"]) == ("drain", "n7", "GpuLost")
    assert cluster.lines()[0]["outcome"] == "status 200"


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"rule": ["GpuLost"], "command": ["true"]}, "action.name"),
        ({"name": "x", "command": ["true"]}, "action.x.rule"),
        ({"name": "x", "rule": ["Nothing"], "command": ["true"]}, "action.x.rule"),
        ({"name": "x", "rule": ["GpuLost"]}, "action.x.command"),
        (
            {"name": "x", "rule": ["GpuLost"], "command": ["true"], "confirmations": 0},
            "action.x.confirmations",
        ),
    ],
)
def test_wrong_settings_are_named(entry: dict[str, Any], name: str) -> None:
    with pytest.raises(SettingError, match=name):
        read_actions({"action": [entry]})
