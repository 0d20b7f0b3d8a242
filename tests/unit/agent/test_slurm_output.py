"""Slurm's file name patterns, as the manuals of ``sbatch`` and ``srun`` define their symbols."""

import pytest

from flopwatch_agent.slurm_output import SlurmFile, expanded, first_host, slurm_files, step_symbols

TASK = {
    "SLURM_JOB_ID": "128", "SLURM_STEP_ID": "0", "SLURM_PROCID": "17", "SLURM_NODEID": "2",
    "SLURMD_NODENAME": "gpu005.cluster", "SLURM_JOB_NODELIST": "gpu[003-006,020]", "SLURM_JOB_NAME": "llm",
    "SLURM_JOB_USER": "ann", "SLURM_SUBMIT_DIR": "/home/ann/run",
}  # fmt: skip
ARRAY = {"SLURM_ARRAY_JOB_ID": "126", "SLURM_ARRAY_TASK_ID": "23"}


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("slurm-%j.out", "slurm-128.out"),
        ("%J.log", "128.0.log"),
        ("%x-%u.log", "llm-ann.log"),
        ("%N/%n.log", "gpu005/2.log"),
        ("task%t.s%s", "task17.s0"),
        ("%A_%a.out", "126_23.out"),
        ("%b", "3"),
        ("%5j", "00128"),
        ("%04t", "0017"),
        ("%12j", "0000000128"),
        ("%5x", "llm"),
        ("100%%-%j", "100%-128"),
        ("\\%j", "%j"),
        ("plain.log", "plain.log"),
        ("%q", "%q"),
    ],
)
def test_every_symbol_of_a_step_s_output(pattern: str, name: str) -> None:
    assert expanded(pattern, step_symbols((TASK | ARRAY).get)) == name


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("%j-%t-%n-%s.log", "128-0-0-batch.log"),
        ("%N.log", "gpu003.log"),
        ("%J", "128"),
        ("%A", "128"),
    ],
)
def test_in_sbatch_s_pattern_the_script_is_task_0_on_the_first_node(pattern: str, path: str) -> None:
    (first, *_) = slurm_files((TASK | {"SBATCH_OUTPUT": pattern}).get)

    assert first.path == f"/home/ann/run/{path}"


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        ({}, ["/home/ann/run/slurm-128.out"]),
        (ARRAY, ["/home/ann/run/slurm-126_23.out"]),
        ({"SLURM_STDOUTMODE": "/logs/%j.%s.out"}, ["/logs/128.0.out", "/home/ann/run/slurm-128.out"]),
        ({"SLURM_STDOUTMODE": "step%s"}, ["/home/ann/run/step0", "/home/ann/run/slurm-128.out"]),
        ({"SLURM_STDOUTMODE": "none"}, ["/home/ann/run/slurm-128.out"]),
        ({"SLURM_STDOUTMODE": "3"}, ["/home/ann/run/slurm-128.out"]),
        ({"SLURM_JOB_STDOUT": "/logs/job"}, ["/logs/job", "/home/ann/run/slurm-128.out"]),
        ({"SBATCH_OUTPUT": "%a.log"}, ["/home/ann/run/slurm-128.out"]),
    ],
)
def test_where_a_task_s_output_is_looked_for(more: dict[str, str], paths: list[str]) -> None:
    assert [item.path for item in slurm_files((TASK | more).get)] == paths


def test_without_the_job_s_id_or_the_folder_nothing_is_guessed() -> None:
    assert slurm_files({"SLURM_SUBMIT_DIR": "/home/ann"}.get) == ()
    assert slurm_files({"SLURM_JOB_ID": "128"}.get) == ()


def test_only_a_name_with_the_job_s_id_is_of_one_job() -> None:
    found = slurm_files((TASK | {"SBATCH_OUTPUT": "%x.log"}).get)

    assert found == (
        SlurmFile(path="/home/ann/run/llm.log", of_one_job=False),
        SlurmFile(path="/home/ann/run/slurm-128.out", of_one_job=True),
    )


@pytest.mark.parametrize(
    ("hosts", "first"),
    [
        ("gpu[003-006,020]", "gpu003"), ("gpu7,gpu9", "gpu7"), ("a.b.c", "a"), ("rack1-n[01]", "rack1-n01"), ("", None),
    ],
)  # fmt: skip
def test_the_first_of_a_list_of_nodes(hosts: str, first: str | None) -> None:
    assert first_host(hosts) == first
