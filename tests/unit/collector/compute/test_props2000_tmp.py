"""Whatever is known, the ledger adds up; the order it came in does not matter; sums of sums are sums."""

import json
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.collector.compute.ledger_scene import (
    SAMPLE_COLUMNS,
    Scene,
    events,
    gpu,
    job,
    launch,
    lease,
    phases,
    steps,
    table,
)

from flopwatch_collector.compute.buckets import LEDGER_COLUMNS
from flopwatch_collector.compute.ledger import account, summed
from flopwatch_collector.compute.rollup import SUMS, hourly, job_rollup

END = 4000.0
TIME = st.integers(0, int(END) * 4).map(lambda quarter: quarter / 4)
RATIO = st.sampled_from([float("nan"), 0.0, 0.4, 1.0])
SAMPLE = st.fixed_dictionaries(
    {
        "ts": TIME,
        "gpu": st.integers(1, 4),
        "interval_seconds": st.sampled_from([1.0, 10.0, 60.0, 900.0]),
        "kernel_active_ratio": RATIO,
        "process_count": st.sampled_from([float("nan"), 0.0, 2.0]),
        "power_watts": st.sampled_from([float("nan"), 60.0, 600.0]),
        "job": st.integers(0, 3),
    }
)
STEP = st.fixed_dictionaries(
    {
        "ts": TIME,
        "job": st.integers(1, 2),
        "launch": st.integers(1, 4),
        "step": st.integers(1, 60),
        "seconds": st.sampled_from([float("nan"), 0.0, 5.0, 30.0, 400.0]),
        "steps_covered": st.integers(1, 3),
        "source": st.integers(0, 2),
        "node": st.integers(1, 2),
        "data_wait_seconds": st.sampled_from([float("nan"), 1.0, 1000.0]),
    }
)
PHASE = st.fixed_dictionaries(
    {
        "ts": TIME,
        "end": st.one_of(TIME, st.just(float("nan"))),
        "job": st.integers(1, 2),
        "launch": st.integers(1, 4),
        "kind": st.sampled_from(["data", "eval", "checkpoint", "generation", "startup", "communication"]),
        "blocking": st.integers(0, 1),
    }
)
LEASE = st.builds(
    lambda number, gpus, start, length, share: lease(
        number,
        tuple(sorted(gpus)),
        start,
        None if length is None else start + length,
        share_ratio=share,
        lease_id=f"{number}{gpus}{start}{length}{share}",
    ),
    st.integers(1, 3),
    st.sets(st.integers(1, 4), min_size=1),
    TIME,
    st.one_of(st.none(), st.integers(1, 3000)),
    st.sampled_from([1.0, 1.0, 1.0, 0.25]),
)
EVENT = st.fixed_dictionaries(
    {
        "ts": TIME,
        "node": st.integers(1, 2),
        "gpu": st.integers(0, 4),
        "kind": st.sampled_from(["maintenance", "spare", "health", "drain", "stranded", "xid"]),
        "code": st.sampled_from([79.0, 13.0, float("nan")]),
        "value": st.sampled_from(["begin", "end", "faulty", "ok"]),
    }
)
QUEUE = st.fixed_dictionaries(
    {
        "ts": TIME,
        "node": st.integers(1, 2),
        "kind": st.just("queue"),
        "value": st.sampled_from(["main", "low"]),
        "text": st.builds(
            lambda jobs, gpus, largest: json.dumps(
                {"pending_jobs": jobs, "pending_gpus": gpus, "largest_request_gpus": largest}
            ),
            st.integers(0, 3),
            st.integers(0, 9),
            st.one_of(st.none(), st.integers(1, 9)),
        ),
    }
)
GPUS = (
    gpu(1),
    gpu(2, from_seconds=333.3, to_seconds=3777.7),
    gpu(3, node=2, slot="m", mig_profile="3g.40gb"),
    gpu(4, node=2, slot="m", mig_profile="2g.20gb", from_seconds=500.0),
)
CAPACITY = 4_000_000 + 3_444_400 + 4_000_000


def launched(number, ended):
    end, reason = ended
    return launch(
        number,
        job=1 + number % 2,
        source_id=f"log{number % 2}",
        session=number // 2,
        end_seconds=end,
        exit_reason=reason,
    )


