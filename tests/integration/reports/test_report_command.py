"""``flopwatch report`` against a collector on a real port, and on its data folder."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.collector.serving import serving
from tests.integration.views.site import Site

from flopwatch import cli

OpenSite = Callable[..., Site]
FROM = "2026-03-03"


@pytest.fixture(scope="module")
def address(trained: Site) -> Iterator[str]:
    with serving(trained.running.app) as asked:
        yield f"http://127.0.0.1:{asked.port}"


def run(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str) -> tuple[int, bytes, str]:
    status = cli.main(["report", *arguments])
    captured = capfdbinary.readouterr()
    return status, captured.out, captured.err.decode()


def test_every_format_comes_from_a_running_collector(
    address: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    begins = {
        "html": b"<!DOCTYPE html>",
        "csv": b"simulated,",
        "json": b"{",
        "parquet": b"PAR1",
        "focus": b"BilledCost,",
    }
    for format_, begin in begins.items():
        file = tmp_path / format_
        status, _, said = run(
            capfdbinary, "--url", address, "--from", FROM, "--format", format_, "--output", str(file)
        )
        assert (status, said) == (0, "")
        assert file.read_bytes().startswith(begin)


def test_one_job_by_its_schedulers_id(address: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    status, out, _ = run(capfdbinary, "--url", address, "--job", "17", "--json")

    assert (status, json.loads(out)["name"]) == (0, "llama-8b")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--last", "7"], 2, "allowed: a time such as 24h"),
        (["--from", "2026-03-03", "--last", "7d"], 2, "either last, or from and to"),
        (["--job", "17", "--format", "csv"], 2, "allowed with --job: html, json"),
        (["--job", "nobody"], 1, "there is no job"),
        (["--output", "/nowhere/x.html"], 2, "a file that can be written"),
    ],
)
def test_wrong_use_is_said(
    address: str, capfdbinary: pytest.CaptureFixture[bytes], arguments: list[str], status: int, message: str
) -> None:
    found, out, said = run(capfdbinary, "--url", address, *arguments)

    assert (found, out) == (status, b"")
    assert message in said


def test_the_data_folder_of_a_collector_that_does_not_run_gives_the_same_ledger(
    open_site: OpenSite,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    site = open_site()
    site.now = begin = time.time() // 300 * 300 - 7_200.0
    for _ in range(4):
        site.train(900.0, start_time_seconds=begin, submit_time_seconds=begin)
    site.settle()
    ledger = site.running.accounting.answer(begin - 300.0, site.now)
    site.close()
    folder, file = tmp_path / "collector", tmp_path / "prices.toml"
    file.write_text("[costs]\nprice_per_gpu_hour = 2.0\n")

    status, out, said = run(
        capfdbinary,
        "--data-dir",
        str(folder),
        "--config",
        str(file),
        "--from",
        f"{begin - 300.0:.0f}",
        "--json",
    )
    assert (status, said) == (0, "")
    report = json.loads(out)
    assert report["ledger"]["capacity_gpu_milliseconds"] == ledger.capacity_gpu_milliseconds
    assert report["ledger"]["waste_gpu_milliseconds"] == ledger.waste_gpu_milliseconds
    assert report["ledger"]["classes"][5]["money"] == ledger.classes[5].money
    assert not report["status"]["simulated"]
    (tmp_path / "SIMULATED").touch()
    _, out, _ = run(capfdbinary, "--data-dir", str(folder), "--from", f"{begin:.0f}")
    assert "SIMULATED: these figures" in out.decode()


def test_a_folder_without_data_or_with_a_running_collector_is_refused(
    open_site: OpenSite,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_site()

    assert run(capfdbinary, "--data-dir", str(tmp_path / "nothing"))[0] == 2
    assert run(capfdbinary, "--data-dir", str(tmp_path / "collector"))[0] == 1


def test_a_job_that_is_forgotten_still_has_its_report(
    open_site: OpenSite, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    site = open_site()
    site.train(900.0)
    made = site.running.reports.job(next(iter(site.running.directory.state().jobs.values())).job_id)
    assert made is not None
    old = replace(made, job_id="old-1", final=True)
    site.running.control.save("job_report/old-1", {"old-1": old})
    with serving(site.running.app) as asked:
        status, out, _ = run(
            capfdbinary, "--url", f"http://127.0.0.1:{asked.port}", "--job", "old-1", "--json"
        )

    assert (status, json.loads(out)["job_id"]) == (0, "old-1")
