"""The host's part of jobs, from recorded trees of procfs and sysfs: counters by hand, shares worked out from them."""

import subprocess
from pathlib import Path

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector, eventually
from tests.integration.agent.kernel_files import write

from flopwatch.wire import JobSample, JobSighting
from flopwatch_agent.job_cgroup import Folders, folders_of
from flopwatch_agent.procfs import CLOCK_TICKS
from flopwatch_agent.source import JobProcess, ObservedJob
from flopwatch_agent.sources.job_host import JobHostSource
from flopwatch_agent.sysfs import KernelTree

SLURM_V2 = "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0"
FOLDER = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_77"


def stat(
    root: Path, pid: int, *, parent: int, cpu: float = 0.0, wait: float = 0.0, start: int = 100, argv: str = "",
    main: float | None = None,
) -> None:  # fmt: skip
    """A process with seconds of CPU (half of it in the kernel) and of waiting for storage."""
    for path, seconds in (
        (f"proc/{pid}/stat", cpu),
        (f"proc/{pid}/task/{pid}/stat", cpu if main is None else main),
    ):
        half = round(seconds * CLOCK_TICKS / 2)
        fields = ["R", str(parent), *["0"] * 9, str(half), str(half), *["0"] * 6, str(start), *["0"] * 19]
        fields.append(str(round(wait * CLOCK_TICKS)))
        write(root, path, f"{pid} (python (x)) {' '.join(fields)} 0 0")
    write(root, f"proc/{pid}/comm", "python")
    write(root, f"proc/{pid}/cmdline", argv.replace(" ", "\0"))


def job(*pids: int, ref: str = "slurm:77", tops: tuple[int, ...] = ()) -> ObservedJob:
    processes = tuple(
        JobProcess(
            pid=pid, start_ticks=100, start_time_seconds=0.0, uid=1, groups=frozenset(), is_top=pid in tops,
            rank=None if pid in tops else index,
        )
        for index, pid in enumerate((*tops, *pids))
    )  # fmt: skip
    return ObservedJob(sighting=JobSighting(ref=ref), processes=processes)


def source(root: Path, interval: float = 10.0) -> JobHostSource:
    return JobHostSource(KernelTree(root / "proc"), KernelTree(root / "sys"), interval)


def only(found: tuple[JobSample, ...]) -> JobSample:
    (sample,) = found
    return sample


