"""The simulated cluster is deterministic, exact to the step, and has every trouble the pages can show."""

import itertools

import pytest

from flopwatch_deploy.simulation.batches import LOST_GPU_INDEX, Simulator, Span
from flopwatch_deploy.simulation.cluster import DAY, HOUR, build
from flopwatch_deploy.simulation.feed import Options, history_spans
from flopwatch_deploy.simulation.runs import LLAMA_8B, Failure, Run
from flopwatch_deploy.simulation.segments import life
from flopwatch_deploy.simulation.training import facts as run_facts
from flopwatch_deploy.simulation.training import launches, steps

NOW = 1_790_000_000.0


def span(node: int, start: float, end: float, interval: float = 10.0) -> Span:
    return Span(
        node=node, start_seconds=start, end_seconds=end, interval_seconds=interval, spool="s", sequence=0
    )


def run(**fields: object) -> Run:
    base = {
        "number": 7, "name": "r", "user": "u", "account": "a", "nodes": (0, 1), "start_seconds": 0.0,
        "end_seconds": 20_000.0, "model": LLAMA_8B, "mfu_ratio": 0.4,
    }  # fmt: skip
    return Run(**{**base, **fields})


def test_a_step_takes_as_long_as_its_mfu_says() -> None:
    # 6 x (32 x (2x4096x4096 + 2x4096x1024 + 3x4096x14336) + 4096x128256) + 6x32x4096x8192 = 51.474 GFLOP a token
    per_token = (
        6 * (32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096 * 128_256) + 6 * 32 * 4096 * 8192
    )

    seconds = LLAMA_8B.step_seconds(0.4, 16)

    assert seconds == pytest.approx(per_token * 512 * 8192 / (0.4 * 989.4e12 * 16), rel=1e-9)


def test_the_same_seed_gives_the_same_batches() -> None:
    first = Simulator(build(seed=3, gpus=128, days=2, now_seconds=NOW)).batch(span(1, NOW - 60, NOW))
    second = Simulator(build(seed=3, gpus=128, days=2, now_seconds=NOW)).batch(span(1, NOW - 60, NOW))

    assert first == second
    assert first is not None
    assert len(first.gpu_samples) == 6 * 8


def test_step_records_of_adjacent_spans_cover_every_step_once() -> None:
    item = life(run(checkpoint_every_seconds=3600.0), 30_000.0)

    whole = steps(item, 0.0, 20_000.0, 300.0)
    cut = steps(item, 0.0, 7_777.0, 300.0) + steps(item, 7_777.0, 20_000.0, 10.0)

    assert sum(r.steps_covered for r in whole) == sum(r.steps_covered for r in cut)
    assert whole[-1].step == cut[-1].step
    assert sum(r.seconds or 0 for r in whole) == pytest.approx(sum(r.seconds or 0 for r in cut))


def test_a_failed_run_goes_on_from_its_last_checkpoint() -> None:
    item = life(run(failures=(Failure(at_seconds=9_000.0, down_seconds=600.0),)), 30_000.0)

    marks = launches(item, 20_000.0)
    saves = [s for s in item.segments if s.kind == "checkpoint" and s.begin_seconds < 9_000.0]
    before = steps(item, 0.0, saves[-1].begin_seconds, 1.0)

    assert [mark.restart_number for mark in marks] == [0, 1]
    assert marks[1].resumed_from_step == before[-1].step
    assert marks[0].exit_reason == "failed"


def test_a_hung_run_steps_no_more() -> None:
    item = life(run(end_seconds=None, hang_at_seconds=8_000.0), 30_000.0)

    records = steps(item, 0.0, 30_000.0, 60.0)

    assert 8_000.0 - 2 * (item.run.step_seconds() or 0) < records[-1].end_time_seconds <= 8_000.0
    assert item.at(20_000.0).kind == "hang"


def test_a_hung_gpu_looks_busy_to_the_driver_and_draws_little_power() -> None:
    simulator = Simulator(build(seed=3, gpus=1024, days=2, now_seconds=NOW))
    hung = next(item for item in simulator.cluster.lives if item.run.hang_at_seconds is not None)

    batch = simulator.batch(span(hung.run.nodes[0], NOW - 10, NOW))

    assert batch is not None
    sample = batch.gpu_samples[0]
    assert sample.kernel_active_ratio > 0.9
    assert sample.tensor_active_ratio == 0.0
    assert sample.power_watts < 200.0


def test_the_failed_node_is_silent_and_the_lost_gpu_sends_no_sample() -> None:
    simulator = Simulator(build(seed=3, gpus=1024, days=2, now_seconds=NOW))
    cluster = simulator.cluster

    last = simulator.batch(span(cluster.nodes - 1, NOW - 10, NOW))

    assert simulator.batch(span(cluster.failed_node, NOW - 10, NOW)) is None
    assert last is not None
    assert last.gpus[LOST_GPU_INDEX].state == "lost"
    assert len(last.gpu_samples) == 7


