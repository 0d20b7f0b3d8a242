"""Nothing that the diagnosis looks at is left unfed: each input is something else than its default in some run."""

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.views.site import (
    GPUS_A_NODE,
    INTERVAL,
    PARAMETERS,
    Site,
    gpu_name,
    job_ref,
    tokens_for,
)

from flopwatch.answers.diagnosis import Diagnosis
from flopwatch.query import Range
from flopwatch.wire import JobSample, NodeSample, Phase, PortSample, RunFacts, StepRecord
from flopwatch_collector.compute.diagnosis import order
from flopwatch_collector.compute.diagnosis.evidence import RunEvidence
from flopwatch_collector.views import diagnosis

STEP = 10.0
BUSY = {
    "kernel_active_ratio": 0.95, "sm_active_ratio": 0.7, "tensor_active_ratio": 0.5, "dram_active_ratio": 0.4,
    "power_watts": 600.0, "process_count": 1, "memory_used_bytes": 40 * 2**30, "sm_clock_hertz": 1.9e9,
    "clock_event_reasons": 0x4,
}  # fmt: skip
NODES = ("n1", "n2")
SHAPE = {
    "n_layers": 32, "hidden": 4096, "ffn_hidden": 14336, "n_heads": 32, "n_kv_heads": 8, "gated_mlp": True,
    "vocab": 128256,
}  # fmt: skip


Seen = dict[str, list[tuple[RunEvidence, tuple[Diagnosis, ...]]]]


def run(**facts: Any) -> RunFacts:
    values: dict[str, Any] = {
        "source": "log", "origin": "log", "dtype": "bf16", "dtype_basis": "log", "parameter_count": PARAMETERS,
    }  # fmt: skip
    return RunFacts(**{**values, **facts})


def on(*nodes: str) -> dict[str, Any]:
    """A job's GPUs on whole nodes, with the rank of each."""
    gpus = tuple(gpu_name(node, index) for node in nodes for index in range(GPUS_A_NODE))
    return {"gpus": gpus, "leased_gpus": gpus, "world_size": len(gpus)}


def steps(start: float, ends: list[float], *, first: int = 1, **changes: Any) -> tuple[StepRecord, ...]:
    values: dict[str, Any] = {
        "job": "slurm:17", "source": "log", "source_id": "log-17", "rank": 0, "seconds": STEP,
        "tokens": tokens_for(0.4, STEP),
    }  # fmt: skip
    return tuple(
        StepRecord(step=first + number, end_time_seconds=start + end, **{**values, **changes})
        for number, end in enumerate(ends)
    )


def even(seconds: float, step: float = STEP) -> list[float]:
    return [step * number for number in range(1, int(seconds / step) + 1)]


def sampled(start: float, seconds: float, make: Any, **values: Any) -> tuple[Any, ...]:
    return tuple(
        make(time_seconds=start + at, **{n: v(at) if callable(v) else v for n, v in values.items()})
        for at in range(10, int(seconds) + 1, 10)
    )


def hosts(start: float, seconds: float, **changes: Any) -> tuple[JobSample, ...]:
    values: dict[str, Any] = {
        "job": "slurm:17", "main_thread_ratio": 0.5, "loader_busiest_ratio": 0.4, "io_wait_ratio": 0.1,
        "cpu_pressure_ratio": 0.1, "memory_pressure_ratio": 0.1, "io_pressure_ratio": 0.1,
    }  # fmt: skip
    return sampled(start, seconds, JobSample, **{**values, **changes})


def ports(start: float, seconds: float, rate: float, **changes: Any) -> tuple[PortSample, ...]:
    values: dict[str, Any] = {
        "port": "mlx5_0/1", "role": "rdma", "link_up": True, "link_rate_bits_per_second": 400e9, "errors": 0,
        "transmit_bytes": lambda at: round((start + at) % 1e6 * rate), "receive_bytes": 0,
    }  # fmt: skip
    return sampled(start, seconds, PortSample, **{**values, **changes})


def look(site: Site) -> None:
    """As the rules' evaluations and a page do."""
    site.tick()
    site.query.job(site.query.jobs(Range()).rows[0].job_id, Range(seconds=3_600.0))


