"""GPUs that a scheduler gave out: a prolog's folder, and a kubelet that speaks real gRPC."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector, eventually
from tests.integration.agent.kubelet import answering, asked, container, pod

from flopwatch.wire import GpuDevice, JobSighting
from flopwatch_agent.allocated import Allocated
from flopwatch_agent.allocations import Allocation, JobFiles, gpu_of_device_id, with_allocations
from flopwatch_agent.config import AgentSettings
from flopwatch_agent.pod_resources import PodDevices, PodResources, pods_of
from flopwatch_agent.source import ObservedJob
from flopwatch_agent.sysfs import KernelTree

A, B = "GPU-aaaaaaaa-0000-4000-8000-000000000001", "GPU-bbbbbbbb-0000-4000-8000-000000000002"
MIG = "MIG-cccccccc-0000-5000-8000-000000000003"
DEVICES = (
    GpuDevice(uuid=A, slot="0000:1b:00.0", name="H100", index=0, minor=4),
    GpuDevice(uuid=B, slot="0000:2b:00.0", name="H100", index=1, minor=1),
    GpuDevice(
        uuid=MIG, slot="0000:2b:00.0", name="H100", index=1, minor=1, mig_parent_uuid=B, mig_instance_id=5
    ),
)
UID = "12345678-1234-1234-1234-123456789abc"


def test_a_prologs_files_name_gpus_by_index_instance_or_uuid_and_odd_ones_cost_nothing(
    tmp_path: Path,
) -> None:
    for name, text in (
        ("0", "77"), ("1", "77\n78\n"), ("1.5", "79\n"), (A, "80"), ("7", "81"), ("notes.txt", "82"), ("1.6", "83"),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    (tmp_path / "2").mkdir()
    (tmp_path / "00").write_bytes(b"\xff\xfe 90\n")

    found = {item.job_id: item.gpus for item in JobFiles(tmp_path).read(DEVICES, 0.0)}

    assert found == {"77": (A, B), "78": (B,), "79": (MIG,), "80": (A,), "90": (A,)}


def test_an_empty_file_and_one_from_before_the_boot_mean_no_job(tmp_path: Path) -> None:
    (tmp_path / "0").write_text("")
    (tmp_path / "1").write_text("12")
    os.utime(tmp_path / "1", (1000.0, 1000.0))

    assert JobFiles(tmp_path).read(DEVICES, 2000.0) == ()
    assert JobFiles(tmp_path / "none").read(DEVICES, 0.0) == ()


@pytest.mark.parametrize(
    ("text", "uuid"),
    [
        (A, A), (f"{A}::3", A), (f"{A}-3", A), ("GPU-bbbb", B), ("GPU-", None), (MIG, MIG), ("nvidia4", A),
        ("nvidia1/gi5", MIG), ("nvidia0", None), ("GPU-ffffffff-0000-4000-8000-000000000001", None),
    ],
)  # fmt: skip
def test_a_device_id_means_one_gpu_or_none(text: str, uuid: str | None) -> None:
    assert gpu_of_device_id(text, DEVICES) == uuid


def test_what_was_given_joins_the_job_that_runs_and_a_job_that_runs_nothing_is_told_of() -> None:
    running = ObservedJob(sighting=JobSighting(ref="slurm:7", scheduler="slurm", gpus=(A,)))
    given = (
        Allocation(scheduler="slurm", job_id="7", gpus=(A, B)),
        Allocation(scheduler="slurm", job_id="8", gpus=(B,), since_seconds=5.0),
    )

    first, second = (job.sighting for job in with_allocations((running,), given))

    assert (first.gpus, first.leased_gpus) == ((A,), (A, B))
    assert (second.ref, second.gpus, second.leased_gpus, second.start_time_seconds) == (
        "slurm:8",
        (),
        (B,),
        5.0,
    )


def test_a_job_that_holds_a_gpu_and_never_uses_it_is_seen_and_its_end_too(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, tmp_path: Path
) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / "1").write_text("4711\n")
    fake_nvml.write("gpus 2")
    new_agent(collector_url=collector.url, job_files=folder)

    seen = eventually(lambda: [j for j in collector.all("jobs") if j["ref"] == "slurm:4711"])
    assert seen[0]["leased_gpus"] == ["GPU-fa4e0000-0000-4000-8000-000000000001"]
    assert seen[0]["scheduler_job_id"] == "4711"
    assert "waiting_for" in seen[0]
    assert "gpus" not in seen[0]

    (folder / "1").write_text("")
    eventually(
        lambda: [j for j in collector.all("jobs") if j["ref"] == "slurm:4711" and "end_time_seconds" in j]
    )


ANSWER = (
    pod("train-0", container("nvidia.com/gpu", A), container("cpu.example/isolated", "x"))
    + pod("shared", container("nvidia.com/gpu.shared", f"{B}::2"))
    + pod("web")
)


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Path]:
    """A real gRPC server at a socket that answers ``List``."""
    with answering(tmp_path / "kubelet.sock", ANSWER) as path:
        yield path


def test_the_kubelet_is_asked_over_its_socket(kubelet: Path) -> None:
    found, gap = asked(kubelet)

    assert gap is None
    assert found == (
        PodDevices(namespace="ml", name="train-0", device_ids=(A,)),
        PodDevices(namespace="ml", name="shared", device_ids=(f"{B}::2",)),
    )


def test_a_pod_that_ended_holds_nothing_though_the_kubelet_still_lists_it(
    kubelet: Path, tmp_path: Path
) -> None:
    other = UID.replace("1234", "9999")
    for name, uid in (("train-0", UID), ("shared", other)):
        (tmp_path / "pods" / f"ml_{name}_{uid}").mkdir(parents=True)
    slices = tmp_path / "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice"
    (slices / f"kubepods-burstable-pod{UID.replace('-', '_')}.slice").mkdir(parents=True)
    settings = AgentSettings(pod_resources=kubelet, pod_logs=tmp_path / "pods", job_files=tmp_path / "none")
    allocated = Allocated(settings, KernelTree(tmp_path / "proc"), KernelTree(tmp_path / "sys"))
    try:
        eventually(lambda: allocated.look(DEVICES))
        jobs, _ = allocated.add((), time.time())
    finally:
        allocated.stop()

    assert [(job.sighting.ref, job.sighting.name, job.sighting.leased_gpus) for job in jobs] == [
        (f"kubernetes:{UID}", "train-0", (A,))
    ]


def test_a_kubelet_that_does_not_answer_is_a_gap_and_nothing_more(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    path = tmp_path / "kubelet.sock"
    path.touch()
    resources = PodResources(path)
    resources.start()
    try:
        gap = eventually(lambda: resources.gap)
    finally:
        resources.stop()

    assert "UNAVAILABLE" in gap
    assert resources.pods is None


def test_an_answer_that_is_cut_is_refused() -> None:
    with pytest.raises((ValueError, IndexError)):
        list(pods_of(ANSWER[:-3]))
