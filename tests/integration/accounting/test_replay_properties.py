"""Any order, any duplicates, any gaps, any wrong clock: what a replay answers adds up, and is the same."""

import json
import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.accounting.recorded import NodeTape, batches, lease, phase, session, sighting, steps
from tests.integration.accounting.replaying import run

from flopwatch.encoding import encode

END = 3600.0
VIEWS = ("by_node", "by_job", "by_user", "by_account", "by_cluster", "by_day")
MINUTE = st.integers(0, 60).map(lambda minutes: 60.0 * minutes)


@st.composite
def tapes(draw):
    """Two nodes with a run on both, another user's lease, a fault and a spare, and stretches without samples."""
    found = []
    killed, back = sorted(draw(st.tuples(MINUTE, MINUTE)))
    for name in "ab":
        tape = NodeTape(name, gpus=3)
        sighting(tape, "J", (0, END), world_size=4, user="ada")
        lease(tape, "J", tape.uuids(0, 1), (draw(MINUTE), draw(st.one_of(st.none(), st.just(END)))))
        begin, end = sorted(draw(st.tuples(MINUTE, MINUTE)))
        for index in range(3):
            busy = {
                "kernel_active_ratio": 1.0,
                "process_count": 1,
                "power_watts": draw(st.sampled_from([80.0, 600.0])),
            }
            tape.sample([index], 0, begin, job="J" if index < 2 else None, **busy)
            tape.sample([index], end, END, kernel_active_ratio=0.0, process_count=0, power_watts=70.0)
        tape.event(draw(MINUTE), "health", draw(st.sampled_from(["faulty", "ok"])), gpu=2)
        tape.event(draw(MINUTE), "spare", "begin", gpu=draw(st.integers(0, 2)))
        found.append(tape)
    first = found[0]
    session(first, "J", 0, 0, killed, exit_reason=draw(st.sampled_from([None, "PREEMPTED", "exit 1"])))
    session(first, "J", 1, back)
    steps(first, "J", (1, int(killed // 20), 0), seconds=20)
    steps(first, "J", (max(1, int(killed // 40)), 200, back), seconds=20, session=1)
    phase(first, "J", "checkpoint", (draw(MINUTE), END), session=1)
    return found


def answer_to(lines, folder):
    file = Path(folder) / "batches.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    answer = run(str(file))
    answer.pop("input")
    return answer


def recorded(batch, skew):
    """The batch as a recorder kept it; its node's clock is that far ahead."""
    document = shifted(json.loads(encode(batch)), skew)
    sent = batch.sampled_at_seconds + skew
    return json.dumps(
        {**document, "sent_at_seconds": sent, "received_at_seconds": batch.sampled_at_seconds}
    ).encode()


def shifted(value, seconds, key=""):
    if isinstance(value, dict):
        return {
            name: value[name] if key == "leases" else shifted(value[name], seconds, name) for name in value
        }
    if isinstance(value, list):
        return [shifted(each, seconds, key) for each in value]
    late = key.endswith("_seconds") and isinstance(value, float) and value > 1e9
    return value + seconds if late else value


@settings(max_examples=3, deadline=None)
@given(tapes(), st.integers(0, 2**32 - 1))
def test_order_and_duplicates_change_nothing_and_every_view_adds_up(found, seed):
    rng = random.Random(seed)  # noqa: S311 - an order, no secret
    lines = [encode(batch) for tape in found for batch in batches(tape, END)]
    mixed = [*lines, *rng.choices(lines, k=5)]
    rng.shuffle(mixed)
    with tempfile.TemporaryDirectory() as folder:
        answer, other = answer_to(lines, folder), answer_to(mixed, folder)

    assert other == answer
    ledger = answer["ledger"]
    assert sum(ledger["gpu_seconds"].values()) == ledger["capacity_gpu_seconds"] == 6 * END
    for view in VIEWS:
        parts = ledger[view].values()
        assert sum(part["capacity_gpu_seconds"] for part in parts) == ledger["capacity_gpu_seconds"], view
        for name, amount in ledger["gpu_seconds"].items():
            assert abs(sum(part["gpu_seconds"].get(name, 0.0) for part in parts) - amount) < 1e-6, (
                view,
                name,
            )


@settings(max_examples=2, deadline=None)
@given(tapes(), st.sampled_from([-28_800.0, 28_800.0, 90.0]))
def test_a_wrong_clock_that_the_recorder_saw_changes_nothing(found, skew):
    right = [recorded(batch, 0.0) for tape in found for batch in batches(tape, END)]
    wrong = [
        recorded(batch, skew if tape.name == "b" else 0.0) for tape in found for batch in batches(tape, END)
    ]
    with tempfile.TemporaryDirectory() as folder:
        assert answer_to(wrong, folder)["ledger"] == answer_to(right, folder)["ledger"]
