"""From cgroup paths, environments and command lines to jobs."""

from typing import Any

import pytest

from flopwatch.wire import GpuDevice
from flopwatch_agent.attribution import (
    config_paths,
    identity,
    is_launcher,
    job_kind,
    pod_uid,
    program_name,
    slurm_job,
    started_by_parent,
)
from flopwatch_agent.procfs import Process, allowed_environment
from flopwatch_agent.sources.jobs import declared_target, leased_gpus, world_size


def process(pid: int = 100, **values: Any) -> Process:
    fields: dict[str, Any] = {
        "start_ticks": 5000, "start_time_seconds": 1000.0, "ppid": 1, "uid": 1000, "groups": frozenset({1000}),
        "comm": "python", "argv": ("python", "train.py"), "environment": {}, "cgroup": "0::/user.slice",
    }  # fmt: skip
    return Process(pid=pid, **{**fields, **values})


POD = "2f1c0a4e-6a9b-4c55-9a53-0d6f3b2a1c77"


@pytest.mark.parametrize(
    ("cgroup", "job"),
    [
        ("11:devices:/slurm/uid_1000/job_4711/step_0/task_3", "4711"),
        ("4:memory:/slurm_node7/uid_1000/job_4711/step_batch/task_0\n3:cpuset:/", "4711"),
        ("0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special", "4711"),
        ("0::/system.slice/node7_slurmstepd.scope/job_4711/step_0/user/task_0", "4711"),
        ("0::/../../system.slice/slurmstepd.scope/job_4711/step_0", "4711"),
        ("0::/system.slice/slurmstepd.scope/s5K1KKJ2XABCD/step_0/user", "s5K1KKJ2XABCD"),
        ("0::/user.slice/user-1000.slice/job_4711", None),
        ("0::/", None),
        ("", None),
    ],
)
def test_a_slurm_job_is_known_by_every_form_of_its_cgroup(cgroup: str, job: str | None) -> None:
    assert slurm_job(cgroup) == job


@pytest.mark.parametrize(
    ("cgroup", "pod"),
    [
        (f"0::/kubepods.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice/cri-containerd-ab.scope", POD),
        (f"11:devices:/kubepods/besteffort/pod{POD}/0123abc", POD),
        (f"0::/../kubepods-pod{POD.replace('-', '_')}.slice/crio-ff.scope", POD),
        ("0::/kubepods/pod" + POD.replace("-", "") + "/ab", POD.replace("-", "")),
        ("0::/system.slice/docker-0123.scope", None),
    ],
)  # fmt: skip
def test_a_pod_is_known_by_every_form_of_its_cgroup(cgroup: str, pod: str | None) -> None:
    assert pod_uid(cgroup) == pod


def test_the_kernels_word_wins_over_a_claim_in_the_environment() -> None:
    worker = process(cgroup="0::/slurmstepd.scope/job_7/step_0", environment={"SLURM_JOB_ID": "8"})

    assert identity(worker, worker).scheduler_job_id == "7"


def test_a_sluid_is_resolved_by_the_environment_and_kept_when_it_is_not() -> None:
    path = "0::/system.slice/slurmstepd.scope/s5K1KKJ2XABCD/step_0"
    told = process(cgroup=path, environment={"SLURM_JOB_ID": "8"})
    untold = process(cgroup=path, environment=None)

    assert identity(told, told).scheduler_job_id == "8"
    assert identity(untold, untold).scheduler_job_id == "s5K1KKJ2XABCD"


def test_a_claim_of_a_slurm_job_inside_a_pod_is_ignored() -> None:
    worker = process(cgroup=f"0::/kubepods/pod{POD}/ab", environment={"SLURM_JOB_ID": "8"})

    who = identity(worker, worker)

    assert (who.scheduler, who.scheduler_job_id) == ("kubernetes", POD)


def test_without_a_scheduler_the_meeting_point_is_the_job() -> None:
    variables = {
        "MASTER_ADDR": "node1",
        "MASTER_PORT": "29500",
        "WORLD_SIZE": "16",
        "TORCHELASTIC_RUN_ID": "none",
    }
    first, second = process(1, environment=variables), process(2, environment=variables)
    other = process(3, environment={**variables, "WORLD_SIZE": "8"})
    stranger = process(4, environment=variables, uid=1001)

    keys = [identity(item, item).key for item in (first, second, other, stranger)]

    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    assert identity(first, first).master == "node1:29500"


def test_without_a_meeting_point_the_top_process_is_the_job() -> None:
    top = process(50, start_ticks=77)

    assert identity(process(51), top).key == "process:50:77"


