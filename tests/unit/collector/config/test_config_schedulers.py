"""Settings of schedulers, windows and the inventory: what is wrong is named, and all are documented."""

import datetime
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from flopwatch.settings import SettingError
from flopwatch_collector import config
from flopwatch_collector.config_schedulers import (
    InventorySettings,
    SchedulerSettings,
    WindowSettings,
    parsed_time,
)

DOCUMENT = Path(__file__).parents[4] / "docs" / "settings.md"


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"scheduler": {}}, "setting scheduler is {}; allowed: an array of tables, [[scheduler]]"),
        (
            {"scheduler": [{"kind": "pbs"}]},
            "setting scheduler.kind is 'pbs'; allowed: one of slurm, kubernetes",
        ),
        (
            {"scheduler": [{"interval_seconds": 1}]},
            "setting scheduler.interval_seconds is 1.0; allowed: 5 to 3600",
        ),
        (
            {"scheduler": [{"url": "ftp://user:secret@slurm/"}]},
            "setting scheduler.url is 'ftp://slurm/'; allowed: http:// or https:// and a host",
        ),
        (
            {"scheduler": [{"api_version": "42"}]},
            "setting scheduler.api_version is '42'; allowed: a version such as v0.0.42",
        ),
        (
            {"scheduler": [{}, {"name": "second"}]},
            "setting scheduler.cluster is 'default'; allowed: one scheduler of kind slurm a cluster",
        ),
        (
            {"scheduler": [{"kind": "kubernetes", "commands": "bin"}]},
            "setting scheduler.commands is 'bin'; allowed: unset with kind = \"kubernetes\"",
        ),
        (
            {"maintenance": [{}]},
            "setting maintenance.nodes is []; allowed: names of nodes, * matches any text",
        ),
        ({"spare": [{}]}, "setting spare.nodes is []; allowed: names of nodes, * matches any text"),
        (
            {"maintenance": [{"nodes": ["a"], "every": "sunday 2:00", "hours": 1}]},
            (
                "setting maintenance.every is 'sunday 2:00'; allowed: a day and a time: \"sun 02:00\" (mon … sun), "
                'or "daily 02:00"'
            ),
        ),
        (
            {"maintenance": [{"nodes": ["a"], "every": "daily 02:00"}]},
            "setting maintenance.hours is None; allowed: with every: above 0, at most 24",
        ),
        (
            {"spare": [{"nodes": ["a"], "begin": "tomorrow"}]},
            "setting spare.begin is 'tomorrow'; allowed: an ISO time such as",
        ),
        (
            {"inventory": [{"nodes": "a", "gpus": 0}]},
            "setting inventory.gpus is 0; allowed: GPUs of each node",
        ),
        (
            {"inventory": [{"node": "a"}]},
            "setting inventory.node is 'a'; allowed: one of cluster, gpus, nodes",
        ),
    ],
)
def test_what_is_wrong_is_named(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        config.read(tables, {})

    assert str(caught.value).startswith(message)


def test_times_of_toml_are_understood() -> None:
    begin = datetime.datetime(2026, 12, 1, 8, tzinfo=datetime.timezone.utc)

    settings = config.read({"maintenance": [{"nodes": ["gpu*"], "begin": begin}]}, {})

    (window,) = settings.site.maintenance
    assert parsed_time("begin", window.begin or "", datetime.timezone.utc) == begin.timestamp()


@pytest.mark.parametrize(
    ("kind", "table"),
    [(SchedulerSettings, "scheduler"), (WindowSettings, "maintenance"), (InventorySettings, "inventory")],
)
def test_every_setting_is_documented(kind: Any, table: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")

    assert [each.name for each in fields(kind) if f"| `{table}.{each.name}` |" not in text] == []
