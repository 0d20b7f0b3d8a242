"""An agent without privileges, and secrets in every place where a training job keeps them."""

import gzip
import os
import sys
from pathlib import Path

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector, eventually

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

    seen = [str(collector.received), str(metrics), agent.output()]
    seen += [path.read_bytes().decode("latin-1") for path in agent.folder.rglob("*") if path.is_file()]
    seen += [spooled_text(path) for path in agent.folder.rglob("*.sent")]
    assert [name for name, value in SECRETS.items() if any(value in text for text in seen)] == []
    assert sys.executable not in str(collector.received)


def spooled_text(path: Path) -> str:
    packed = path.read_bytes()
    return gzip.decompress(packed).decode() if packed else ""