def test_counters_never_fall_and_energy_is_the_integral_of_power() -> None:
    simulator = Simulator(build(seed=3, gpus=128, days=2, now_seconds=NOW))

    batch = simulator.batch(span(0, NOW - 3600, NOW))

    assert batch is not None
    rows = [s for s in batch.gpu_samples if s.gpu == simulator.uuid(0, 0)]
    energy = [s.energy_joules for s in rows]
    assert energy == sorted(energy)
    mean_watts = (energy[-1] - energy[0]) / (rows[-1].time_seconds - rows[0].time_seconds)
    assert mean_watts == pytest.approx(sum(s.power_watts for s in rows) / len(rows), rel=0.03)


def test_history_covers_the_days_once_newest_first() -> None:
    options = Options(host="h", port=1, gpus=128, days=3, seed=1, now_seconds=NOW)

    spans = [(start, end) for node, start, end, _, _ in history_spans(options, 16) if node == 0]

    assert spans[0][1] == NOW
    assert all(later[0] == earlier[1] for later, earlier in itertools.pairwise(spans))
    assert spans[-1][0] == (NOW // DAY - 2) * DAY
    # Two hours, and up to the quarter of an hour at which history is sampled: nothing between is left unseen.
    fine = [
        start for node, start, _, interval, _ in history_spans(options, 16) if node == 0 and interval == 10.0
    ]
    assert min(fine) % 900.0 == 0.0
    assert 2 * HOUR <= NOW - min(fine) < 2 * HOUR + 900.0


@pytest.mark.parametrize(("gpus", "days"), [(100, 30), (64, 30), (1024, 0), (32_768, 30)])
def test_a_size_that_cannot_be_simulated_is_refused_with_what_is_allowed(gpus: int, days: int) -> None:
    with pytest.raises(ValueError, match="allowed"):
        build(seed=1, gpus=gpus, days=days, now_seconds=NOW)


def test_the_host_of_a_starved_run_has_busy_loaders_and_that_of_a_saving_one_writes() -> None:
    simulator = Simulator(build(seed=3, gpus=1024, days=2, now_seconds=NOW))
    named = {item.run.name: item for item in simulator.cluster.lives if item.run.end_seconds is None}
    storm = named["qwen-7b-rewards"]
    save = next(s for s in storm.segments if s.kind == "checkpoint" and s.begin_seconds > NOW - HOUR)

    starved = simulator.batch(span(named["vlm-7b-pretrain"].run.nodes[0], NOW - 60, NOW))
    saving = simulator.batch(span(storm.run.nodes[0], save.begin_seconds, save.end_seconds))

    assert starved is not None
    assert saving is not None
    assert all(one.loader_busiest_ratio > 0.9 and one.main_thread_ratio < 0.5 for one in starved.job_samples)
    assert len(starved.job_samples) == 6
    first, last = saving.job_samples[0], saving.job_samples[-1]
    seconds = last.time_seconds - first.time_seconds
    assert last.disk_write_bytes - first.disk_write_bytes == pytest.approx(2.2e9 * seconds, abs=2.0)
    # 32 loaders at 0.98 of a core and 4.6 cores of trainers, of 128; the system itself has 1.6 % at most.
    assert starved.node_samples[0].cpu_busy_ratio == pytest.approx((31.4 + 4.6) / 128 + 0.012, abs=0.005)


def test_every_gpu_of_a_run_has_its_rank_and_a_run_on_one_node_sends_nothing_to_others() -> None:
    simulator = Simulator(build(seed=3, gpus=1024, days=2, now_seconds=NOW))
    named = {item.run.name: item.run for item in simulator.cluster.lives if item.run.end_seconds is None}
    node = named["llama-70b-pretrain"].nodes[2]

    batch = simulator.batch(span(node, NOW - 60, NOW))
    alone = simulator.batch(span(named["llama-8b-preview"].nodes[0], NOW - 60, NOW))

    assert batch is not None
    assert alone is not None
    assert [job.gpu_ranks for job in batch.jobs] == [tuple(range(16, 24))]
    sent = [one.transmit_bytes for one in alone.port_samples if one.port == "mlx5_0/1"]
    assert (sent[-1] - sent[0]) / 50.0 == pytest.approx(2e5 / 8, rel=0.01)


def test_the_batch_of_every_run_is_shared_evenly_by_its_replicas() -> None:
    cluster = build(seed=3, gpus=1024, days=10, now_seconds=NOW)

    facts = [(item.run, fact) for item in cluster.lives for fact in run_facts(item.run)]

    assert len(facts) > 20
    for each, fact in facts:
        assert fact.data_parallel * fact.tensor_parallel == each.gpus()
        assert fact.global_batch_size % fact.data_parallel == 0


def test_no_model_is_trained_on_gpus_that_cannot_hold_its_state() -> None:
    cluster = build(seed=3, gpus=1024, days=30, now_seconds=NOW)

    least = {
        name: min(i.run.gpus() for i in cluster.lives if i.run.model and i.run.model.name == name)
        for name in ("Llama-3-70B", "Mixtral-8x22B")
    }

    # 70.6 and 140.6 billion parameters of 16 bytes are 1.13 and 2.25 TB: four fifths of 18 and 36 GPUs.
    assert least["Llama-3-70B"] >= 24
    assert least["Mixtral-8x22B"] >= 40
