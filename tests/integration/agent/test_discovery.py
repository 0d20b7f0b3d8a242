"""Steps beyond standard output: real files, written by real processes, found without any setting."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flopwatch.wire import StepRecord
from flopwatch_agent.attribution import output_paths
from flopwatch_agent.log_finder import LogFinder
from flopwatch_agent.model_config import ConfigReader
from flopwatch_agent.positions import Positions
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.source import ObservedJob
from flopwatch_agent.sources.jobs import JobsSource
from flopwatch_agent.sources.steps import LET_GO_SECONDS, StepsSource
from flopwatch_agent.sysfs import KernelTree
from flopwatch_agent.trainers.reader import LogReader

ROW = "iter {}: loss 3.1234, time 250.00ms, mfu 40.00%\n"
PATIENCE, SCAN = 11.0, 21.0
HOLD = """
import sys, time
files = [open(path, "a") for path in sys.argv[1].split(":") if path]
print("up", flush=True)
time.sleep(600)
"""
TABLE = "step,train_loss,epoch,lr,step_time\n0,2.5,0,0.0003,0.5\n1,2.5,0,0.0003,0.5\n"
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 1000,
}  # fmt: skip
POD = "0d5c0e1a-77aa-4be7-9d3e-30c6e8b5f0aa"


class Job:
    """A process, and what an agent makes of its steps; time is the test's."""

    def __init__(self, folder: Path, proc: Path = Path("/proc")) -> None:
        self.folder, self.proc = folder, proc
        self.processes: list[subprocess.Popen[bytes]] = []
        self.restart()

    def restart(self) -> None:
        procfs = Procfs(KernelTree(self.proc))
        self.jobs = JobsSource(procfs, "boot")
        self.steps = StepsSource(
            finder=LogFinder(procfs, self.folder / "pods"),
            positions=Positions(self.folder, -1),
            new_reader=LogReader,
            node="n",
        )

    def start(
        self, *arguments: str, open_files: tuple[Path, ...] = (), stdout: Path | None = None, **options
    ) -> int:
        """A trainer that holds files open; its standard output is a file without steps unless told otherwise."""
        with (stdout or self.folder / "console").open("ab") as sink:
            command = [sys.executable, "-c", HOLD, ":".join(map(str, open_files)), *arguments]
            self.processes.append(
                subprocess.Popen(command, stdout=sink, stderr=subprocess.DEVNULL, cwd=self.folder, **options)
            )
        while not (stdout or self.folder / "console").read_bytes().endswith(b"up\n"):
            time.sleep(0.02)
        return self.processes[-1].pid

    def observed(self) -> tuple[ObservedJob, ...]:
        """The jobs at the real time, which the kernel's start times go by."""
        pids = tuple(process.pid for process in self.processes)
        return self.jobs.observe(time.time(), {"GPU-0": pids}, frozenset(), ())

    def look(self, now: float) -> tuple[StepRecord, ...]:
        observed = self.observed()
        self.steps.look(now, tuple(job for job in observed if not job.ended), {})
        found = self.steps.read(now).steps
        ended = tuple(job for job in observed if job.ended)
        return found + (self.steps.end(ended, now).steps if ended else ())

    def over(self, *moments: float) -> list[StepRecord]:
        began = time.time()
        return [step for moment in moments for step in self.look(began + moment)]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.wait(5)


def said(steps: list[StepRecord]) -> list[tuple[str, int, float | None]]:
    return [(step.source, step.step, step.seconds) for step in steps]


def event(step: int, wall: float, tag: str, value: float) -> bytes:
    """A scalar as TensorBoard's writer frames it (TFRecord of an Event), checksums left empty."""

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    simple = b"\x15" + struct.pack("<f", value)
    summary = field(1, field(1, tag.encode()) + simple)
    record = b"\x09" + struct.pack("<d", wall) + b"\x10" + bytes([step]) + field(5, summary)
    return struct.pack("<Q", len(record)) + b"\0" * 4 + record + b"\0" * 4


def event_file(tags: tuple[tuple[str, float], ...] = (("lm loss", 2.5), ("iteration-time", 0.5))) -> bytes:
    now = time.time()
    version = b"\x09" + struct.pack("<d", now) + b"\x1a\x0dbrain.Event:2"
    head = struct.pack("<Q", len(version)) + b"\0" * 4 + version + b"\0" * 4
    rows = (event(n, now + n, tag, value) for n in range(1, 6) for tag, value in tags)
    return head + b"".join(rows)


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
    (facts,) = ConfigReader(job.jobs._procfs).facts(job.observed()[0])
    assert (facts.shape or {})["hidden"] == 64
    (root / "model/config.json").unlink()
    (job.folder / "outside.json").write_text(json.dumps(CONFIG))
    (root / "model/config.json").symlink_to(job.folder / "outside.json")
    assert ConfigReader(job.jobs._procfs).facts(job.observed()[0]) == ()


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


def cri(text: str) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z", time.gmtime())
    return "".join(f"{stamp} stdout F {line}\n" for line in text.splitlines())


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


SLURM_STEP = "0::/system.slice/slurmstepd.scope/job_128/step_0/user/task_0\n"


def as_slurm_sees_it(folder: Path, process: "subprocess.Popen[bytes]", name: str = "proc") -> Path:
    """A process table with this one process, in a step of Slurm job 128."""
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
    return [(fact.origin, (fact.shape or {})["hidden"]) for fact in reader.facts(job.observed()[0])]


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
