"""``flopwatch alerts check``: the settings, and what the rules would have said of a collector's past."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.integration.collector.serving import serving
from tests.integration.views.site import Site

from flopwatch import cli
from flopwatch.query import Range
from flopwatch_collector.alerting.rehearsal import rehearse, rehearsing
from flopwatch_collector.api import alerts, errors, query
from flopwatch_collector.api.access import Access, needs
from flopwatch_collector.config_alerts import read_alerts

SETTINGS = """
[targets.job]
"llama-8b" = 0.35

[alerts.rules.MfuLow]
for = "10m"

[[notify]]
name = "oncall"
url = "http://127.0.0.1:9/x"

[[route]]
severity = "critical"
channels = ["oncall"]
"""


def story(folder: Path, begin: float) -> Site:
    """Half an hour at 40 %, an hour at 20 % of a target of 35 %, an hour at 45 %; another node is slowed by heat."""
    site = Site(folder)
    hot = {
        "kernel_active_ratio": 0.9, "process_count": 1, "ecc_uncorrected": lambda at: 2 if at > begin + 3_000 else 1,
        "clock_event_reasons": lambda at: 0x44 if begin + 1_200 < at <= begin + 3_600 else 0x4,
    }  # fmt: skip
    for start in (begin, begin + 2_700.0):
        site.push("n9", start, 2_700.0, samples=hot)
    site.now = begin
    for mfu, times in ((0.40, 3), (0.20, 6), (0.45, 6)):
        for _ in range(times):
            site.train(600.0, mfu=mfu, start_time_seconds=begin, submit_time_seconds=begin)
    site.settle()
    return site


def throttled_once_on_each_gpu(episodes: list[dict[str, Any]], begin: float) -> None:
    throttled = [one for one in episodes if one["rule"] == "HwThrottle"]
    assert len(throttled) == 8
    for one in throttled:
        assert one["labels"]["node"] == "n9"
        # From 1,200 s on for 2,400 s: 5 min until it fires, 10 min until it is over.
        assert one["start_seconds"] - begin == pytest.approx(1_500.0, abs=90.0)
        assert one["end_seconds"] - begin == pytest.approx(4_200.0, abs=90.0)
    assert "GpuErrors" in {one["rule"] for one in episodes}


def test_what_would_have_fired_in_a_folders_past_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = (time.time() - 3 * 3_600.0) // 600.0 * 600.0
    site = story(tmp_path, begin)
    (row,) = site.query.jobs(Range(seconds=4 * 3_600.0)).rows
    job = site.query.job(row.job_id, Range(seconds=4 * 3_600.0, points=240))
    told = rehearsing(site.query, site.settings.alerts)(4 * 3_600.0, {})
    site.close()
    path = tmp_path / "flopwatch.toml"
    path.write_text(SETTINGS)
    asked = ["alerts", "check", "--config", str(path), "--data", str(tmp_path / "collector"), "--last", "6h"]

    assert cli.main([*asked, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert cli.main(asked) == 0
    text = capsys.readouterr().out

    (episode,) = [one for one in document["rehearsal"]["episodes"] if one["rule"] == "MfuLow"]
    # MFU falls 1,800 s after the beginning and must stay so for 600 s; it is back after 5,400 s, and so for 1,800 s.
    assert episode["start_seconds"] - begin == pytest.approx(2_400.0, abs=330.0)
    assert episode["end_seconds"] - begin == pytest.approx(7_200.0, abs=330.0)
    assert episode["summary"] == "llama-8b: MFU 20.0 % below target 35.0 %"
    assert (episode["job"], episode["severity"]) == ("llama-8b", "warning")
    assert document["channels"] == ["oncall"]
    assert "MfuLow" in document["rehearsal"]["judged"]
    assert {"NodeDown", "NoData", "GpuLost", "RestartStorm", "BudgetBurn"} <= set(
        document["rehearsal"]["judged"]
    )
    throttled_once_on_each_gpu(document["rehearsal"]["episodes"], begin)
    assert {"Straggler", "ThermalThrottle"} <= set(document["rehearsal"]["judged"])
    assert "not judged: MfuDrop, StepSpikes: single steps are kept thinned out" in text
    assert "MfuLow would have fired once in 6h:" in text
    assert "channels: oncall; routes: 1" in text
    longer = read_alerts({"alerts": {"rules": {"MfuLow": {"for": "2h"}}}}, {})
    assert job is not None
    assert [one.job for one in told.episodes if one.rule == "MfuLow"] == ["llama-8b"]
    assert [one for one in rehearse([job], longer).episodes if one.rule == "MfuLow"] == []


def test_a_collector_is_asked_for_its_past(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin = (time.time() - 3 * 3_600.0) // 600.0 * 600.0
    site = story(tmp_path, begin)
    path = tmp_path / "flopwatch.toml"
    path.write_text(SETTINGS)
    access = Access(site.running.tokens)
    app = FastAPI()
    errors.install(app)
    app.include_router(query.router(site.query, needs(access, "read")))
    app.include_router(
        alerts.router(
            alerts.AlertParts(
                desk=site.engine.desk,
                read=needs(access, "read"),
                operate=needs(access, "operate"),
                knows=site.engine.knows,
                source=site.engine,
                past=site.running.reports.past,
            )
        )
    )

    with serving(app) as client:
        asked = ["alerts", "check", "--config", str(path), "--last", "6h", "--json"]
        assert cli.main([*asked, "--collector", f"http://127.0.0.1:{client.port}"]) == 0
    site.close()

    rehearsal = json.loads(capsys.readouterr().out)["rehearsal"]
    assert [one["job"] for one in rehearsal["episodes"] if one["rule"] == "MfuLow"] == ["llama-8b"]
    assert {"NodeDown", "MfuLow", "IdleHeld"} <= set(rehearsal["judged"])


def test_without_a_past_only_the_settings_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flopwatch.toml"
    path.write_text(SETTINGS)

    assert cli.main(["alerts", "check", "--config", str(path)]) == 0
    assert "--collector URL, or --data DIR" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--last", "soon"], 2, "--last is 'soon'"),
        (["--data", "/nonexistent"], 1, "/nonexistent is no folder"),
        (["--collector", "http://127.0.0.1:9"], 1, "does not answer"),
        (["--collector", "nowhere"], 2, "--url is 'nowhere'"),
    ],
)
def test_what_cannot_be_checked_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], status: int, said: str
) -> None:
    path = tmp_path / "flopwatch.toml"
    path.write_text(SETTINGS)

    assert cli.main(["alerts", "check", "--config", str(path), *words]) == status
    assert said in capsys.readouterr().err


def test_a_wrong_rule_stops_it_with_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flopwatch.toml"
    path.write_text('[alerts.rules.MfuLow]\nfor = "soon"\n')

    assert cli.main(["alerts", "check", "--config", str(path)]) == 2
    assert "alerts.rules.MfuLow.for is 'soon'" in capsys.readouterr().err
