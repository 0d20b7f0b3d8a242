"""Ten thousand jobs of one day on one node: what is left of them in the agent's memory and on its page."""

import time
from pathlib import Path

import pytest
from tests.bench.busy_node import status_of
from tests.integration.agent.short_jobs import Node

WAVE, WAVES = 50, 200
MAX_GROWTH_MIB = 2.0


@pytest.mark.timeout(1800)
def test_ten_thousand_short_jobs_leave_no_series_and_no_memory(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.look()
    empty, own = node.page(), Path("/proc/self").resolve().name
    began, resident = time.process_time(), []
    for _ in range(WAVES):
        node.begin(WAVE)
        node.look()
        node.end()
        node.look()
        resident.append(status_of(int(own), "VmRSS") / 1024)
    used = time.process_time() - began

    # The first half fills what has a bound: 2,000 positions in logs and 4,096 outputs of processes.
    growth = max(resident[WAVES // 2 :]) - max(resident[: WAVES // 2])
    print(f"\n{WAVE * WAVES} jobs: {used / WAVE / WAVES * 1000:.1f} ms of CPU each, {resident[0]:.1f} -> "
          f"{resident[WAVES // 2]:.1f} -> {resident[-1]:.1f} MiB")  # fmt: skip
    assert node.steps_seen == WAVE * WAVES * 8
    assert node.page() == empty
    assert growth < MAX_GROWTH_MIB