@pytest.mark.parametrize(
    ("argv", "parent", "same"),
    [
        (("python", "train.py"), ("python", "/opt/venv/bin/torchrun", "train.py"), True),
        (("python", "-u", "train.py"), ("python", "-m", "torch.distributed.run", "train.py"), True),
        (("python", "train.py"), ("python", "/usr/bin/accelerate", "launch", "train.py"), True),
        (("python", "train.py"), ("deepspeed", "train.py"), True),
        (("python", "train.py"), ("python", "train.py"), True),
        (("python", "-c", "from multiprocessing.spawn import spawn_main"), ("python", "train.py"), True),
        (("python", "train.py"), ("bash", "run.sh"), False),
        (("python", "train.py"), ("python", "sweep.py"), False),
        (("python", "train.py"), ("python", "-m", "pytest"), False),
        (("python", "-m", "ipykernel_launcher"), ("python", "/usr/bin/jupyter-lab"), False),
    ],
)  # fmt: skip
def test_a_worker_belongs_to_its_launcher_and_not_to_a_shell(
    argv: tuple[str, ...], parent: tuple[str, ...], same: bool
) -> None:
    assert started_by_parent(process(2, argv=argv), process(9, argv=parent)) is same


def test_a_parent_of_another_user_is_no_launcher() -> None:
    assert not started_by_parent(process(2), process(9, argv=("torchrun", "train.py"), uid=0))
    assert is_launcher(("torchrun", "train.py"))


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("python", "/home/u/train.py", "--lr", "1"), "train.py"),
        (("python", "-u", "-m", "axolotl.cli.train", "c.yml"), "axolotl.cli.train"),
        (("/usr/bin/torchrun", "--nproc", "8", "pretrain_gpt.py"), "pretrain_gpt.py"),
        (("python", "-m", "torch.distributed.run", "run.py"), "run.py"),
        (("python3.11", "-c", "secret = 'x.py'"), None),
        (("/opt/llm.c/train_gpt2cu",), "train_gpt2cu"),
        (("python", "with space.py"), None),
        ((), None),
    ],
)
def test_a_jobs_name_is_its_script_and_never_an_option(argv: tuple[str, ...], name: str | None) -> None:
    assert program_name(argv) == name


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (("python", "-m", "ipykernel_launcher", "-f", "k.json"), "interactive"),
        (("python", "-m", "vllm.entrypoints.openai.api_server"), "inference"),
        (("/usr/bin/vllm", "serve"), "inference"),
        (("python", "-m", "sglang.launch_server"), "inference"),
        (("python", "/usr/bin/lm_eval"), "eval"),
        (("python", "train.py", "--vllm"), "unknown"),
    ],
)
def test_the_kind_of_a_job_is_told_by_its_program(argv: tuple[str, ...], kind: str) -> None:
    assert job_kind(process(argv=argv)) == kind


def test_configurations_are_named_by_options_of_either_form() -> None:
    argv = ("python", "t.py", "--model_name_or_path", "/m/a", "--config=/c/b.json", "--model", "--lr")

    assert config_paths(argv) == ("/m/a", "/c/b.json")


def test_only_allow_listed_variables_are_kept() -> None:
    block = b"RANK=3\0HF_TOKEN=hf_x\0SLURM_JWT=ey\0WORLD_SIZE=8\0\0broken\0MASTER_ADDR=a=b\0"

    assert allowed_environment(block) == {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "a=b"}
    assert allowed_environment(None) is None


def test_the_world_is_torchs_count_else_the_tasks_of_the_slurm_step() -> None:
    step = "0::/slurmstepd.scope/job_7/step_0/user"
    tasks = {"SLURM_NTASKS": "16", "SLURM_STEP_ID": "0"}
    batch = {"SLURM_NTASKS": "16"}

    assert world_size([process(environment={**tasks, "WORLD_SIZE": "128"}, cgroup=step)]) == 128
    assert world_size([process(environment=tasks, cgroup=step)]) == 16
    assert world_size([process(environment=batch, cgroup=step)]) is None
    assert world_size([process(environment=tasks)]) is None
    assert world_size([process(environment=None)]) is None


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("0.45", 0.45),
        ("45%", 0.45),
        ("1", 1.0),
        ("45", None),
        ("-1", None),
        ("0", None),
        ("nan", None),
        ("x", None),
    ],
)
def test_a_declared_target_is_a_ratio_or_a_percentage(text: str, target: float | None) -> None:
    value, doubt = declared_target("slurm:1", text)

    assert value == target
    assert (doubt is None) == (target is not None)


def test_leased_gpus_are_slurms_global_indices_by_minor_number_or_uuids_or_unknown() -> None:
    devices = tuple(
        GpuDevice(uuid=f"GPU-{n}", slot=f"0000:{n:02x}:00.0", name="H100", minor=7 - n) for n in range(8)
    )

    def leased(text: str) -> tuple[str, ...] | None:
        return leased_gpus([process(environment={"SLURM_JOB_GPUS": text})], devices)

    assert leased("0,7") == ("GPU-7", "GPU-0")
    assert leased("0,9") is None
    assert leased("gpu:2") is None
    assert leased("GPU-3,GPU-1") == ("GPU-3", "GPU-1")
    assert leased("GPU-3,") is None
    assert leased_gpus([process()], devices) is None
