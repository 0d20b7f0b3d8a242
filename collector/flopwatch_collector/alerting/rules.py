"""The alert rules: pure functions from what is known of jobs, nodes and the fleet to readings.

Levels and times are in ``levels`` and in `AlertSettings`. A rule gives a reading for everything it could judge, so
that the state machine can tell *good* from *not seen*.
"""

from collections.abc import Callable, Iterator

from flopwatch_collector.alerting.rules_fleet import below_breakeven, budget_burn
from flopwatch_collector.alerting.rules_mfu import (
    high_util_low_mfu,
    mfu_below_norm,
    mfu_drop,
    mfu_low,
    step_spikes,
)
from flopwatch_collector.alerting.rules_node import (
    agent_unhealthy,
    gpu_errors,
    gpu_lost,
    lemon_node,
    link_degraded,
    no_data,
    node_down,
)
from flopwatch_collector.alerting.rules_progress import (
    ckpt_slow,
    hang_suspect,
    idle_held,
    job_hang,
    no_progress,
    restart_storm,
)
from flopwatch_collector.alerting.rules_slow import hw_throttle, straggler, thermal_throttle
from flopwatch_collector.alerting.state import Reading
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts

Rule = Callable[[Facts, AlertSettings], Iterator[Reading]]

RULES: tuple[Rule, ...] = (
    mfu_low, mfu_drop, mfu_below_norm, high_util_low_mfu, step_spikes, job_hang, hang_suspect, idle_held,
    restart_storm, no_progress, ckpt_slow, straggler, hw_throttle, thermal_throttle, node_down, gpu_lost, gpu_errors,
    link_degraded, lemon_node, no_data, agent_unhealthy, below_breakeven, budget_burn,
)  # fmt: skip


def read_all(facts: Facts, settings: AlertSettings) -> tuple[Reading, ...]:
    """The readings of all rules."""
    return tuple(reading for rule in RULES for reading in rule(facts, settings))
