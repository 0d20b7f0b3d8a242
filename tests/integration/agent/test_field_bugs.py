"""What made other agents fail in the field: each cause on the fake library, and what ours does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import eventually
from tests.integration.agent.kubelet import answering, asked, container, pod

GPU = "GPU-fa4e0000-0000-4000-8000-{:012x}"
GRPC_OWN_LIMIT_BYTES = 4 << 20


def test_another_module_that_is_named_pynvml_is_told_by_its_path_and_the_rest_goes_on(
    new_agent, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "pynvml.py"
    other.parent.mkdir()
    other.write_text("class NVMLError(Exception): value = 1\ndef nvmlInit(): pass\n")

    agent = new_agent({"PYTHONPATH": str(other.parent)})

    eventually(lambda: agent.has("flopwatch_nvml_up", 0.0))
    eventually(lambda: agent.has("flopwatch_node_memory_total_bytes"))
    eventually(lambda: f"pynvml at {other} is not nvidia-ml-py" in agent.output())


def test_an_answer_of_the_kubelet_beyond_grpcs_own_limit_is_taken(tmp_path: Path) -> None:
    many = container("nvidia.com/gpu", *(GPU.format(number) for number in range(350)))
    answer = b"".join(pod(f"train-{number}", many) for number in range(300))
    assert len(answer) > GRPC_OWN_LIMIT_BYTES
    with answering(tmp_path / "kubelet.sock", answer) as path:
        found, gap = asked(path)

    assert [len(item.device_ids) for item in found] == [350] * 300
    assert gap is None


def test_a_gpu_without_an_energy_counter_has_no_energy_and_not_none_of_it(
    fake_nvml: FakeNvml, new_agent
) -> None:
    fake_nvml.write("gpus 2", "fielderr 83 0 3", "err nvmlDeviceGetTotalEnergyConsumption 0 3")
    agent = new_agent()
    eventually(lambda: agent.has(f'hw_power_watts{{gpu_uuid="{GPU.format(0)}"}}'))
    eventually(lambda: agent.has(f'hw_energy_joules_total{{gpu_uuid="{GPU.format(1)}"}}'))

    found = agent.metrics()

    assert f'hw_energy_joules_total{{gpu_uuid="{GPU.format(0)}"}}' not in found
    assert found['flopwatch_gpu_metric_available{metric="hw_energy_joules_total"}'] == 0.0


OPENED_AGAIN = """
import os, sys, time
from pathlib import Path
from flopwatch_agent.rounds import Rounds
from flopwatch_agent.sources import gpu

gpu.RETRY_SECONDS, gpu.MISMATCH_RESTART_SECONDS = 0.2, 0.5
source = gpu.GpuSource(rounds=Rounds(0.2), gpm=False)
source.start()

def wait(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()

wait(lambda: source.inventory().reason != gpu.OPENING)
print(source.inventory().nvml, flush=True)
time.sleep(1.0)
print(source.needs_restart, flush=True)
scenario = Path(os.environ["FAKE_NVML_SCENARIO"])
scenario.with_suffix(".new").write_text("gpus 2\\n")
scenario.with_suffix(".new").replace(scenario)
wait(lambda: len(source.inventory().gpus) == 2)
print(source.inventory().nvml, len(source.inventory().gpus), source.needs_restart, flush=True)
source.stop(20)
"""


@pytest.mark.parametrize(
    ("code", "state", "restarts"),
    [
        (9, "absent", False),
        (12, "absent", False),
        (28, "absent", False),
        (18, "failed", True),
        (999, "failed", True),
    ],
)
def test_a_driver_that_does_not_open_is_tried_until_it_does_and_by_a_new_process_where_only_that_helps(
    fake_nvml: FakeNvml, code: int, state: str, restarts: bool
) -> None:
    fake_nvml.write(f"init {code}")

    done = subprocess.run(
        [sys.executable, "-c", OPENED_AGAIN],
        env={**os.environ, **fake_nvml.environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
    )

    assert done.stdout.split("\n") == [state, str(restarts), "ok 2 False", ""]
