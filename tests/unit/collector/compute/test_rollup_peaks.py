"""Kept FLOPs stand over what the run's GPUs could have done, whatever is known of its lease yet."""

import numpy as np
import pytest
from tests.unit.collector.compute.mfu_scene import facts, figure_of, scene

from flopwatch_collector.compute.rollup import job_rollup


@pytest.mark.parametrize("known", [0, 1, 3])
def test_a_run_of_which_few_gpus_are_known_yet_has_no_more_than_its_step_mfu(known):
    given = scene([facts(tokens_per_step=65_536, sequence_length=128, world_size=8)])
    figure, basis = figure_of(given)
    inputs = given.inputs()
    samples = {**inputs.samples, **{f"{n}_active_ratio": np.empty(0) for n in ("kernel", "sm", "tensor")}}
    partly = given.without(gpus=(*given.gpus[:known], given.gpus[7]))

    rows = job_rollup(partly.rows(), samples, inputs.timelines, {1: basis}, given.now)

    ratio = rows["kept_flops"].sum() / rows["leased_peak_flop_seconds"].sum()
    assert ratio <= figure.value_ratio * (1 + 1e-9)
