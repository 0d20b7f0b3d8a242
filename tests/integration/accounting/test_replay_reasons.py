"""Reasons and parts of buckets through ``flopwatch replay``: queues, idle power, stragglers, elastic nodes."""

from tests.integration.accounting.recorded import (
    NodeTape,
    batches,
    lease,
    phase,
    queue,
    session,
    sighting,
    steps,
)
from tests.integration.accounting.replaying import EMPTY, HOT, OK, buckets, leased, replay


def test_free_time_has_the_reason_that_the_queue_gives_it(tmp_path):
    """Eight GPUs of one node and two of another are free: ten together, eight in one piece."""
    first, second = NodeTape("a"), NodeTape("b")
    first.sample(None, 0, 7200, **EMPTY)
    second.sample(range(6), 0, 7200, job="K", **HOT)
    second.sample([6, 7], 0, 7200, **EMPTY)
    sighting(second, "K", (0, 7200))
    lease(second, "K", second.uuids(*range(6)), (0, 7200))
    queue(first, 600)
    queue(first, 1200, pending_jobs=1, pending_gpus=10, largest_request_gpus=10)
    queue(first, 1800, pending_jobs=1, pending_gpus=4, largest_request_gpus=4)
    queue(first, 2400, pending_jobs=1, pending_gpus=64, largest_request_gpus=64)
    queue(first, 3000)
    first.event(6000, "stranded", "begin")
    first.event(6600, "stranded", "end")

    answer = replay(tmp_path, [*batches(first, 7200), *batches(second, 7200)])

    free = {name: gpus for name, gpus in answer["ledger"]["reasons_gpu_seconds"].items() if "FREE" in name}
    assert free == {
        "FREE:no_demand": 600 * 10 + 3000 * 10 + 600 * 2,
        "FREE:fragmented": 600 * 10,
        "FREE:sched_delay": 600 * 10,
        "FREE:stranded": 600 * 8,
        "FREE:unspecified": (600 + 600 + 600) * 10,
    }


def test_a_resident_kernel_at_the_gpus_own_idle_power_is_idle(tmp_path):
    tape = NodeTape("a", gpus=2)
    sighting(tape, "K", (3600, 7200))
    lease(tape, "K", tape.uuids(), (3600, 7200))
    tape.sample(None, 0, 3600, **EMPTY)
    tape.sample([0], 3600, 7200, job="K", kernel_active_ratio=1.0, process_count=1, power_watts=80.0)
    tape.sample([1], 3600, 7200, job="K", kernel_active_ratio=1.0, process_count=1, power_watts=81.0)

    assert buckets(tmp_path, [tape], 7200) == {"FREE": 7200, "HELD_IDLE": 3600, "BUSY_OPAQUE": 3600}


def test_the_power_of_busy_gpus_teaches_no_idle_power(tmp_path):
    tape = NodeTape("a", gpus=1)
    sighting(tape, "K", (3600, 7200))
    lease(tape, "K", tape.uuids(), (3600, 7200))
    tape.sample(None, 0, 3600, **{**EMPTY, "power_watts": 400.0})
    tape.sample(None, 3600, 7200, job="K", **{**HOT, "power_watts": 400.0})

    assert buckets(tmp_path, [tape], 7200) == {"FREE": 3600, "BUSY_OPAQUE": 3600}


def test_a_confirmed_straggler_takes_what_steps_last_beyond_the_usual(tmp_path):
    """Steps of 10 s; then one node's clocks fall and each step takes 12.5 s: 2.5 s of it are the straggler's."""
    tapes = [NodeTape(name, gpus=2, interval=30) for name in "abc"]
    for tape in tapes:
        sighting(tape, "J", (0, 5400), world_size=6)
        lease(tape, "J", tape.uuids(), (0, 5400))
        slow = 1.2e9 if tape.name == "c" else 1.98e9
        tape.sample(None, 0, 3600, job="J", sm_clock_hertz=1.98e9, **HOT)
        tape.sample(None, 3600, 5400, job="J", sm_clock_hertz=slow, **HOT)
    session(tapes[0], "J", 0, 0, 5400, **OK)
    steps(tapes[0], "J", (1, 360, 0))
    steps(tapes[0], "J", (361, 504, 3600), seconds=12.5)

    answer = replay(tmp_path, [batch for tape in tapes for batch in batches(tape, 5400)])

    assert answer["ledger"]["gpu_seconds"]["STEP"] == 6 * 5400
    assert answer["ledger"]["step_split_gpu_seconds"]["STRAGGLER"] == 6 * 144 * 2.5


def test_exposed_communication_is_taken_out_of_steps_where_it_is_told(tmp_path):
    tape = leased(2)
    session(tape, "J", 0, 0, 3600, **OK)
    steps(tape, "J", (1, 360, 0))
    tape.sample(None, 0, 3600, job="J", **HOT)
    for number in range(100):
        phase(tape, "J", "communication", (10 * number + 4, 10 * number + 5.5))

    split = replay(tmp_path, batches(tape, 3600))["ledger"]["step_split_gpu_seconds"]

    assert (split["EXPOSED_COMM"], split["INTRINSIC_UNKNOWN"]) == (2 * 150, 2 * 3450)


def test_hours_of_hardly_any_sm_activity_are_barely_used(tmp_path):
    tape = NodeTape("a", gpus=2)
    for ref, gpu, activity in (("J", 0, 0.03), ("K", 1, 0.30)):
        sighting(tape, ref, (0, 7200))
        lease(tape, ref, tape.uuids(gpu), (0, 7200))
        tape.sample([gpu], 0, 7200, job=ref, sm_active_ratio=activity, **HOT)

    metrics = replay(tmp_path, batches(tape, 7200))["metrics"]

    assert metrics["barely_used_gpu_seconds"] == 7200
    assert (metrics["U_bill"], metrics["U_bill_without_barely_used"]) == (1.0, 0.5)


def test_an_elastic_node_is_capacity_only_while_it_is_there(tmp_path):
    settings = tmp_path / "site.toml"
    settings.write_text('[collector]\nelastic_nodes = ["spot-*"]\n')
    tapes = [NodeTape(name, gpus=2) for name in ("spot-1", "own-1")]
    for tape in tapes:
        tape.sample(None, 0, 1200, **EMPTY)
        tape.sample(None, 2400, 3600, **EMPTY)

    found = buckets(tmp_path, tapes, 3600, "--config", str(settings))

    assert found == {"FREE": 4 * 2400, "UNKNOWN": 2 * 1200}
