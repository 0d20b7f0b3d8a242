"""Prolog and epilog as Slurm calls them, and what the agent's reader makes of their files."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "deploy"


def call(name: str, folder: Path, **environment: str) -> int:
    return subprocess.run(
        [SCRIPTS / "slurm" / name],
        env={"PATH": "/usr/bin:/bin", "FLOPWATCH_JOB_FILES": str(folder), **environment},
        check=False,
    ).returncode


def held(folder: Path) -> dict[str, list[str]]:
    return {path.name: path.read_text().split() for path in sorted(folder.iterdir())}


def test_a_job_stands_in_the_files_of_its_gpus_until_its_epilog(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"

    statuses = [
        call("prolog.sh", folder, SLURM_JOB_ID="41", SLURM_JOB_GPUS="0,1"),
        call("prolog.sh", folder, SLURM_JOB_ID="42", SLURM_JOB_GPUS="1,3"),
        call("prolog.sh", folder, SLURM_JOB_ID="42", SLURM_JOB_GPUS="1,3"),
    ]
    during = held(folder)
    statuses.append(call("epilog.sh", folder, SLURM_JOB_ID="41"))

    assert statuses == [0, 0, 0, 0]
    assert during == {"0": ["41"], "1": ["41", "42"], "3": ["42"]}
    assert held(folder) == {"0": [], "1": ["42"], "3": ["42"]}


@pytest.mark.parametrize("job", ["", "4 2", "../42", "$(id)"])
def test_what_is_no_job_id_writes_nothing(tmp_path: Path, job: str) -> None:
    assert call("prolog.sh", tmp_path / "jobs", SLURM_JOB_ID=job, SLURM_JOB_GPUS="0") == 0
    assert not (tmp_path / "jobs").exists()


def test_a_folder_that_cannot_be_made_fails_no_job(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert call("prolog.sh", tmp_path / "file" / "jobs", SLURM_JOB_ID="1", SLURM_JOB_GPUS="0") == 0


def test_the_shell_scripts_are_clean() -> None:
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("shellcheck is not installed")

    done = subprocess.run(
        [program, *sorted(SCRIPTS.glob("*/*.sh"))], capture_output=True, text=True, check=False
    )

    assert done.stdout == ""
