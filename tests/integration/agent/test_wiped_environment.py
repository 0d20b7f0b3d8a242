"""A process whose environment cannot be read: its job is known by its cgroup or by whom its GPUs were given to."""

import os
from pathlib import Path

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector, eventually
from tests.integration.agent.kernel_files import write

from flopwatch_agent.allocations import Allocation
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.sources.jobs import JobsSource
from flopwatch_agent.sysfs import KernelTree

UUID = "GPU-fa4e0000-0000-4000-8000-{:012x}"
WIPING = """
import ctypes, time
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
begin, end = int(fields[47]), int(fields[48])
ctypes.memset(begin, 0, end - begin)
print("wiped", flush=True)
for step in range(6):
    print(f"iter {step}: loss 3.1234, time 250.00ms, mfu 40.00%", flush=True)
time.sleep(600)
"""
"""What setproctitle does to the memory that the kernel shows as the environment."""
SLURM = "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0"
SLUID = "0::/system.slice/slurmstepd.scope/s5K1KKABCDEFGH/step_0"


def test_two_wiped_processes_are_the_job_that_their_gpus_were_given_to_and_the_node_says_what_is_missing(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    pids = []
    for rank in range(2):
        with (tmp_path / f"{rank}.log").open("wb") as sink:
            environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "SLURM_JOB_ID": "77"}
            pids.append(processes(WIPING, stdout=sink, env=environment).pid)
    eventually(lambda: all(b"iter 5" in (tmp_path / f"{rank}.log").read_bytes() for rank in range(2)))
    assert all(b"SLURM" not in Path(f"/proc/{pid}/environ").read_bytes() for pid in pids)
    for index in (0, 1, 2):
        write(tmp_path / "given", str(index), "77")
    fake_nvml.write("gpus 4", *(f"proc {index} {pid} 100" for index, pid in enumerate(pids)))

    new_agent(collector_url=collector.url, job_files=tmp_path / "given")

    eventually(lambda: len(collector.all("steps")) >= 12)
    eventually(lambda: "overwritten" in str([batch.get("node_facts") for batch in collector.batches]))
    job = [item for item in collector.all("jobs") if item["ref"] == "slurm:77"][-1]
    assert {item["ref"] for item in collector.all("jobs")} == {"slurm:77"}
    assert {step["job"] for step in collector.all("steps")} == {"slurm:77"}
    assert (job["scheduler"], job["scheduler_job_id"]) == ("slurm", "77")
    assert job["gpus"] == [UUID.format(0), UUID.format(1)]
    assert job["leased_gpus"] == [UUID.format(0), UUID.format(1), UUID.format(2)]
    assert "ranks" not in job
    assert "world_size" not in job
    told = [
        batch["node_facts"].get("permission_gaps", ()) for batch in collector.batches if "node_facts" in batch
    ]
    assert [f"user id {os.getuid()} have overwritten" in gap for gap in told[-1]].count(True) == 1


def proc(root: Path, pid: int, cgroup: str, environment: bytes | None) -> None:
    """A process as files; None: its environment may not be read."""
    write(root, "uptime", "1000.0 1.0")
    write(root, f"{pid}/stat", f"{pid} (python) S 1 " + "0 " * 17 + "90000 " + "0 " * 20)
    write(root, f"{pid}/status", "Name:\tpython\nUid:\t7 7 7 7\nGid:\t7 7 7 7\nGroups:\t")
    (root / str(pid) / "cmdline").write_bytes(b"python\0train.py\0")
    write(root, f"{pid}/cgroup", cgroup)
    # A folder in place of the file cannot be read by anyone, root included.
    if environment is None:
        (root / str(pid) / "environ").mkdir()
    else:
        (root / str(pid) / "environ").write_bytes(environment)


@pytest.mark.parametrize(
    ("environment", "said"), [(b"\0" * 64, "overwritten"), (None, "CAP_SYS_PTRACE"), (b"", None)]
)
@pytest.mark.parametrize(
    "place",
    [
        (SLURM, None, "slurm:77"),
        (SLURM, "88", "slurm:77"),
        (SLUID, None, "slurm:s5K1KKABCDEFGH"),
        ("0::/user.slice", "88", "slurm:88"),
        ("0::/user.slice", None, "process:boot:10:90000"),
    ],
)
def test_the_cgroup_comes_first_then_whom_the_gpu_was_given_to(
    tmp_path: Path, place: tuple[str, str | None, str], environment: bytes | None, said: str | None
) -> None:
    cgroup, lease, ref = place
    proc(tmp_path, 10, cgroup, environment)
    jobs = JobsSource(Procfs(KernelTree(tmp_path)), "boot")
    if lease is not None:
        jobs.leases = {"GPU-a": Allocation(scheduler="slurm", job_id=lease, gpus=("GPU-a",))}

    (job,) = jobs.observe(1000.0, {"GPU-a": (10,)}, frozenset(), ())

    assert job.sighting.ref == ref
    assert job.sighting.gpus == ("GPU-a",)
    assert job.sighting.world_size is None
    assert [said in gap for gap in jobs.gaps] == ([] if said is None else [True])
    # Whoever is given the GPU next, the process is whose it was.
    jobs.leases = {"GPU-a": Allocation(scheduler="slurm", job_id="99", gpus=("GPU-a",))}
    assert [item.sighting.ref for item in jobs.observe(1005.0, {"GPU-a": (10,)}, frozenset(), ())] == [ref]
    jobs.leases = {}
    assert [item.sighting.ref for item in jobs.observe(1010.0, {"GPU-a": (10,)}, frozenset(), ())] == [ref]


def test_a_process_on_gpus_of_two_jobs_is_taken_for_neither(tmp_path: Path) -> None:
    proc(tmp_path, 10, "0::/user.slice", b"\0" * 64)
    jobs = JobsSource(Procfs(KernelTree(tmp_path)), "boot")
    jobs.leases = {
        gpu: Allocation(scheduler="slurm", job_id=job, gpus=(gpu,))
        for gpu, job in (("GPU-a", "1"), ("GPU-b", "2"))
    }

    (job,) = jobs.observe(1000.0, {"GPU-a": (10,), "GPU-b": (10,)}, frozenset(), ())

    assert job.sighting.scheduler == "none"
