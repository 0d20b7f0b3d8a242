"""The model's shape from what a run leaves on the disk: beside its output, and in its tracker's folder."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.agent.watched_job import CONFIG, Job

from flopwatch_agent.model_config import TRACKER_SECONDS, ConfigReader
from flopwatch_agent.source import ObservedJob

PARAMS = {"dim": 64, "n_layers": 2, "n_heads": 4, "multiple_of": 32, "vocab_size": 1000}
WANDB = "wandb/run-20261130_101010-ab12cd34/files/config.yaml"
MLFLOW = "mlruns/0/" + "0123456789abcdef" * 2 + "/params"
TOO_LARGE = 2 << 20
SECRET = "hunter2-secret"


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    for process in made.processes:
        process.kill()
        process.wait(5)


class Looks:
    """One reader over several looks at a job, each a minute of the test's time after the other."""

    def __init__(self, job: Job) -> None:
        self._job, self._now = job, time.time()
        self.reader = ConfigReader(job.jobs._procfs)

    def look(self) -> list[tuple[str, int]]:
        self._now += 3 * TRACKER_SECONDS
        return [
            (fact.origin, (fact.shape or {})["hidden"]) for fact in self.reader.facts(self.seen(), self._now)
        ]

    def seen(self) -> ObservedJob:
        return self._job.observed()[0]

    def told(self) -> list[tuple[str, str]]:
        return [(finding.code, finding.text) for finding in self.reader.findings(self.seen())]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def as_wandb(settings: dict[str, object], extra: str = "") -> str:
    lines = (f"{name}:\n    desc: null\n    value: {value}\n" for name, value in settings.items())
    return "wandb_version: 1\n\n" + "".join(lines) + extra


def test_params_json_beside_the_output_gives_the_shape_once_the_vocabulary_is_known(job: Job) -> None:
    job.start("--output_dir", "out")
    looks = Looks(job)
    write(job.folder / "out/params.json", json.dumps({**PARAMS, "vocab_size": -1}))
    assert [looks.look(), looks.told()] == [[], []]
    assert looks.look() == []
    why = "params.json of the output folder does not give the model's shape: vocab_size missing or unknown"
    assert looks.told() == [("no_shape", why)]

    write(job.folder / "out/params.json", json.dumps(PARAMS))
    assert looks.look() == [("params.json of the output folder", 64)]
    assert looks.look() == []


def test_a_folder_that_the_command_line_names_may_hold_params_json_only(job: Job) -> None:
    job.start("--model", "llama")
    write(job.folder / "llama/params.json", json.dumps(PARAMS))

    assert Looks(job).look() == [("params.json", 64)]


def test_another_program_s_params_json_is_no_model_s(job: Job) -> None:
    job.start("--output_dir", "out")
    write(job.folder / "out/params.json", json.dumps({"lr": 0.1, "layers": 4}))
    looks = Looks(job)

    assert [looks.look(), looks.look(), looks.told()] == [[], [], []]


@pytest.mark.parametrize("content", ["[" * 100_000, "{", "x" * TOO_LARGE, "[1]"])
def test_a_file_that_is_no_settings_file_costs_nothing_but_the_look(job: Job, content: str) -> None:
    job.start("--output_dir", "out")
    write(job.folder / "out/params.json", content)
    write(job.folder / "out/config.yaml", content)

    assert Looks(job).look() == []


def test_the_configuration_of_the_job_s_own_wandb_run_gives_the_shape(job: Job) -> None:
    job.start()
    write(
        job.folder / WANDB, as_wandb({**CONFIG, "hub_token": SECRET}, "_wandb:\n    value:\n        cli: 1\n")
    )

    looks = Looks(job)
    (fact,) = looks.reader.facts(looks.seen(), time.time())

    assert (fact.origin, (fact.shape or {})["hidden"]) == ("files/config.yaml of the W&B run", 64)
    assert SECRET not in repr(fact)
    assert looks.look() == []


@pytest.mark.parametrize("path", [WANDB, MLFLOW])
def test_runs_that_began_before_the_job_or_beside_it_are_not_the_job_s(job: Job, path: str) -> None:
    def settings(run: Path) -> None:
        if path == WANDB:
            write(run, as_wandb(CONFIG))
        for name, value in CONFIG.items() if path == MLFLOW else ():
            write(run / name, str(value))

    job.start()
    settings(job.folder / path)
    hour_ago = time.time() - 3600
    os.utime(job.folder / path, (hour_ago, hour_ago))
    looks = Looks(job)
    assert looks.look() == []

    os.utime(job.folder / path)
    other = path.replace("ab12cd34", "ffffffff").replace("0123456789abcdef", "fedcba9876543210")
    settings(job.folder / other)
    assert looks.look() == []

    os.utime(job.folder / other, (hour_ago, hour_ago))
    assert [hidden for _, hidden in looks.look()] == [64]


def test_of_mlflow_s_parameters_only_those_that_decide_a_shape_are_opened(job: Job) -> None:
    job.start()
    for name, value in {**CONFIG, "learning_rate": 0.1}.items():
        write(job.folder / MLFLOW / name, str(value))
    write(job.folder / MLFLOW / "hub_token", "x" * TOO_LARGE)  # a reader that opened it would give up

    assert Looks(job).look() == [("params of the MLflow run", 64)]
    write(job.folder / MLFLOW / "hidden_size", "x" * TOO_LARGE)
    assert Looks(job).look() == []


def test_a_tracker_s_configuration_that_is_too_large_is_passed_over(job: Job) -> None:
    job.start()
    write(job.folder / WANDB, as_wandb({**CONFIG, "notes": "x" * TOO_LARGE}))
    looks = Looks(job)

    assert [looks.look(), looks.look(), looks.told()] == [[], [], []]


def test_a_wandb_run_that_trains_adapters_gives_no_shape_and_says_so(job: Job) -> None:
    job.start()
    write(job.folder / WANDB, as_wandb({**CONFIG, "peft_config": "\n        default:\n            r: 16"}))
    looks = Looks(job)

    assert [looks.look(), looks.look()] == [[], []]
    why = "peft_config trains adapters, whose sizes are not read"
    text = f"files/config.yaml of the W&B run does not give the model's shape: {why}"
    assert looks.told() == [("no_shape", text)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a job as somebody else")
@pytest.mark.parametrize("path", ["out/params.json", WANDB])
def test_what_the_job_s_user_may_not_read_is_not_read_for_it(job: Job, path: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        command = ["/bin/sh", "-c", "kill -STOP $$", "train.sh", "--output_dir", "out"]
        nobody = {"user": 65_534, "group": 65_534, "extra_groups": []}
        with (job.folder / "console").open("wb") as sink:
            job.processes.append(subprocess.Popen(command, stdout=sink, cwd=folder, **nobody))
        write(folder / path, json.dumps(PARAMS) if path.endswith("json") else as_wandb(CONFIG))
        os.chown(folder / path, 65_534, 65_534)
        (folder / path).chmod(0o000)
        looks = Looks(job)
        assert looks.look() == []

        (folder / path).chmod(0o400)
        assert [hidden for _, hidden in looks.look()] == [64]
