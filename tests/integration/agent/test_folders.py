"""Where a job's steps and shape are found beyond its own arguments: Slurm's file, shared folders, downloads."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.agent.watched_job import CONFIG, PATIENCE, ROW, TABLE, Job, event_file, said

from flopwatch_agent.model_config import ConfigReader


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.wait(5)


SLURM_STEP = "0::/system.slice/slurmstepd.scope/job_128/step_0/user/task_0\n"


def as_slurm_sees_it(folder: Path, process: "subprocess.Popen[bytes]", name: str = "proc") -> Path:
    """A process table with this one process, in a step of Slurm job 128."""
    while not Path(f"/proc/{process.pid}/environ").read_bytes():
        time.sleep(0.01)  # for a moment after its start the kernel shows none
    proc = folder / name
    own = proc / str(process.pid)
    own.mkdir(parents=True)
    (proc / "uptime").symlink_to("/proc/uptime")
    for part in ("stat", "status", "cmdline", "environ", "fd", "fdinfo", "root", "cwd", "comm"):
        (own / part).symlink_to(f"/proc/{process.pid}/{part}")
    (own / "cgroup").write_text(SLURM_STEP)
    return proc


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({}, "slurm-128.out"),
        ({"SLURM_ARRAY_JOB_ID": "126", "SLURM_ARRAY_TASK_ID": "2"}, "slurm-126_2.out"),
        ({"SBATCH_OUTPUT": "logs/%x_%j.txt"}, "logs/llm_128.txt"),
        ({"SLURM_STDOUTMODE": "%J-%t"}, "128.0-3"),
    ],
)
def test_a_task_of_srun_is_followed_in_slurm_s_file_though_another_node_writes_it(
    tmp_path: Path, more: dict[str, str], name: str
) -> None:
    task = {"SLURM_JOB_ID": "128", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_JOB_NAME": "llm"}
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env={**os.environ, **task, "SLURM_SUBMIT_DIR": str(tmp_path), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        made = Job(tmp_path, as_slurm_sees_it(tmp_path, process))
        made.processes.append(process)
        log = tmp_path / name
        log.parent.mkdir(exist_ok=True)
        log.write_text("".join(ROW.format(n) for n in range(3)))

        assert said(made.over(0)) == [("log", 0, 0.25), ("log", 1, 0.25), ("log", 2, 0.25)]
        assert [item.path for item in made.steps.logs()] == [str(log)]
    finally:
        process.kill()
        process.wait(5)
        assert process.stdout is not None
        process.stdout.close()


def test_slurm_s_file_of_another_user_is_left_alone(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    environment = {**os.environ, "SLURM_JOB_ID": "128", "SLURM_SUBMIT_DIR": str(tmp_path)}
    process = subprocess.Popen(["sleep", "600"], env=environment, stdout=subprocess.PIPE)
    try:
        made = Job(tmp_path, as_slurm_sees_it(tmp_path, process))
        made.processes.append(process)
        (tmp_path / "slurm-128.out").write_text(ROW.format(1))
        os.chown(tmp_path / "slurm-128.out", 65_534, 65_534)

        assert made.over(0) == []
    finally:
        process.kill()
        process.wait(5)
        assert process.stdout is not None
        process.stdout.close()


def event_name(pid: int, host: str = os.uname().nodename) -> str:
    return f"events.out.tfevents.1796075540.{host}.{pid}.0"


def test_tensorboard_s_file_in_the_working_folder_is_known_by_its_writer(job: Job) -> None:
    pid = job.start()
    folder = job.folder / "runs/Nov30_21-00-00_node"
    folder.mkdir(parents=True)
    (folder / event_name(pid)).write_bytes(event_file())
    for name in (event_name(pid + 1), event_name(pid, "other-node")):
        (folder / name).write_bytes(event_file((("lm loss", 1.0), ("iteration-time", 9.0))))

    assert {step.seconds for step in job.over(0, PATIENCE)} == {0.5}


def test_lightning_s_table_in_the_working_folder_counts_where_no_other_run_writes_there(job: Job) -> None:
    job.start()
    for version in (0, 1):
        (job.folder / f"lightning_logs/version_{version}").mkdir(parents=True)
    old = job.folder / "lightning_logs/version_0/metrics.csv"
    old.write_text(TABLE)
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    (job.folder / "lightning_logs/version_1/metrics.csv").write_text(TABLE)

    assert said(job.over(0, PATIENCE)) == [("file", 0, 0.5), ("file", 1, 0.5)]


@pytest.mark.parametrize("value", ["{}/elsewhere", "file://{}/elsewhere"])
@pytest.mark.parametrize(("runs", "count"), [(("a",), 3), (("a", "b"), 0)])
def test_mlflow_s_folder_of_the_environment_counts_where_one_run_writes_there(
    job: Job, value: str, runs: tuple[str, ...], count: int
) -> None:
    job.start(env={**os.environ, "MLFLOW_TRACKING_URI": value.format(job.folder)})
    began = round(time.time() * 1000)
    rows = "".join(f"{began + 500 * n} 0.500000 {n}\n" for n in range(1, 4))
    for run in runs:
        folder = job.folder / f"elsewhere/0/{run}/metrics/perf"
        folder.mkdir(parents=True)
        (folder / "step_time_seconds").write_text(rows)

    assert len(job.over(0, PATIENCE)) == count


def test_the_console_of_wandb_is_found_by_the_writer_that_the_job_started(job: Job) -> None:
    root = job.folder / "tracker"
    for run in ("run-20261130_101010-ours", "run-20261130_101011-other"):
        (root / "wandb" / run / "files").mkdir(parents=True)
        (root / "wandb" / run / "logs").mkdir()
    ours = root / "wandb/run-20261130_101010-ours"
    writer = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'], stdout=open({str(ours)!r} + "
        "'/logs/debug-core.log', 'w'), stderr=subprocess.DEVNULL)\n"
        "print('up', flush=True); time.sleep(600)"
    )
    with (job.folder / "console").open("ab") as sink:
        environment = {**os.environ, "WANDB_DIR": str(root)}
        command = [sys.executable, "-c", writer]
        job.processes.append(subprocess.Popen(command, stdout=sink, cwd=job.folder, env=environment))
    while not (job.folder / "console").read_bytes().endswith(b"up\n"):
        time.sleep(0.02)
    (ours / "files/output.log").write_text("".join(ROW.format(n) for n in range(3)))
    (root / "wandb/run-20261130_101011-other/files/output.log").write_text(ROW.format(70) * 3)

    assert said(job.over(0, PATIENCE)) == [("file", 0, 0.25), ("file", 1, 0.25), ("file", 2, 0.25)]


def shape_of(job: Job) -> list[tuple[str, int]]:
    reader = ConfigReader(job.jobs._procfs)
    return [
        (fact.origin, (fact.shape or {})["hidden"]) for fact in reader.facts(job.observed()[0], time.time())
    ]


def test_a_model_that_the_command_line_names_is_read_from_the_cache_of_downloads(job: Job) -> None:
    revision, cache = "0" * 39 + "a", job.folder / "hub"
    snapshot = cache / "models--org--tiny/snapshots" / revision
    snapshot.mkdir(parents=True)
    (cache / "models--org--tiny/blobs").mkdir()
    (cache / "models--org--tiny/refs").mkdir()
    (cache / "models--org--tiny/refs/main").write_text(revision)
    (cache / "models--org--tiny/blobs/b1").write_text(json.dumps(CONFIG))
    (snapshot / "config.json").symlink_to("../../blobs/b1")
    job.start("--model_name_or_path", "org/tiny", env={**os.environ, "HF_HUB_CACHE": str(cache)})

    assert shape_of(job) == [("config.json of the downloaded model", 64)]

    (snapshot / "config.json").unlink()
    (job.folder / "elsewhere.json").write_text(json.dumps(CONFIG))
    (snapshot / "config.json").symlink_to(job.folder / "elsewhere.json")
    assert shape_of(job) == []


def test_the_configuration_that_the_trainer_saves_beside_its_output_gives_the_shape(job: Job) -> None:
    job.start("--output_dir", "out")
    old, new = job.folder / "out/checkpoint-9", job.folder / "out/checkpoint-10"
    old.mkdir(parents=True)
    new.mkdir()
    stale = job.folder / "out/config.json"
    stale.write_text(json.dumps({**CONFIG, "hidden_size": 32}))
    os.utime(stale, (time.time() - 3600, time.time() - 3600))
    assert shape_of(job) == []

    (old / "config.json").write_text(json.dumps({**CONFIG, "hidden_size": 128}))
    (new / "config.json").write_text(json.dumps(CONFIG))
    assert shape_of(job) == [("config.json of the output folder", 64)]
