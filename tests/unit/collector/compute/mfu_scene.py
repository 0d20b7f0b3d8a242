"""A small run on eight GPUs whose MFU is worked out by hand."""

from typing import Any

from tests.unit.collector.compute.ledger_scene import Scene, gpu, job, launch, lease, step_run, steps

from flopwatch.flops import ModelShape
from flopwatch.query import MfuFigure
from flopwatch.wire import RunFacts
from flopwatch_collector.compute.devices import devices_of
from flopwatch_collector.compute.figure import step_figure
from flopwatch_collector.compute.mfu import JobBasis, basis_of
from flopwatch_collector.compute.runs import join

H100 = "NVIDIA H100 80GB HBM3"
PEAK = 989.4e12
SHAPE = {
    "n_layers": 2, "hidden": 64, "ffn_hidden": 256, "n_heads": 4, "head_dim": 16, "vocab": 1000, "gated_mlp": False,
}  # fmt: skip
PER_TOKEN = 6 * (2 * (4 * 64 * 64 + 2 * 64 * 256) + 64 * 1000) + 6 * 2 * 4 * 16 * 128


def general(**more: Any) -> dict[str, Any]:
    """The same shape in the form that can hold second stacks."""
    return {**ModelShape.from_dict(SHAPE).to_dict(), **more}


def facts(**more: Any) -> RunFacts:
    return RunFacts(**{"source": "log", "origin": "header", "shape": SHAPE, **more})


def scene(runs: list[RunFacts], *, names: tuple[str, ...] = (H100,) * 8, **more: Any) -> Scene:
    numbers = tuple(range(1, len(names) + 1))
    return Scene(
        now=600.0,
        gpus=tuple(gpu(n, name=name) for n, name in zip(numbers, names, strict=True)),
        jobs=(job(1, runs=tuple(runs), **more),),
        launches=(launch(1, begin_seconds=0.0),),
        leases=(lease(1, numbers, 0.0, None),),
        steps=steps(step_run(1, 50, 100.0)),
    )


def figure_of(given: Scene, basis: JobBasis | None = None) -> tuple[MfuFigure, JobBasis]:
    inputs = given.inputs()
    record = inputs.jobs[1]
    run = join(record.runs)
    found = basis or basis_of(run, devices_of(record, run, inputs.leases, inputs.gpus))
    return step_figure(given.timeline(), found), found


def tokens_for(ratio: float, seconds: float = 10.0, gpus: int = 8) -> int:
    """Tokens of a step at that MFU."""
    return round(ratio * gpus * PEAK * seconds / PER_TOKEN)
