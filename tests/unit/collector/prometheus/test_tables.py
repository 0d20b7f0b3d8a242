"""What is exported, what is documented, what is set: the same."""

import re
from pathlib import Path
from typing import Any

import pytest

from flopwatch import fleet_metrics, metrics
from flopwatch.settings import SettingError
from flopwatch_collector import config
from flopwatch_collector.prometheus.dialect import NAMES, SIGNALS
from flopwatch_collector.prometheus.endpoint import Endpoint, Identity

ROOT = Path(__file__).parents[4]
TEXT = (ROOT / "docs" / "prometheus.md").read_text(encoding="utf-8")


def test_every_metric_is_documented_and_named_once() -> None:
    names = [metric.name for metric in (*fleet_metrics.ALL, *metrics.ALL)]

    assert [metric.name for metric in fleet_metrics.ALL if f"`{metric.name}`" not in TEXT] == []
    assert len(names) == len(set(names))


def test_names_are_in_base_units_and_counters_end_in_total() -> None:
    for metric in fleet_metrics.ALL:
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert not re.search(r"percent|milli|_ms$|_gb|_hours|_minutes", metric.name)
        assert metric.help.endswith(".")


def test_who_a_job_is_stands_on_one_series_only() -> None:
    who = {"name", "user", "account", "kind", "scheduler", "scheduler_job_id", "gpu_model"}

    assert [m.name for m in fleet_metrics.ALL if who & set(m.labels)] == ["flopwatch_job_info"]


def test_every_alert_of_the_rules_is_documented() -> None:
    rules = "\n".join(path.read_text() for path in (ROOT / "deploy" / "prometheus" / "rules").glob("*.yml"))
    alerts = set(re.findall(r"- alert: (\w+)", rules))

    assert len(alerts) == 29
    assert {name for name in alerts if f"`{name}`" not in TEXT} == set()


def test_whatever_may_be_read_is_looked_for_first() -> None:
    assert {name for signal in SIGNALS for name in (*signal.dcgm, *signal.fallback)} <= set(NAMES)


def test_receivers_are_read_from_their_tables() -> None:
    tables = {
        "remote_write": [
            {"name": "a", "url": "http://a/api/v1/write"},
            {"name": "b", "url_file": "/run/b", "interval_seconds": 30, "labels": {"site": "x"}},
        ]
    }
    first, second = config.read(tables, {}).remote_write

    assert (first.name, first.interval_seconds, first.labels) == ("a", 60.0, {})
    assert (second.url, str(second.url_file), second.labels) == (None, "/run/b", {"site": "x"})


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"url": "http://a/w"}, r"remote_write is .*allowed: an array of tables"),
        ([{"url": "http://a/w", "intervall": 3}], r"remote_write\.intervall .*allowed: one of .*interval_seconds"),
    ],
)  # fmt: skip
def test_wrong_tables_are_named(table: object, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        config.read({"remote_write": table}, {})


@pytest.mark.parametrize(
    "headers", [{"X-Scope-OrgID": "a\nb"}, {"X-Scope-OrgID": "ü"}, {"X-Scope-OrgID": 3}, {"": "a"}]
)
def test_a_header_that_cannot_be_sent_is_named_and_not_shown(headers: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=r"setting remote_write\.a\.headers\..* is '\(not shown\)'"):
        Endpoint(setting="remote_write.a.", url="http://a/w", identity=Identity(headers=headers))


def test_every_setting_of_a_receiver_and_of_the_dashboard_s_prometheus_is_documented() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    fields = config.RemoteWriteSettings.__dataclass_fields__

    assert [name for name in fields if f"| `remote_write.{name}` |" not in text] == []