def hardware(site: Site) -> None:
    """A run of sixteen GPUs of which everything is measured, beside a sibling with another layout."""
    start, seconds = site.now, 600.0
    facts = run(
        shape=SHAPE, sequence_length=8192, global_batch_size=512, pipeline_parallel=2, micro_batches=8,
        pipeline_chunks=2, tensor_parallel=2, data_parallel=4, context_parallel=1, expert_parallel=1,
        activation_recompute="full",
    )  # fmt: skip
    job = job_ref(**on("n1", "n2"), run=(facts,))
    growing = {
        name: lambda time: round((time - start) * 1e9)
        for name in ("pcie_receive_bytes", "nvlink_transmit_bytes", "nvlink_receive_bytes", "ecc_uncorrected")
    }
    device = {"power_limit_watts": 700.0, "pcie_width": 8, "pcie_width_maximum": 16}
    sibling = dataclasses.replace(facts, tensor_parallel=4)
    other = job_ref(**on("n3"), ref="slurm:18", scheduler_job_id="18", name="other", run=(sibling,))
    for node, own in (("n1", job), ("n2", job), ("n3", other)):
        slow = {"kernel_active_ratio": 0.5} if node == "n2" else {}
        site.push(
            node, start, seconds, job=own, device=device, samples={**BUSY, **growing, **slow},
            steps=steps(start, even(seconds), data_wait_seconds=0.5)
            if node == "n1"
            else steps(start, even(seconds), job="slurm:18", source_id="log-18") if node == "n3" else (),
            job_samples=hosts(start, seconds) if node != "n3" else (),
            node_samples=sampled(start, seconds, NodeSample, cpu_busy_ratio=0.3),
            port_samples=ports(start, seconds, 20e9, errors=int),
        )  # fmt: skip
    look(site)


def ranks(site: Site) -> None:
    """Each rank tells its communication; each long step is held up by another one, at another time."""
    start, spans = site.now, [13.0 if number % 7 == 3 else STEP for number in range(60)]
    ends = [sum(spans[: number + 1]) for number in range(60)]
    told: list[StepRecord] = []
    waits: list[Phase] = []
    for rank in range(GPUS_A_NODE):
        for number, step in enumerate(steps(start, ends, source="sdk", source_id=f"sdk-{rank}", rank=rank)):
            told.append(dataclasses.replace(step, seconds=spans[number]))
            held = spans[number] > STEP and number // 7 % GPUS_A_NODE == rank
            third = number // 15 % 4 == rank and spans[number] == STEP
            wait = 0.1 if held or third else spans[number] - 7.0
            waits.append(
                Phase(
                    job="slurm:17", kind="communication", source="sdk", source_id=f"sdk-{rank}", step=number,
                    begin_seconds=step.end_time_seconds - wait, end_seconds=step.end_time_seconds,
                )
            )  # fmt: skip
    job = job_ref(
        ranks=tuple(range(GPUS_A_NODE)), gpu_ranks=tuple(range(GPUS_A_NODE)), run=(run(pipeline_parallel=2),)
    )
    site.push("n1", start, ends[-1], job=job, samples=BUSY, steps=told, phases=waits)
    look(site)


def dipping(site: Site) -> None:
    """Every twentieth step it writes a checkpoint of 40 s that it does not tell of; of others it does."""
    start, ends, time = site.now, [], 0.0
    for number in range(1, 121):
        time += STEP + (40.0 if number % 20 == 0 else 0.0)
        ends.append(time)
    written = lambda at: 5_000_000_000 * sum(at >= 20 * STEP * n + 40.0 * (n - 1) + 20.0 for n in range(1, 7))  # noqa: E731
    phases = [
        Phase(
            job="slurm:17", kind=kind, source="log", source_id="log-17", step=number, blocking=True,
            begin_seconds=start + ends[number] - 3.0, end_seconds=start + ends[number],
        )
        for kind, number in (("checkpoint", 100), ("eval", 110))
    ]  # fmt: skip
    site.push(
        "n1", start, time, job=job_ref(mfu_target_ratio=0.45), samples=BUSY, steps=steps(start, ends), phases=phases,
        job_samples=hosts(start, time, disk_write_bytes=written),
    )  # fmt: skip
    look(site)


