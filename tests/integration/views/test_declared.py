"""What is declared of a job counts on its page, in its past too."""

from collections.abc import Callable

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.integration.views.site import PARAMETERS, Site

from flopwatch.flops import ModelShape, flops_per_token
from flopwatch.model_names import by_name
from flopwatch.query import Job, Range


def page(site: Site) -> Job:
    (row,) = site.query.jobs(Range()).rows
    job = site.query.job(row.job_id, Range())
    assert job is not None
    return job


def declare(site: Site, **facts: object) -> None:
    client = TestClient(site.running.app)
    (row,) = site.query.jobs(Range()).rows
    answer = client.put(f"/api/v1/jobs/{row.job_id}/facts", json=facts)
    assert answer.status_code == 200, answer.text
    site.now += 3.0  # a page is kept for two seconds
    site.settle()


def test_declared_facts_change_the_figure_the_name_the_target_and_the_hours_before(
    open_site: Callable[..., Site],
) -> None:
    site = open_site()
    for _ in range(5):
        site.train(900.0, mfu=0.20)
    site.settle()
    before = page(site)

    declare(site, parameter_count=2 * PARAMETERS, name="second try", mfu_target_ratio=0.5)
    after = page(site)

    assert (before.row.name, before.row.target.ratio) == ("llama-8b", 0.35)
    assert before.row.mfu.value_ratio == pytest.approx(0.20, rel=1e-6)
    assert (after.row.name, after.row.target.ratio, after.row.target.source) == ("second try", 0.5, "job")
    assert after.row.mfu.value_ratio == pytest.approx(0.40, rel=1e-6)
    old, new = (np.array([job.series.columns["mfu"][5], job.row.wall_mfu_ratio]) for job in (before, after))
    assert new == pytest.approx(2 * old, rel=1e-6)


def test_a_declared_model_says_so_on_the_page(site: Site) -> None:
    site.train(900.0, mfu=0.20)

    declare(site, model="llama-3-8b", sequence_length=8192, dtype="fp8", world_size=16)
    job = page(site)

    shape = by_name("llama-3-8b")
    assert shape is not None
    assert job.shape_origin == "declared (llama-3-8b)"
    assert ModelShape.from_dict(job.shape) == shape
    assert job.row.mfu.flops_per_token == pytest.approx(flops_per_token(shape, 8192, "causal"))
    assert (job.row.mfu.basis, job.row.mfu.gpus, job.row.mfu.dtype_basis) == ("steps+shape", 16, "declared")


def test_a_job_that_has_ended_is_figured_anew(site: Site) -> None:
    site.train(900.0, mfu=0.20)
    site.train(30.0, mfu=0.20, end_time_seconds=site.now + 30.0)
    site.settle()
    assert page(site).row.mfu.value_ratio == pytest.approx(0.20, rel=1e-6)

    declare(site, parameter_count=2 * PARAMETERS)

    assert page(site).row.mfu.value_ratio == pytest.approx(0.40, rel=1e-6)
