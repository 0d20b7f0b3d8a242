"""An agent without privileges, and secrets in every place where a training job keeps them."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import Agent, FakeCollector, eventually

NOBODY = 65534
ROW = "iter {step}: loss 3.1234, time 250.00ms, mfu 40.00%\n"
SECRETS = {
    "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
    "HF_TOKEN": "hf_abcdefghijABCDEFGHIJabcdefghijABCD",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIxK7MDENGxbPxRfiCYEXAMPLEKEY",
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AZURE_STORAGE_KEY": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50u",
    "GOOGLE_API_KEY": "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "MASTER_PASSWORD": "correct-horse-battery-staple",
}


def reachable_by_all(folder: Path) -> None:
    """Open the folders that pytest closes to others, up to the system's own."""
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and parent != Path("/") and not parent.stat().st_mode & 0o001:
            parent.chmod(0o711)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an agent as another user")
def test_an_agent_without_privileges_names_what_it_may_not_read_of_another_users_job(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log = tmp_path / "private.log"
    log.touch(mode=0o600)
    with log.open("ab") as sink:
        process = processes("import time; time.sleep(600)", stdout=sink, stderr=sink)
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")
    for folder in (tmp_path, fake_nvml.library):
        reachable_by_all(folder)

    agent = new_agent(collector_url=collector.url, user=NOBODY)
    job = eventually(lambda: collector.all("jobs"), 30)[-1]
    facts = eventually(lambda: [b["node_facts"] for b in collector.batches if "node_facts" in b])[-1]

    assert job["uid"] == os.getuid()
    assert "CAP_SYS_PTRACE" in job["waiting_for"]
    assert any("CAP_SYS_PTRACE" in gap and "user id 0" in gap for gap in facts["permission_gaps"])
    assert collector.all("gpu_samples")
    assert "Traceback" not in agent.output()


DOCTOR = """
import encodings.ascii, encodings.idna, encodings.latin_1, os, sys
import flopwatch_agent.doctor as doctor
os.setgroups([]); os.setgid({user}); os.setuid({user})
sys.exit(doctor.main(["--json", "--config", sys.argv[1]]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a command as another user")
@pytest.mark.parametrize("owner", [0, NOBODY], ids=["another user's job", "a job of its own"])
def test_doctor_ends_with_1_and_the_missing_permission_where_a_job_s_mfu_cannot_be_had(
    request: pytest.FixtureRequest, fake_nvml: FakeNvml, tmp_path: Path, owner: int
) -> None:
    log, config = tmp_path / "train.log", tmp_path / "flopwatch.toml"
    config.write_text(f"[agent]\ndata_dir = '{tmp_path}'\nsdk_socket = 'off'\n")
    with log.open("ab") as sink:
        os.chown(log, owner, owner)
        identity = {"user": owner, "group": owner, "extra_groups": []}
        process = subprocess.Popen(["sleep", "600"], stdout=sink, stderr=sink, cwd="/", **identity)
    request.addfinalizer(lambda: (process.kill(), process.wait(5)))
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")
    for folder in (tmp_path, fake_nvml.library):
        reachable_by_all(folder)
    os.chown(tmp_path, NOBODY, NOBODY)

    answer = subprocess.run(
        [sys.executable, "-c", DOCTOR.format(user=NOBODY), str(config)],
        env={**os.environ, **fake_nvml.environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert answer.stdout, answer.stderr
    checks = json.loads(answer.stdout)["checks"]
    (job,) = (check for check in checks if check["name"].startswith("job "))
    failed = [check["name"] for check in checks if check["status"] == "failed"]
    assert failed == ([job["name"]] if owner != NOBODY else [])
    assert answer.returncode == (1 if owner != NOBODY else 0)
    assert ("CAP_SYS_PTRACE" in job["text"]) == (owner != NOBODY)


def test_secrets_of_a_job_reach_no_spool_batch_metric_or_log_of_ours(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    everything = " ".join(f"{name}={value}" for name, value in SECRETS.items())
    code = (
        "import sys, time\n"
        f"print({everything!r}); print('Namespace(token=' + sys.argv[2] + ')')\n"
        "print('number of parameters: 123.59M', flush=True)\n"
        f"for step in range(6): print({ROW!r}.format(step=step) + {everything!r}, flush=True); time.sleep(.1)\n"
        "time.sleep(600)"
    )
    words = [f"--{name.lower()}={value}" for name, value in SECRETS.items()]
    with (tmp_path / "train.log").open("wb") as sink:
        process = processes(
            code,
            "--token",
            SECRETS["HF_TOKEN"],
            *words,
            stdout=sink,
            stderr=sink,
            env={**os.environ, **SECRETS},
        )
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")
    collector.answers = [(503, {}, "")] * 2

    agent = new_agent(collector_url=collector.url)
    eventually(lambda: len(collector.all("steps")) == 6)
    metrics = agent.metrics()
    agent.kill()

    assert leaked(agent, collector, metrics) == []
    assert sys.executable not in str(collector.received)


BLOCK = """------------------------ arguments ------------------------
  hf_token ........................................ {HF_TOKEN}
  hidden_size ..................................... 64
  num_layers ...................................... 2
  num_attention_heads ............................. 4
  seq_length ...................................... 128
  wandb_api_key ................................... {WANDB_API_KEY}
  world_size ...................................... 1
-------------------- end of arguments ---------------------
"""
WRITE = """
import json, os, sys, time
out, secrets = sys.argv[1], json.loads(os.environ["SECRETS"])
everything = " ".join(f"{name}={value}" for name, value in secrets.items())
def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write(text)
run = out + "/wandb/run-20261130_101010-abc/files/"
put(run + "config.yaml", f"api_key:\\n    value: {everything}\\n")
put(run + "wandb-metadata.json", json.dumps({"args": [f"--token={value}" for value in secrets.values()]}))
put(run + "output.log", everything + "\\n")
put(out + "/config.json", json.dumps({"model_type": "llama", "hidden_size": 64, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 1000, "_name_or_path": everything, **secrets}))
put(out + "/trainer.jsonl", "".join(json.dumps({"_step": n, "_timestamp": time.time(), "iteration-time": 0.5,
    "lm loss": 2.0, "model": everything, **secrets}) + "\\n" for n in range(6)))
put(out + "/declared.json", json.dumps({"n_layers": everything, **secrets}))
print(os.environ["BLOCK"].format(**secrets) + everything, flush=True)
time.sleep(600)
"""


def test_secrets_in_any_file_that_is_read_for_a_job_reach_nothing_of_ours(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    told = {
        "SECRETS": json.dumps(SECRETS),
        "BLOCK": BLOCK,
        "FLOPWATCH_MODEL": str(out / "declared.json"),
        "WANDB_DIR": str(out),
        "MLFLOW_TRACKING_URI": "https://ann:" + SECRETS["MASTER_PASSWORD"] + "@mlflow.example.com",
    }
    with (tmp_path / "train.log").open("wb") as sink:
        arguments = (str(out), "--output_dir", str(out), f"--token={SECRETS['HF_TOKEN']}")
        process = processes(
            WRITE, *arguments, stdout=sink, stderr=sink, env={**os.environ, **told, **SECRETS}
        )
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")

    agent = new_agent(collector_url=collector.url)
    findings = eventually(lambda: [f for f in collector.all("findings") if f["code"] == "bad_declaration"])
    eventually(
        lambda: any(run.get("world_size") == 1 for job in collector.all("jobs") for run in job.get("run", ()))
    )
    process.kill()  # the steps of a file wait ten seconds for better ones, or for the end of the job
    process.wait(5)
    eventually(lambda: len(collector.all("steps")) == 6, 40)
    metrics = agent.metrics()
    agent.kill()

    shapes = [
        run["shape"]["hidden"]
        for job in collector.all("jobs")
        for run in job.get("run", ())
        if "shape" in run
    ]
    assert set(shapes) == {64}
    assert "n_layers" in findings[0]["text"]
    assert leaked(agent, collector, metrics) == []


def leaked(agent: Agent, collector: FakeCollector, metrics: object) -> list[str]:
    """The secrets that stand anywhere in what an agent wrote, sent or served."""
    seen = [str(collector.received), str(metrics), agent.output()]
    seen += [path.read_bytes().decode("latin-1") for path in agent.folder.rglob("*") if path.is_file()]
    seen += [spooled_text(path) for path in agent.folder.rglob("*.sent")]
    return [name for name, value in SECRETS.items() if any(value in text for text in seen)]


def spooled_text(path: Path) -> str:
    packed = path.read_bytes()
    return gzip.decompress(packed).decode() if packed else ""
