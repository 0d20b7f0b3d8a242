"""The same samples in Prometheus's remote-write form, a request a batch, as an agent on the node would send them."""

from collections.abc import Iterator
from typing import Any

import msgspec
from tests.bench.load.fleet import GPU_METRICS, NODE_METRICS, PORT_METRICS, STEP_METRICS, Made

from flopwatch_collector.prometheus.samples import Sample
from flopwatch_collector.prometheus.write_request import encode

Labels = tuple[tuple[str, str], ...]


def body_of(made: Made) -> bytes:
    """One request: every value of the batch as a sample of a series of its own."""
    return encode(_samples(msgspec.json.decode(made.body)))


def _samples(batch: dict[str, Any]) -> Iterator[Sample]:
    node = ("node", batch["node"])
    for row in batch["gpu_samples"]:
        yield from _of(row, GPU_METRICS, "gpu", (("gpu", row["gpu"]), node))
    for row in batch["port_samples"]:
        yield from _of(row, PORT_METRICS, "port", (node, ("port", row["port"])))
    for row in batch["node_samples"]:
        yield from _of(row, NODE_METRICS, "node", (node,))
    for row in batch.get("steps", ()):
        timed = {**row, "time_seconds": row["end_time_seconds"]}
        yield from _of(timed, STEP_METRICS, "step", (("job_id", row["job"]), node))


def _of(row: dict[str, Any], metrics: tuple[str, ...], kind: str, labels: Labels) -> Iterator[Sample]:
    at = round(row["time_seconds"] * 1e3)
    for metric in metrics:
        name = ("__name__", f"flopwatch_{kind}_{metric}")
        yield Sample(labels=(name, *labels), value=float(row[metric]), time_milliseconds=at)
