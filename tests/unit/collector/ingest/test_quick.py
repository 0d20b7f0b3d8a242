"""The quick way of a push reads what the wire's own classes read, and refuses what they refuse."""

import dataclasses
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.collector.batches import NOW, batch, device, sample, slurm, step

from flopwatch import wire
from flopwatch.encoding import encode
from flopwatch_collector.ingest import quick
from flopwatch_collector.ingest.decode import MalformedBatch, decode, read_batch

FULL = batch(
    gpus=(device("A"),),
    gpu_samples=(sample("A", NOW - 9, power_watts=1.5, memory_used_bytes=2**61, job="slurm:77"), sample("B")),
    node_samples=(wire.NodeSample(time_seconds=NOW, cpu_busy_ratio=0.5, disk_read_bytes=7),),
    job_samples=(wire.JobSample(time_seconds=NOW, job="slurm:77", main_thread_ratio=0.9, major_faults=3),),
    port_samples=(wire.PortSample(time_seconds=NOW, port="mlx5_0/1", role="rdma", link_up=True, errors=0),),
    jobs=(slurm(gpus=("A",)),),
    steps=(step(1, "slurm:77"),),
    events=(wire.Event(time_seconds=NOW, kind="xid", gpu="A", code=79),),
)


def fields_of(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def test_every_field_of_every_row_is_the_wires() -> None:
    read = quick.read(encode(FULL))

    for name in ("gpu_samples", "node_samples", "port_samples", "job_samples"):
        for mine, theirs in zip(getattr(read, name), getattr(FULL, name), strict=True):
            names = tuple(theirs.__slots__)
            assert fields_of(mine, names) == fields_of(theirs, names)
    rest = {field.name for field in dataclasses.fields(wire.Batch)} - {
        "gpu_samples",
        "node_samples",
        "port_samples",
        "job_samples",
    }
    assert {name: getattr(read, name) for name in rest} == {name: getattr(FULL, name) for name in rest}


def changed(**fields: Any) -> bytes:
    plain = json.loads(encode(FULL))
    for path, value in fields.items():
        rows, _, name = path.partition("__")
        if name:
            plain[rows][0][name] = value
        else:
            plain[rows] = value
    return json.dumps(plain).encode()


def case_id(value: Any) -> str:
    return value if isinstance(value, str) else str(next(iter(value.values())))[:9]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"gpu_samples__sm_active_ratio": 1.01}, "gpu_samples[0].sm_active_ratio"),
        ({"gpu_samples__memory_used_bytes": 1.5}, "gpu_samples[0].memory_used_bytes"),
        ({"gpu_samples__memory_used_bytes": 2**62 + 1}, "gpu_samples.memory_used_bytes"),
        ({"gpu_samples__power_watts": 1e300}, "gpu_samples.power_watts"),
        ({"gpu_samples__time_seconds": -1}, "gpu_samples.time_seconds"),
        ({"port_samples__transmit_bytes": 10**400}, "port_samples.transmit_bytes"),
        ({"port_samples__role": "radio"}, "port_samples[0].role"),
        ({"node_samples__time_seconds": 1e12}, "node_samples.time_seconds"),
        ({"events__time_seconds": 1e12}, "events.time_seconds"),
        ({"node": ""}, "node"),
        ({"version": 2}, "version"),
        ({"jobs__start_time_seconds": -5}, "jobs.start_time_seconds"),
    ],
    ids=case_id,
)
def test_what_is_refused_is_named_as_the_wires_classes_name_it(fields: dict[str, Any], field: str) -> None:
    body = changed(**fields)

    with pytest.raises(MalformedBatch) as quickly:
        read_batch(gzip.compress(body), "gzip", 100_000)
    with pytest.raises(MalformedBatch) as slowly:
        decode(body)

    assert quickly.value.errors == slowly.value.errors
    assert quickly.value.errors[0].field == field


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers())
def test_both_ways_agree_on_any_number(real: float, whole: int) -> None:
    body = changed(gpu_samples__power_watts=real, gpu_samples__energy_joules=whole, port_samples__waits=whole)

    answers = []
    for way in (decode, lambda raw: read_batch(raw, "", 100_000)):
        try:
            answers.append(way(body).gpu_samples[0].power_watts)
        except MalformedBatch as error:
            answers.append(error.errors)

    assert answers[0] == answers[1]
