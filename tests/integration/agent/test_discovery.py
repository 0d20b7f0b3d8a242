"""Steps beyond standard output: real files, written by real processes, found without any setting."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.agent.watched_job import (
    CONFIG,
    PATIENCE,
    POD,
    ROW,
    SCAN,
    TABLE,
    Job,
    cri,
    event_file,
    said,
)

from flopwatch_agent.attribution import output_paths
from flopwatch_agent.model_config import ConfigReader
from flopwatch_agent.positions import Positions
from flopwatch_agent.sources.steps import LET_GO_SECONDS


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.wait(5)


def test_tensorboard_s_event_file_in_the_folder_of_an_argument(job: Job) -> None:
    job.start("--tensorboard-dir", "tb")
    (job.folder / "tb" / "deep").mkdir(parents=True)
    (job.folder / "tb/deep/events.out.tfevents.1.host").write_bytes(event_file())

    assert said(job.over(0, PATIENCE)) == [
        ("file", 1, 0.5),
        ("file", 2, 0.5),
        ("file", 3, 0.5),
        ("file", 4, 0.5),
    ]


@pytest.mark.parametrize(
    ("world", "tags", "count"),
    [
        pytest.param("1", ("lm loss",), 4, id="the whole job is here"),
        pytest.param("16", ("lm loss",), 0, id="another node may have the log"),
        pytest.param("16", ("lm loss", "iteration-time"), 4, id="times are told"),
    ],
)
def test_times_from_time_stamps_count_only_where_no_other_node_can_have_better_ones(
    job: Job, world: str, tags: tuple[str, ...], count: int
) -> None:
    job.start("--tensorboard-dir", "tb", env={**os.environ, "WORLD_SIZE": world, "RANK": "0"})
    (job.folder / "tb").mkdir()
    (job.folder / "tb/events.out.tfevents.1.h").write_bytes(event_file(tuple((tag, 1.0) for tag in tags)))

    steps = job.over(0, PATIENCE)

    assert len([step for step in steps if step.seconds is not None]) >= count - 1
    assert bool(steps) == bool(count)


def test_json_lines_that_a_process_has_open(job: Job) -> None:
    path = job.folder / "elsewhere.jsonl"
    job.start(open_files=(path,))
    now = time.time()
    lines = [{"_step": n, "_timestamp": now + n, "lm loss": 2.0, "iteration-time": 0.75} for n in range(1, 4)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert said(job.over(0, PATIENCE)) == [("file", 1, 0.75), ("file", 2, 0.75), ("file", 3, 0.75)]


def test_a_csv_table_in_the_output_folder(job: Job) -> None:
    job.start("--output_dir=out")
    (job.folder / "out/version_0").mkdir(parents=True)
    rows = "2,2.5,0,0.0003,0.5\n"
    (job.folder / "out/version_0/metrics.csv").write_text(TABLE + rows)

    assert said(job.over(0, PATIENCE)) == [("file", 0, 0.5), ("file", 1, 0.5), ("file", 2, 0.5)]


def test_mlflow_s_file_of_step_times(job: Job) -> None:
    job.start("--mlflow-tracking-uri", "file:mlruns")
    folder = job.folder / "mlruns/0/5f3a/metrics"
    (folder / "perf").mkdir(parents=True)
    began = round(time.time() * 1000)
    (folder / "loss").write_text("".join(f"{began + 500 * n} 2.5 {n}\n" for n in range(1, 4)))
    (folder / "perf/step_time_seconds").write_text(
        "".join(f"{began + 500 * n} 0.500000 {n}\n" for n in range(1, 4))
    )

    assert said(job.over(0, PATIENCE)) == [("file", 1, 0.5), ("file", 2, 0.5), ("file", 3, 0.5)]


def test_the_console_that_wandb_keeps_while_the_process_has_its_log_open(job: Job) -> None:
    run = job.folder / "wandb/run-20261130_101010-abcd"
    (run / "logs").mkdir(parents=True)
    (run / "files").mkdir()
    job.start(open_files=(run / "logs/debug.log",))
    (run / "files/output.log").write_text("".join(ROW.format(n) for n in range(3)))

    assert said(job.over(0, PATIENCE)) == [("file", 0, 0.25), ("file", 1, 0.25), ("file", 2, 0.25)]


def test_the_outputs_that_torchrun_keeps_in_its_log_folder(job: Job) -> None:
    job.start("--log-dir", str(job.folder / "logs"))
    folder = job.folder / "logs/none_x7/attempt_0/0"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text("".join(ROW.format(n) for n in range(3)))

    assert said(job.over(0, PATIENCE)) == [("file", 0, 0.25), ("file", 1, 0.25), ("file", 2, 0.25)]


def test_a_step_in_the_log_and_in_a_file_counts_once_and_the_file_is_let_go(job: Job) -> None:
    console, path = job.folder / "train.log", job.folder / "out/trainer.jsonl"
    path.parent.mkdir()
    job.start("--output_dir", "out", open_files=(path,), stdout=console)
    path.write_text(
        "".join(json.dumps({"_step": n, "lm loss": 2.0, "iteration-time": 0.5}) + "\n" for n in range(3))
    )
    with console.open("a") as sink:
        sink.write("".join(ROW.format(n) for n in range(3)))

    steps = job.over(0, PATIENCE, PATIENCE + SCAN)

    assert said(steps) == [("log", 0, 0.25), ("log", 1, 0.25), ("log", 2, 0.25)]
    assert [log.path for log in job.steps.logs()] == [str(console)]


def test_a_log_without_step_times_gives_way_to_a_file_that_has_them(job: Job) -> None:
    job.start("--output_dir", "out")
    (job.folder / "out").mkdir()
    with (job.folder / "console").open("a") as sink:
        sink.write(
            "".join(f"{{'loss': 2.5, 'grad_norm': 1.0, 'step': {n}, 'epoch': 0.1}}\n" for n in range(3))
        )
    (job.folder / "out/m.csv").write_text(TABLE)

    steps = job.over(0, PATIENCE)

    assert said([step for step in steps if step.source == "file"]) == [("file", 0, 0.5), ("file", 1, 0.5)]


def test_a_job_that_ends_before_the_patience_does_still_has_its_steps(job: Job) -> None:
    job.start("--output_dir", "out")
    (job.folder / "out").mkdir()
    (job.folder / "out/m.csv").write_text(TABLE)
    assert job.over(0) == []

    job.processes[0].kill()
    job.processes[0].wait(5)

    assert said(job.over(1)) == [("file", 0, 0.5), ("file", 1, 0.5)]


def test_a_restarted_agent_goes_on_in_the_file_it_had_chosen(job: Job) -> None:
    job.start("--output_dir", "out")
    (job.folder / "out").mkdir()
    table = job.folder / "out/m.csv"
    table.write_text(TABLE)
    assert len(job.over(0, PATIENCE)) == 2
    positions = Positions(job.folder, 0)
    positions.prepare(1, job.steps.positions())
    positions.commit(1)

    job.restart()
    job.steps._positions = Positions(job.folder, 1)
    with table.open("a") as sink:
        sink.write("2,2.5,0,0.0003,0.5\n")

    assert said(job.over(SCAN)) == [("file", 2, 0.5)]


def test_what_another_run_left_in_the_folder_is_not_this_one_s(job: Job) -> None:
    (job.folder / "out").mkdir()
    old = job.folder / "out/m.csv"
    old.write_text(TABLE)
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    job.start("--output_dir", "out")

    assert job.over(0, PATIENCE) == []


def test_a_file_that_two_jobs_name_is_neither_s(job: Job) -> None:
    job.start("--output_dir", "out")
    job.start("--output_dir", "out", stdout=job.folder / "console2")
    (job.folder / "out").mkdir()
    (job.folder / "out/m.csv").write_text(TABLE)

    assert job.over(0, PATIENCE) == []


def test_pipes_and_links_in_an_output_folder_are_left_alone(job: Job) -> None:
    folder = job.folder / "out"
    folder.mkdir()
    job.start("--output_dir", "out")
    os.mkfifo(folder / "a.jsonl")
    (job.folder / "secret.csv").write_text(TABLE)
    (folder / "b.csv").symlink_to(job.folder / "secret.csv")

    assert job.over(0, PATIENCE) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start a process of another user")
@pytest.mark.parametrize(("mode", "count"), [(0o600, 0), (0o644, 2)])
def test_only_what_the_job_s_user_may_read_is_read(job: Job, mode: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        command = ["/bin/sh", "-c", "kill -STOP $$", "train.sh", "--output_dir", name]
        nobody = {"user": 65_534, "group": 65_534, "extra_groups": []}
        with (job.folder / "console").open("wb") as sink:
            job.processes.append(subprocess.Popen(command, stdout=sink, cwd="/", **nobody))
        (folder / "m.csv").write_text(TABLE)
        (folder / "m.csv").chmod(mode)

        assert len(job.over(0, PATIENCE)) == count


CHROOT = """
import os, sys, time
os.chroot(sys.argv[1])
os.chdir("/")
print("up", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a process another root")
def test_paths_of_a_container_are_those_under_its_own_root(job: Job) -> None:
    root = job.folder / "image"
    (root / "out").mkdir(parents=True)
    (root / "model").mkdir()
    (root / "model/config.json").write_text(json.dumps(CONFIG))
    (job.folder / "outside.csv").write_text(TABLE)
    command = [sys.executable, "-c", CHROOT, str(root), "--output_dir", "/out", "--model", "model"]
    with (job.folder / "console").open("wb") as sink:
        job.processes.append(subprocess.Popen(command, stdout=sink))
    while not (job.folder / "console").read_bytes():
        time.sleep(0.02)
    (root / "out/link").symlink_to(job.folder)
    (root / "out/a.csv").symlink_to(job.folder / "outside.csv")
    (root / "out/m.csv").write_text(TABLE)

    assert said(job.over(0, PATIENCE)) == [("file", 0, 0.5), ("file", 1, 0.5)]
    assert "/out/m.csv" in [log.path for log in job.steps.logs()]
    (facts,) = ConfigReader(job.jobs._procfs).facts(job.observed()[0], time.time())
    assert (facts.shape or {})["hidden"] == 64
    (root / "model/config.json").unlink()
    (job.folder / "outside.json").write_text(json.dumps(CONFIG))
    (root / "model/config.json").symlink_to(job.folder / "outside.json")
    assert ConfigReader(job.jobs._procfs).facts(job.observed()[0], time.time()) == ()


def test_a_file_that_is_written_no_more_is_let_go_and_taken_up_again(job: Job) -> None:
    job.start("--output_dir", "out")
    (job.folder / "out").mkdir()
    table = job.folder / "out/m.csv"
    table.write_text(TABLE)
    assert len(job.over(0, PATIENCE)) == 2

    job.over(LET_GO_SECONDS + PATIENCE + 1)
    assert str(table) not in [log.path for log in job.steps.logs()]
    with table.open("a") as sink:
        sink.write("2,2.5,0,0.0003,0.5\n")

    assert said(job.over(LET_GO_SECONDS + PATIENCE + 1 + SCAN)) == [("file", 2, 0.5)]


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Job]:
    """A job whose processes the kernel says to be in a pod, their output a pipe to the container runtime."""
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "uptime").symlink_to("/proc/uptime")
    made = Job(tmp_path, proc)
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    made.processes.append(process)
    own = proc / str(process.pid)
    own.mkdir()
    for name in ("stat", "status", "cmdline", "environ", "fd", "fdinfo", "root", "cwd"):
        (own / name).symlink_to(f"/proc/{process.pid}/{name}")
    (own / "cgroup").write_text(f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-x.scope\n")
    yield made
    process.kill()
    process.wait(5)
    assert process.stdout is not None
    process.stdout.close()


def test_a_pod_s_log_is_found_by_the_uid_in_its_control_group(pod: Job) -> None:
    container = pod.folder / f"pods/ml_llm-worker-0_{POD}/trainer"
    container.mkdir(parents=True)
    other = pod.folder / "pods/ml_other_11111111-77aa-4be7-9d3e-30c6e8b5f0aa/trainer"
    other.mkdir(parents=True)
    (other / "0.log").write_text(cri(ROW.format(7)))
    (container / "0.log").write_text(cri(ROW.format(5)))
    (container / "1.log").write_text(cri("".join(ROW.format(n) for n in range(3))))

    assert said(pod.over(0)) == [("log", 0, 0.25), ("log", 1, 0.25), ("log", 2, 0.25)]
    assert {step.job for step in pod.over(SCAN)} <= {f"kubernetes:{POD}"}
    assert [log.path for log in pod.steps.logs()] == [str(container / "1.log")]


def test_a_rotated_pod_log_is_read_to_its_end_and_the_new_one_after_it(pod: Job) -> None:
    container = pod.folder / f"pods/ml_llm-worker-0_{POD}/trainer"
    container.mkdir(parents=True)
    log = container / "0.log"
    log.write_text(cri(ROW.format(0)))
    first = pod.over(0)
    with log.open("a") as sink:
        sink.write(cri(ROW.format(1)))
    log.rename(container / "0.log.20261130-101010")
    log.write_text(cri(ROW.format(2) + ROW.format(3)))

    later = pod.over(SCAN, SCAN + 10)
    assert [step.step for step in (*first, *later)] == [0, 1, 2, 3]


def test_a_pod_without_a_log_here_says_why_there_are_no_steps(pod: Job) -> None:
    assert pod.over(0) == []
    (sighting,) = (pod.steps.completed(job.sighting) for job in pod.observed())

    assert "pipe" in (sighting.waiting_for or "")


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (("train.py", "--output_dir", "out", "--lr", "1"), ("out",)),
        (("train.py", "--tensorboard-dir=/a/tb", "--wandb-save-dir", "/a/w"), ("/a/tb", "/a/w")),
        (("train.py", "exp_manager.exp_dir=/x", "trainer.devices=8"), ("/x",)),
        (("train.py", "--tracking_uri", "https://user:secret@mlflow"), ()),
        (("train.py", "--tracking_uri", "file:///a/mlruns"), ("file:///a/mlruns",)),
        (("train.py", "--log_dir", "--lr"), ()),
    ],
)
def test_folders_come_from_known_arguments_only(words: tuple[str, ...], paths: tuple[str, ...]) -> None:
    assert output_paths(words) == paths
