"""What goes into a batch, and when."""

import dataclasses
from typing import Any

from flopwatch.wire import FollowedLog, GpuDevice, GpuSample, JobSighting
from flopwatch_agent.batches import BatchMaker, Moment, NodeIdentity
from flopwatch_agent.source import Inventory, Readings

WHO = NodeIdentity(
    node="n1", cluster="c", boot_id="b", machine_id="m", agent_version="1", interval_seconds=10.0
)
GPUS = (GpuDevice(uuid="GPU-0", slot="0000:1b:00.0", name="NVIDIA H100 80GB HBM3"),)


def moment(at: float, **values: Any) -> Moment:
    fields: dict[str, Any] = {
        "now": 1000.0 + at, "monotonic": at, "spool": "s", "sequence": int(at), "readings": Readings(),
        "inventory": Inventory(nvml="ok", gpus=GPUS),
    }  # fmt: skip
    return Moment(**{**fields, **values})


def test_inventory_and_facts_go_at_the_start_on_change_and_every_minute() -> None:
    maker = BatchMaker(WHO)
    changed = Inventory(nvml="ok", gpus=(dataclasses.replace(GPUS[0], state="lost", reason="gone"),))

    batches = [maker.make(moment(at)) for at in (0, 10, 20)]
    batches.append(maker.make(moment(30, inventory=changed)))
    batches += [maker.make(moment(at, inventory=changed)) for at in (40, 80, 95)]

    assert [batch.gpus is not None for batch in batches] == [True, False, False, True, False, False, True]
    assert [batch.node_facts is not None for batch in batches] == [
        True,
        False,
        False,
        False,
        False,
        True,
        False,
    ]


def test_a_log_that_only_grows_is_no_change_of_facts() -> None:
    maker = BatchMaker(WHO)
    log = FollowedLog(job="j", path="/p", alive=True, lag_bytes=0, last_read_seconds=1.0)

    maker.make(moment(0, logs=(log,)))
    grown = maker.make(moment(10, logs=(dataclasses.replace(log, lag_bytes=5, last_read_seconds=9.0),)))
    broken = maker.make(moment(20, logs=(dataclasses.replace(log, problem="it cannot be read"),)))

    assert grown.node_facts is None
    assert broken.node_facts is not None


def test_all_is_told_again_after_a_batch_was_lost() -> None:
    maker = BatchMaker(WHO)
    maker.make(moment(0))
    maker.forget_told()

    batch = maker.make(moment(10))

    assert batch.gpus == GPUS
    assert batch.node_facts is not None


def test_a_sample_names_the_job_of_its_gpu_and_none_when_two_share_it() -> None:
    samples = tuple(GpuSample(time_seconds=1.0, gpu=f"GPU-{n}") for n in range(3))
    jobs = (JobSighting(ref="a", gpus=("GPU-0", "GPU-1")), JobSighting(ref="b", gpus=("GPU-1",)))

    batch = BatchMaker(WHO).make(moment(0, readings=Readings(gpu_samples=samples), sightings=jobs))

    assert [sample.job for sample in batch.gpu_samples] == ["a", None, None]


def test_the_end_of_a_job_is_told_three_times() -> None:
    maker = BatchMaker(WHO)
    end = JobSighting(ref="a", end_time_seconds=5.0)

    batches = [maker.make(moment(0, ended=(end,)))] + [maker.make(moment(at)) for at in (10, 20, 30)]

    assert [len(batch.jobs) for batch in batches] == [1, 1, 1, 0]
