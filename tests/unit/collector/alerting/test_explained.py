"""A throttled GPU explains the straggler on it, whether its job names the GPU, or only the node."""

from typing import Any

import pytest

from flopwatch_collector.alerting.inhibition import explaining, inhibited
from flopwatch_collector.alerting.state import AlertRecord, fingerprint

SLOW = "llama: one of its nodes is slower than its peers (n7)"


def record(rule: str, labels: dict[str, str], **changes: Any) -> AlertRecord:
    values: dict[str, Any] = {
        "fingerprint": fingerprint(rule, labels), "rule": rule, "severity": "warning", "labels": labels,
        "state": "firing", "event_seconds": 1.0, "active_since_seconds": 1.0, "fired_seconds": 1.0,
    }  # fmt: skip
    return AlertRecord(**{**values, **changes})


def straggler(**values: Any) -> AlertRecord:
    return record("Straggler", {"cluster": "a", "job_id": "j1"}, values=values, summary=SLOW)


def throttled(node: str = "n7", index: int | None = 0) -> AlertRecord:
    labels = {"cluster": "a", "node": node, "gpu": f"GPU-{node}-{index}"}
    return record("HwThrottle", labels, values={"index": index, "node": node})


@pytest.mark.parametrize(
    ("values", "explained"),
    [
        ({"node": "n7", "gpu": "0"}, True),
        ({"node": "n7", "gpu": "GPU-n7-0"}, True),
        ({"node": "n7", "gpu": None}, True),
        ({"node": "n7", "gpu": "3"}, False),
        ({"node": "n8", "gpu": "0"}, False),
        ({"node": "n8"}, False),
        ({"node": None}, False),
    ],
)
def test_the_same_gpu_or_node_explains_it_and_says_so(values: dict[str, Any], explained: bool) -> None:
    slow, hot = straggler(**values), throttled()
    by = inhibited([slow, hot], {})
    told = explaining({one.fingerprint: one for one in (slow, hot)}, by)

    assert by.get(slow.fingerprint) == ("Throttle" if explained else None)
    assert told[hot.fingerprint].context.get("explains") == (SLOW if explained else None)
    assert told[slow.fingerprint] == slow


def test_what_is_explained_no_more_is_said_no_more() -> None:
    hot = throttled()
    slow = straggler(node="n7", gpu="0")
    both = {one.fingerprint: one for one in (slow, hot)}
    told = explaining(both, inhibited(both.values(), {}))[hot.fingerprint]

    assert told.context == {"explains": SLOW}
    assert explaining({told.fingerprint: told}, {})[hot.fingerprint].context == {}
