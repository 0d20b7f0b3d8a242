"""The demo, as a person meets it: quickly there, marked as simulated, quiet, and gone when told to stop."""

import time
from pathlib import Path

import pytest
from playwright.sync_api import Page
from tests.e2e.processes import Process, Processes, get, get_json, until
from tests.ports import free_port


@pytest.fixture
def demo(processes: Processes, tmp_path: Path) -> tuple[Process, str, float]:
    port = free_port()
    began = time.monotonic()
    started = processes.flopwatch(
        "demo",
        "--gpus",
        "256",
        "--days",
        "2",
        "--port",
        str(port),
        env={"FLOPWATCH_DATA_DIR": str(tmp_path / "data")},
    )
    url = f"http://127.0.0.1:{port}"
    until(
        lambda: get(url + "/readyz")[0] == 200,
        60,
        "the first page has data",
    )
    return started, url, time.monotonic() - began


def test_the_demo_s_first_page_is_live_marked_and_asks_nothing_of_other_hosts(
    demo: tuple[Process, str, float], page: Page
) -> None:
    process, url, seconds = demo
    complaints: list[str] = []
    elsewhere: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith((url, "data:", "blob:")) else elsewhere.append(request.url)
        ),
    )

    page.goto(f"{url}/ui/?lang=en")
    page.get_by_text("SIMULATED").first.wait_for(timeout=20_000)
    page.locator("#fleet-tiles .kpi").nth(4).wait_for(timeout=20_000)
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length >= 3", timeout=20_000)

    status = get_json(f"{url}/api/v1/query/status")
    assert status["simulated"] is True
    assert status["price_is_example"] is True
    assert (complaints, elsewhere) == ([], [])
    assert seconds < 60
    assert process.stop() == 0


def test_the_demo_s_ledger_adds_up_and_its_troubles_are_seen(demo: tuple[Process, str, float]) -> None:
    _, url, _ = demo

    fleet = until(lambda: with_alerts(url), 90, "the demo's alerts")
    rows = {row["name"]: row for row in get_json(f"{url}/api/v1/query/jobs?seconds=86400")["rows"]}

    ledger = fleet["ledger_today"]
    assert sum(item["gpu_milliseconds"] for item in ledger["classes"]) == ledger["capacity_gpu_milliseconds"]
    assert fleet["utilisation"]["value"] == ledger["billable_ratio"]
    # The simulated runs step at the MFU they were made with.
    assert rows["llama-70b-pretrain"]["mfu"]["value_ratio"] == pytest.approx(0.462, abs=0.002)
    assert rows["vlm-7b-pretrain"]["mfu"]["value_ratio"] == pytest.approx(0.243, abs=0.002)
    assert rows["llama-8b-preview"]["mfu"]["reason"] == "unknown_gpu"
    assert rows["asr-zh-b2"]["mfu"]["value_ratio"] is None or rows["asr-zh-b2"]["mfu"]["basis"] == "hardware"


def with_alerts(url: str) -> dict | None:
    fleet = get_json(f"{url}/api/v1/query/fleet?seconds=86400")
    rules = {alert["rule"] for alert in fleet["alerts"]}
    return fleet if "MfuLow" in rules else None


def test_a_second_demo_on_the_same_folder_and_up_on_a_demo_s_are_refused(
    demo: tuple[Process, str, float], processes: Processes, tmp_path: Path
) -> None:
    environment = {"FLOPWATCH_DATA_DIR": str(tmp_path / "data")}

    second = processes.flopwatch("demo", "--port", str(free_port()), env=environment)
    other = processes.flopwatch(
        "up", "--port", str(free_port()), "--data-dir", str(tmp_path / "data/demo/collector")
    )

    assert second.popen.wait(30) == 2
    assert "another demo runs on" in second.output()
    assert other.popen.wait(30) == 2
    assert "holds a demo's simulated data" in other.output()


def test_a_size_out_of_range_is_refused_with_what_is_allowed(processes: Processes) -> None:
    asked = processes.flopwatch("demo", "--gpus", "100")

    assert asked.popen.wait(30) == 2
    assert "--gpus is 100; allowed: a multiple of 8 from 128 to 16384" in asked.output()
