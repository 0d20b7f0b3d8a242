"""The agent beside a real Slurm: whose a training process is, where its output goes, bare or below srun."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.e2e.processes import Processes, get_json, until
from tests.e2e.slurm import Slurm, require_daemons, running
from tests.e2e.test_main_job import LLAMA_8B_TOKEN, PEAK, STEP_TOKENS, TRAINER, Site
from tests.fixtures_nvml import FakeNvml


@pytest.fixture
def slurm(processes: Processes, tmp_path: Path) -> Iterator[Slurm]:
    require_daemons()
    with running(processes, tmp_path / "slurm") as made:
        yield made


def training(folder: Path, name: str, launcher: str = "exec") -> str:
    """Lines of a batch script that train, and write down the process that does."""
    options = f"--step-seconds 2.0 --startup-seconds 1 --control {folder / name}.control"
    command = f"{sys.executable} {TRAINER} megatron {options}"
    return f"export WORLD_SIZE=4 RANK=0\n{launcher} sh -c 'echo $$ > {folder / name}.pid; exec {command}'\n"


def pid_of(folder: Path, name: str) -> int:
    file = folder / f"{name}.pid"
    until(lambda: file.exists() and file.read_text().strip(), 30, f"{name} runs")
    return int(file.read_text())


def hold(site: Site, folder: Path, name: str, gpus: range) -> None:
    """The GPUs that a job's process computes on."""
    pid = pid_of(folder, name)
    site.held += [f"proc {gpu} {pid} 60000" for gpu in gpus]
    site.fake.write("gpus 16", *site.held)


def row_of(site: Site, job: str) -> dict[str, Any]:
    """The row of a Slurm job, once its output was found, read, and gave an MFU."""

    def ask() -> dict[str, Any] | None:
        rows = get_json(site.url + "/api/v1/query/jobs?seconds=3600")["rows"]
        found = [row for row in rows if row["scheduler_job_id"] == job]
        return next((row for row in found if row["mfu"]["basis"] == "steps+shape"), None)

    return until(ask, 60, f"the output of Slurm's job {job}")


def test_a_script_a_step_and_an_array_task_of_a_real_slurm_are_known_with_their_output(
    processes: Processes, fake_nvml: FakeNvml, tmp_path: Path, slurm: Slurm
) -> None:
    site = Site(processes, fake_nvml, tmp_path)
    site.up(FLOPWATCH_AGENT_INTERVAL_SECONDS="1")
    bare = slurm.submit(training(tmp_path, "bare"), "--job-name=bare")
    step = slurm.submit(training(tmp_path, "step", "srun"), "--job-name=step", "--output=%x-%j.txt")
    parent = slurm.submit(training(tmp_path, "task"), "--job-name=task", "--array=7")
    for place, name in enumerate(("bare", "step", "task")):
        hold(site, tmp_path, name, range(4 * place, 4 * place + 4))
    task = slurm.ask("squeue", "--noheader", "--format=%A", f"--jobs={parent}_7")

    rows = {name: row_of(site, job) for name, job in (("bare", bare), ("step", step), ("task", task))}

    assert {name: row["name"] for name, row in rows.items()} == {name: name for name in rows}
    for row in rows.values():
        assert (row["scheduler"], row["trainer"], row["state"]) == ("slurm", "Megatron-LM", "running")
        assert (row["gpus"], row["gpus_basis"], row["gpus_observed"]) == (4, "world_size", 4)
        # Steps of two seconds on four GPUs: 0.4262
        by_hand = LLAMA_8B_TOKEN * STEP_TOKENS / (4 * PEAK * 2.0)
        assert row["mfu"]["value_ratio"] == pytest.approx(by_hand, rel=0.02)


def test_a_requeued_job_is_the_same_job_with_a_new_launch(
    processes: Processes, fake_nvml: FakeNvml, tmp_path: Path, slurm: Slurm
) -> None:
    site = Site(processes, fake_nvml, tmp_path)
    site.up(FLOPWATCH_AGENT_INTERVAL_SECONDS="1")
    script = training(tmp_path, "again").replace("--step-seconds 2.0", "--step-seconds 0.5")
    job = slurm.submit(script, "--job-name=again", "--requeue", "--open-mode=append")
    hold(site, tmp_path, "again", range(4))
    before = row_of(site, job)
    first = pid_of(tmp_path, "again")

    (tmp_path / "again.pid").unlink()
    slurm.ask("scontrol", "requeue", job)
    # Slurm waits until the credential of the first launch has expired: see cred_expire in its configuration.
    until((tmp_path / "again.pid").exists, 120, "the job is launched again")
    second = pid_of(tmp_path, "again")
    site.held.clear()
    hold(site, tmp_path, "again", range(4))

    def launched_again() -> dict[str, Any] | None:
        name = quote(before["job_id"], safe="")
        page: dict[str, Any] = get_json(f"{site.url}/api/v1/query/jobs/{name}?seconds=3600")
        return page if len(page["sessions"]) >= 2 else None

    page = until(launched_again, 90, "the second launch")
    after = row_of(site, job)

    assert second != first
    assert (after["job_id"], after["scheduler_job_id"], after["name"]) == (before["job_id"], job, "again")
    rows = get_json(site.url + "/api/v1/query/jobs?seconds=3600")["rows"]
    assert [row["scheduler_job_id"] for row in rows] == [job], "one job, not two"
    assert [session["first_step"] for session in page["sessions"]] == [1, 1], "each launch began anew"
