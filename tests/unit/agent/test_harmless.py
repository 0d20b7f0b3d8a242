"""The agent only asks: it never changes a GPU."""

import re
from pathlib import Path

import flopwatch_agent

CHANGES = re.compile(
    r"nvml(?:Device|System|Gpu\w*)(?:Set|Reset|Clear|Create|Destroy|Modify|Remove|Discover|Power\w*Activate|Power\w*Update)\w*"
)


def test_no_call_that_changes_a_gpu_is_named_anywhere() -> None:
    sources = "\n".join(path.read_text() for path in Path(flopwatch_agent.__file__).parent.rglob("*.py"))

    assert len(set(re.findall(r"nvmlDeviceGet\w+", sources))) > 20, "the names of calls are found"
    assert CHANGES.findall(sources) == []