def slower(site: Site) -> None:
    """Its steps take half as long again from the middle on; then a checkpoint is open."""
    start = site.now
    ends = even(800.0) + [800.0 + end for end in even(1_200.0, 15.0)]
    for each in (steps(start, ends[:80]), steps(start, ends[80:], first=81, seconds=15.0)):
        site.push("n1", start, 2_000.0, job=job_ref(), samples=BUSY if each[0].step == 1 else {}, steps=each)
    phases = [
        Phase(
            job="slurm:17", kind="checkpoint", source="log", source_id="log-17", begin_seconds=begin, end_seconds=end
        )
        for begin, end in ((start + 794.0, start + 799.0), (start + 2_000.0, None))
    ]  # fmt: skip
    site.push("n1", start + 2_000.0, INTERVAL, job=job_ref(), samples=BUSY, phases=phases)
    look(site)


def silent(site: Site) -> None:
    """Two nodes train, with one long pause, and fall silent while the disk is written; then the agent falls silent."""
    start, seconds = site.now, 1_200.0
    job = job_ref(**on("n1", "n2"))
    ends = [end if end <= 600.0 else end + 120.0 for end in even(seconds - 120.0)]
    for node in NODES:
        site.push(
            node, start, seconds, job=job, samples=BUSY, steps=steps(start, ends) if node == "n1" else (),
            port_samples=ports(start, seconds, 20e9),
        )  # fmt: skip
    site.tick()
    stuck = {**BUSY, "tensor_active_ratio": 0.0, "power_watts": 120.0, "kernel_active_ratio": 1.0}
    for at in (0.0, 600.0):
        for node in NODES:
            site.push(
                node, start + seconds + at, 600.0, job=job, samples=stuck,
                port_samples=ports(start + seconds + at, 600.0, 0.0),
                job_samples=hosts(start + seconds + at, 600.0, disk_write_bytes=lambda at: round(at * 2e7)),
            )  # fmt: skip
        look(site)
    site.now += 400.0
    look(site)


SCENES = (hardware, ranks, dipping, slower, silent)


def inputs(kind: type, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, default) of everything that is looked at; what is in a tuple or may be missing stands for itself."""
    for field in dataclasses.fields(kind):
        held = (field.type, *typing.get_args(field.type))
        inner = next((one for one in held if dataclasses.is_dataclass(one)), None)
        if isinstance(inner, type):
            yield from inputs(inner, f"{path}{field.name}.")
        else:
            yield f"{path}{field.name}", field.default


def told(value: Any, path: str) -> Iterator[Any]:
    """The values at a path, of each one in a tuple."""
    name, _, rest = path.partition(".")
    for one in value if isinstance(value, tuple) else () if value is None else (value,):
        yield from told(getattr(one, name), rest) if rest else (getattr(one, name),)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """By scene: what the collector's diagnoses were made from, and what they came to."""
    found: Seen = {}
    with pytest.MonkeyPatch.context() as patched:
        for scene in SCENES:
            own = found[scene.__name__] = []

            def diagnose(run: RunEvidence, own: list[Any] = own) -> tuple[Diagnosis, ...]:
                own.append((run, order.diagnose(run)))
                return own[-1][1]

            patched.setattr(diagnosis, "diagnose", diagnose)
            site = Site(tmp_path_factory.mktemp(scene.__name__))
            try:
                scene(site)
            finally:
                site.close()
    return found


def newest(seen: Seen, scene: str) -> dict[str, Diagnosis]:
    return {one.code: one for one in seen[scene][-1][1]}


def test_every_input_is_fed_by_the_running_collector(seen: Seen) -> None:
    runs = [run for made in seen.values() for run, _ in made]

    unfed = [
        path
        for path, default in inputs(RunEvidence)
        if not any(value is not None and value != default for run in runs for value in told(run, path))
    ]

    assert unfed == []


def test_dips_in_which_it_writes_are_checkpoints_of_their_length_and_rhythm(seen: Seen) -> None:
    found = newest(seen, "dipping")["checkpoint_stall"]

    told = {sign.code: sign.value for sign in found.evidence}
    # 40 s in every 20 steps of 10 s and that.
    assert found.lost_ratio == pytest.approx(40 / 240)
    assert (told["dip_every_steps"], told["write_io"]) == (20.0, 1.0)


def test_long_steps_that_another_rank_holds_up_each_time_are_pauses_of_the_host(seen: Seen) -> None:
    assert newest(seen, "ranks")["host_pauses"].confidence == "low"


def test_a_hang_that_writes_to_its_disk_is_not_called_one_by_its_silence(seen: Seen) -> None:
    silences = [run.silence for run, _ in seen["silent"] if run.silence is not None]

    assert any(silence.disk_writing is True and silence.nic_ratio == 0.0 for silence in silences)
