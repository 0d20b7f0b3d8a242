"""A real agent's batches are what the contract says, strictly."""

import json

import msgspec
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector, eventually

from flopwatch.wire import Batch


def test_every_batch_decodes_strictly_into_the_contract(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path
) -> None:
    row = "print(f'iter {n}: loss 3.1, time 250.00ms, mfu 40.00%', flush=True)"
    code = f"import time\nfor n in range(9): {row}; time.sleep(.2)\ntime.sleep(60)"
    with (tmp_path / "train.log").open("wb") as sink:
        process = processes(code, stdout=sink)
    fake_nvml.write("gpus 2", "mig 1 2", f"proc 0 {process.pid} 100")

    new_agent(collector_url=collector.url, cluster="c1")
    eventually(lambda: len(collector.all("steps")) == 9)

    for batch in collector.batches:
        decoded = msgspec.json.decode(json.dumps(batch), type=Batch, strict=True)
        assert (decoded.node, decoded.cluster, decoded.interval_seconds) == ("node-a", "c1", 0.25)
