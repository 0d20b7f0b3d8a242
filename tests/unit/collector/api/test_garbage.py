"""Garbage collection while the collector serves."""

import json
import subprocess
import sys

from flopwatch_collector.__main__ import GARBAGE_ALLOCATIONS

# In an interpreter of its own: the search would also find what other tests left lying about.
SCRIPT = """
import gc, json
from flopwatch_collector.__main__ import seldom_collected
before = gc.get_threshold()
with seldom_collected():
    inside, frozen = gc.get_threshold(), gc.get_freeze_count()
print(json.dumps([before, inside, frozen, gc.get_threshold(), gc.get_freeze_count()]))
"""


def test_cycles_are_searched_for_seldom_while_serving_and_as_before_afterwards() -> None:
    told = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    before, inside, frozen, after, frozen_after = json.loads(told.stdout)

    assert inside[0] == GARBAGE_ALLOCATIONS > before[0]
    assert frozen > 1_000
    assert after == before
    assert frozen_after == 0
