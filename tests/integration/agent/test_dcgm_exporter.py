"""A node whose GPUs are read from its dcgm-exporter, since NVML cannot be used."""

from collections.abc import Iterator

import pytest
from tests.fixtures.exporter import Exporter
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector, eventually

from flopwatch_agent.sources.dcgm import DcgmSource
from flopwatch_agent.xids import XidCounter

LABELS = 'gpu="0",UUID="GPU-a",pci_bus_id="00000000:1B:00.0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"'
SLICE = LABELS + ',GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"'
PAGE = f"""\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 97
DCGM_FI_DEV_SM_CLOCK{{{LABELS}}} 1755
DCGM_FI_DEV_MEMORY_TEMP{{{LABELS}}} 9223372036854775794
DCGM_FI_DEV_POWER_USAGE{{{LABELS}}} 512.5
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{LABELS}}} 7000
DCGM_FI_DEV_FB_USED{{{LABELS}}} 1024
DCGM_FI_DEV_XID_ERRORS{{{LABELS},err_code="31",err_msg="MMU fault"}} 31
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{LABELS}}} 0.41
DCGM_FI_PROF_PCIE_TX_BYTES{{{LABELS}}} 1000
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{SLICE}}} 0.8
DCGM_FI_DEV_POWER_USAGE{{{SLICE}}} 512.5
dcgm_gpu_utilization{{gpu="1",uuid="GPU-b"}} 50
dcgm_sm_clock{{gpu="1",uuid="GPU-b"}} 1000
dcgm_gpu_temp{{gpu="1",uuid="GPU-b"}} nonsense
other_metric{{UUID="GPU-c"}} 5
"""


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter(lambda: PAGE)
    yield made
    made.stop()


def test_both_spellings_are_read_in_base_units_and_blanks_are_absent(exporter: Exporter) -> None:
    source = DcgmSource(exporter.url, XidCounter())
    source.read(90.0)
    samples = {sample.gpu: sample for sample in source.read(100.0).gpu_samples}

    first, second, part = samples["GPU-a"], samples["GPU-b"], samples["GPU-a/7"]
    assert (first.kernel_active_ratio, first.tensor_active_ratio, first.power_watts) == (0.97, 0.41, 512.5)
    assert (first.sm_clock_hertz, first.energy_joules, first.memory_used_bytes) == (1.755e9, 7.0, 2**30)
    assert first.memory_temperature_celsius is None
    assert first.pcie_transmit_bytes == 1000 * 10
    assert (second.kernel_active_ratio, second.sm_clock_hertz, second.temperature_celsius) == (0.5, 1e9, None)
    assert (part.tensor_active_ratio, part.power_watts) == (0.8, None)
    devices = {device.uuid: device for device in source.devices}
    assert (devices["GPU-a"].slot, devices["GPU-a"].index) == ("0000:1b:00.0", 0)
    assert (devices["GPU-a/7"].mig_parent_uuid, devices["GPU-a/7"].mig_instance_id) == ("GPU-a", 7)
    assert set(devices) == {"GPU-a", "GPU-a/7", "GPU-b"}


def test_the_last_xid_is_counted_when_another_takes_its_place(exporter: Exporter) -> None:
    xids = XidCounter()
    source = DcgmSource(exporter.url, xids)
    source.read(1.0)
    source.read(2.0)
    assert xids.counts() == ()

    exporter.text = lambda: PAGE.replace('MMU fault"} 31', 'MMU fault"} 79')
    source.read(3.0)
    source.read(4.0)

    assert [(item.gpu, item.xid, item.count) for item in xids.counts()] == [("GPU-a", 79, 1)]


def test_an_agent_without_nvml_tells_the_exporters_gpus(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, exporter: Exporter
) -> None:
    fake_nvml.write("init 9")
    agent = new_agent(collector_url=collector.url, dcgm_endpoint=exporter.url)

    eventually(lambda: agent.has('hw_power_watts{gpu_uuid="GPU-a"}', 512.5))
    eventually(lambda: agent.has('flopwatch_source_success{source="dcgm"}', 1.0))
    eventually(lambda: agent.has("flopwatch_nvml_up", 0.0))
    told = eventually(lambda: [b["gpus"] for b in collector.batches if b.get("gpus")])
    assert [gpu["uuid"] for gpu in told[-1]] == ["GPU-a", "GPU-a/7", "GPU-b"]