ENDED = st.tuples(st.one_of(st.none(), TIME), st.sampled_from([None, "completed", "PREEMPTED", "exit 1"]))


def queue_key(row):
    return row["ts"], row["node"], row["value"]


@st.composite
def scenes(draw):
    samples = {(row["gpu"], row["ts"]): row for row in draw(st.lists(SAMPLE, max_size=30))}
    return Scene(
        now=END,
        gpus=GPUS,
        jobs=(job(1, world_size=draw(st.sampled_from([None, 1, 2, 4]))), job(2), job(3)),
        launches=tuple(launched(number, draw(ENDED)) for number in range(1, 5)),
        leases=tuple(draw(st.lists(LEASE, max_size=5, unique_by=lambda one: one.lease_id))),
        samples=table(SAMPLE_COLUMNS, [{**row, "node": 1 + row["gpu"] // 3} for row in samples.values()]),
        steps=steps(draw(st.lists(STEP, max_size=25))),
        phases=phases(draw(st.lists(PHASE, max_size=6))),
        events=events(draw(st.lists(EVENT, max_size=6))),
        queues=events(waiting) if (waiting := draw(st.lists(QUEUE, max_size=4, unique_by=queue_key))) else {},
        idle_watts=draw(st.sampled_from([{}, {1: 55.0, 3: 90.0}])),
    )


def listed(rows):
    return {name: rows[name].tolist() for name in LEDGER_COLUMNS}


@settings(max_examples=2000, deadline=None)
@given(scenes())
def test_the_buckets_add_up_to_the_capacity(scene):
    rows = scene.rows()

    assert int(rows["gpu_milliseconds"].sum()) == CAPACITY
    assert (rows["gpu_milliseconds"] > 0).all()
    assert (rows["useful_gpu_milliseconds"] <= rows["gpu_milliseconds"]).all()


@settings(max_examples=2000, deadline=None)
@given(scenes(), st.integers(0, 2**32 - 1))
def test_the_order_in_which_things_are_told_does_not_matter(scene, seed):
    rng = np.random.default_rng(seed)

    def mixed(rows):
        order = rng.permutation(rows["ts"].size)
        return {name: values[order] for name, values in rows.items()}

    other = replace(
        scene,
        samples=mixed(scene.samples),
        steps=mixed(scene.steps),
        phases=mixed(scene.phases),
        queues=mixed(scene.queues) if scene.queues else {},
        leases=scene.leases[::-1],
        gpus=scene.gpus[::-1],
        launches=scene.launches[::-1],
    )

    assert listed(other.rows()) == listed(scene.rows())


@settings(max_examples=2000, deadline=None)
@given(scenes())
def test_windows_computed_one_by_one_are_those_computed_together(scene):
    inputs = scene.inputs()
    whole = account(inputs, 0.0, END)
    parts = [account(inputs, start, min(start + 300.0, END)) for start in np.arange(0.0, END, 300.0)]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in LEDGER_COLUMNS}

    plain = [name for name in LEDGER_COLUMNS if name != "useful_gpu_milliseconds"]
    assert {name: joined[name].tolist() for name in plain} == {name: whole[name].tolist() for name in plain}


@settings(max_examples=2000, deadline=None)
@given(scenes())
def test_days_made_of_windows_add_up_to_the_same(scene):
    rows = scene.rows()
    coarse = summed({**rows, "ts": np.zeros(rows["ts"].size)})

    for name in ("gpu_milliseconds", "useful_gpu_milliseconds"):
        assert int(coarse[name].sum()) == int(rows[name].sum())


@settings(max_examples=2000, deadline=None)
@given(scenes())
def test_a_rollup_of_rollups_is_one_rollup(scene):
    inputs = scene.inputs()
    unknown = np.full(inputs.samples["ts"].size, np.nan)
    samples = {**inputs.samples, "sm_active_ratio": unknown, "tensor_active_ratio": unknown}
    rows = job_rollup(scene.rows(), samples, inputs.timelines, {}, END)

    twice, once = hourly(hourly(rows, 1800), 3600), hourly(rows, 3600)

    for name in ("ts", "job", *SUMS):
        np.testing.assert_allclose(twice[name], once[name])