def test_shares_of_cores_are_over_the_time_between_two_looks(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/kernel/task_delayacct", "1")
    stat(tmp_path, 9, parent=1, argv="torchrun train.py")
    for pid in (10, 11):
        stat(tmp_path, pid, parent=9, cpu=100.0, main=50.0, argv="python train.py")
    # Workers of the first rank: two forks and a compiler, which is none.
    stat(tmp_path, 20, parent=10, cpu=5.0, argv="python train.py")
    stat(
        tmp_path,
        21,
        parent=10,
        cpu=5.0,
        wait=1.0,
        argv="python -c from multiprocessing.spawn import spawn_main",
    )
    stat(tmp_path, 22, parent=10, cpu=5.0, argv="nvcc kernel.cu")
    reader, training = source(tmp_path), job(10, 11, tops=(9,))
    first = only(reader.read(1000.0, [training]).job_samples)
    stat(tmp_path, 10, parent=9, cpu=130.0, main=59.5, argv="python train.py")
    stat(tmp_path, 11, parent=9, cpu=112.0, main=52.0, argv="python train.py")
    stat(tmp_path, 20, parent=10, cpu=14.0, argv="python train.py")
    stat(
        tmp_path,
        21,
        parent=10,
        cpu=8.0,
        wait=6.0,
        argv="python -c from multiprocessing.spawn import spawn_main",
    )
    second = only(reader.read(1010.0, [training]).job_samples)

    assert (first.main_thread_ratio, first.training_processes, first.loader_processes) == (None, 2, 2)
    assert second.interval_seconds == 10.0
    assert second.main_thread_ratio == pytest.approx(0.95)
    assert second.training_cpu_cores == pytest.approx(4.2)
    assert second.loader_cpu_cores == pytest.approx(0.9 + 0.3)
    assert second.loader_busiest_ratio == pytest.approx(0.9)
    assert second.io_wait_ratio == pytest.approx(0.5)


def test_a_fork_server_and_its_children_are_loaders(tmp_path: Path) -> None:
    stat(tmp_path, 10, parent=1, argv="python train.py")
    stat(tmp_path, 20, parent=10, argv="python -c from multiprocessing.forkserver import main")
    for pid in (30, 31):
        stat(tmp_path, pid, parent=20, argv="python -c from multiprocessing.forkserver import main")

    assert only(source(tmp_path).read(0.0, [job(10)]).job_samples).loader_processes == 3


def test_waiting_that_the_kernel_does_not_count_is_not_known(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/kernel/task_delayacct", "0")
    stat(tmp_path, 10, parent=1)
    reader = source(tmp_path)
    reader.read(0.0, [job(10)])

    sample = only(reader.read(10.0, [job(10)]).job_samples)

    assert (sample.main_thread_ratio, sample.io_wait_ratio) == (0.0, None)


def test_a_pid_that_was_used_again_gives_no_share(tmp_path: Path) -> None:
    stat(tmp_path, 10, parent=1, cpu=500.0)
    reader = source(tmp_path)
    reader.read(0.0, [job(10)])
    stat(tmp_path, 10, parent=1, cpu=1.0, start=900)

    assert only(reader.read(10.0, [job(10)]).job_samples).main_thread_ratio is None


def test_the_files_are_read_every_ten_seconds_however_short_the_interval(tmp_path: Path) -> None:
    stat(tmp_path, 10, parent=1)
    reader = source(tmp_path, interval=1.0)

    counts = [len(reader.read(float(second), [job(10)]).job_samples) for second in range(21)]

    assert counts == [1 if second in (0, 10, 20) else 0 for second in range(21)]


def test_the_account_of_slurms_job_is_that_of_its_cgroup(tmp_path: Path) -> None:
    stat(tmp_path, 10, parent=1)
    write(tmp_path, "proc/10/cgroup", SLURM_V2)
    write(tmp_path, f"{FOLDER}/memory.current", "9000000")
    write(tmp_path, f"{FOLDER}/memory.max", "max")
    write(
        tmp_path,
        f"{FOLDER}/memory.stat",
        "anon 5\ninactive_file 2000000\npgmajfault 12\nworkingset_refault_file 34",
    )
    write(
        tmp_path,
        f"{FOLDER}/io.stat",
        "259:0 rbytes=100 wbytes=7 rios=1\n8:0 rbytes=20 wbytes=3\n253:0 rbytes=120 wbytes=10",
    )
    for device in ("259:0", "8:0"):
        write(tmp_path, f"sys/dev/block/{device}/device/model", "disk")
    for name, share in (("cpu", "25.00"), ("memory", "1.50"), ("io", "60.00")):
        write(tmp_path, f"{FOLDER}/{name}.pressure", f"some avg10={share} avg60=0.00 avg300=0.00 total=9")

    sample = only(source(tmp_path).read(0.0, [job(10)]).job_samples)

    assert (sample.memory_used_bytes, sample.memory_limit_bytes) == (7_000_000, None)
    assert (sample.disk_read_bytes, sample.disk_write_bytes) == (120, 10)
    assert (sample.major_faults, sample.cache_refaults) == (12, 34)
    assert (sample.cpu_pressure_ratio, sample.memory_pressure_ratio, sample.io_pressure_ratio) == (
        0.25,
        0.015,
        0.6,
    )


def test_version_1_has_accounts_by_controller_and_no_pressure(tmp_path: Path) -> None:
    stat(tmp_path, 10, parent=1)
    lines = "9:blkio:/slurm/uid_5/job_77/step_0\n4:memory:/slurm/uid_5/job_77/step_0/task_0\n1:name=systemd:/x\n0::/y"
    write(tmp_path, "proc/10/cgroup", lines)
    memory, storage = (f"sys/fs/cgroup/{name}/slurm/uid_5/job_77" for name in ("memory", "blkio"))
    write(tmp_path, f"{memory}/memory.usage_in_bytes", "500")
    write(tmp_path, f"{memory}/memory.limit_in_bytes", "9223372036854771712")
    write(tmp_path, f"{memory}/memory.stat", "pgmajfault 1\ntotal_pgmajfault 6\ntotal_inactive_file 200")
    write(
        tmp_path,
        f"{storage}/blkio.throttle.io_service_bytes",
        "8:0 Read 64\n8:0 Write 32\n8:0 Total 96\nTotal 96",
    )
    write(tmp_path, "sys/dev/block/8:0/device/model", "disk")

    sample = only(source(tmp_path).read(0.0, [job(10)]).job_samples)

    assert (sample.memory_used_bytes, sample.memory_limit_bytes, sample.major_faults) == (300, None, 6)
    assert (sample.disk_read_bytes, sample.disk_write_bytes) == (64, 32)
    assert (sample.cache_refaults, sample.memory_pressure_ratio) == (None, None)


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        (SLURM_V2, "fs/cgroup/system.slice/slurmstepd.scope/job_77"),
        (
            "0::/system.slice/slurmstepd.scope/s6K3RZK0ABC100/step_0",
            "fs/cgroup/system.slice/slurmstepd.scope/s6K3RZK0ABC100",
        ),
        (
            "0::/kubepods.slice/kubepods-pod0d5c0e1a_77aa_4be7_9d3e_30c6e8b5f0aa.slice/cri-containerd-1f.scope",
            "fs/cgroup/kubepods.slice/kubepods-pod0d5c0e1a_77aa_4be7_9d3e_30c6e8b5f0aa.slice",
        ),
        ("0::/system.slice/docker-4f1.scope", "fs/cgroup/system.slice/docker-4f1.scope"),
        ("0::/user.slice/user-1000.slice/session-3.scope", None),
        ("0::/user.slice/user-1000.slice/user@1000.service", None),
        ("0::/", None),
        ("0::/../../job_7", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_cgroup_that_others_share_is_no_jobs_account(text: str, folder: str | None) -> None:
    assert folders_of(text) == Folders(memory=folder, storage=folder)


def test_two_jobs_in_one_cgroup_have_no_account(tmp_path: Path) -> None:
    for pid in (10, 11):
        stat(tmp_path, pid, parent=1)
        write(tmp_path, f"proc/{pid}/cgroup", SLURM_V2)
    write(tmp_path, f"{FOLDER}/memory.pressure", "some avg10=50.00 avg60=0.00 avg300=0.00 total=9")

    samples = source(tmp_path).read(0.0, [job(10), job(11, ref="process:b")]).job_samples

    assert [sample.memory_pressure_ratio for sample in samples] == [None, None]


def test_jobs_without_processes_here_and_ended_ones_have_no_sample(tmp_path: Path) -> None:
    stat(tmp_path, 10, parent=1)
    over = ObservedJob(sighting=JobSighting(ref="o"), processes=job(10).processes, ended=True)

    assert source(tmp_path).read(0.0, [ObservedJob(sighting=JobSighting(ref="p")), over]).job_samples == ()


TRAINER = """
import os, time
if os.fork() == 0:
    time.sleep(600)
print("up", flush=True)
time.sleep(600)
"""


def test_a_real_trainer_and_its_forked_loader_are_told_to_the_collector(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes
) -> None:
    process = processes(TRAINER, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")

    new_agent(collector_url=collector.url)
    (ref,) = {job["ref"] for job in eventually(lambda: collector.jobs_of(process.pid))}
    sample = eventually(lambda: [item for item in collector.all("job_samples") if item["job"] == ref])[0]
    process.stdout.close()

    assert (sample["training_processes"], sample["loader_processes"]) == (1, 1)
